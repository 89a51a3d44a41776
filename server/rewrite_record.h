// What came of a rewrite, in a few numbers: what statistics, log and journal tell of it.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_SERVER_REWRITE_RECORD_H_
#define SPILLWAY_SERVER_REWRITE_RECORD_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

// Who did the work.
enum class AnsweredFrom {
  kWork,    // This request.
  kPlan,    // This one, with the plan of another in hand.
  kShared,  // Another one at the same time.
  kCache,   // An earlier one.
};
const char* AnsweredFromName(AnsweredFrom from);

struct RewriteRecord {
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;  // Unspecified: the error DOES_NOT_FIT.
  AnsweredFrom from = AnsweredFrom::kWork;
  // Where nothing fits: the machine, and of one GPU the budget and the smallest that would do, as
  // far as the error tells them.
  core::RewriteFigures figures;

  bool does_not_fit() const { return outcome == v1::OUTCOME_UNSPECIFIED; }
  // Step after / step before, where the graph as it came is one that swaps nothing: rewritten, or
  // nothing to do.
  std::optional<double> slowdown() const;
  // Need / budget of the fullest GPU.
  std::optional<double> need_ratio() const;
};

// `rewritten`, ...; `does_not_fit` for the unspecified one.
std::string OutcomeName(v1::Outcome outcome);

// Of a rewrite with `options` that ended with `status`, and with `report` if that is OK. Nothing
// for an error other than DOES_NOT_FIT.
std::optional<RewriteRecord> RecordOf(const absl::Status& status, const v1::RewriteReport& report,
                                      const v1::RewriteOptions& options, AnsweredFrom from);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REWRITE_RECORD_H_
