// The result of a rewrite in a few numbers, for statistics, log and journal.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_SERVER_OBSERVE_REWRITE_RECORD_H_
#define SPILLWAY_SERVER_OBSERVE_REWRITE_RECORD_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

// Which request did the work.
enum class AnsweredFrom {
  kWork,    // This request.
  kPlan,    // This request, with the plan of another.
  kShared,  // A concurrent request.
  kCache,   // An earlier request.
};
const char* AnsweredFromName(AnsweredFrom from);

struct RewriteRecord {
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;  // Unspecified: the error DOES_NOT_FIT.
  AnsweredFrom from = AnsweredFrom::kWork;
  // If nothing fits: the machine, and for one GPU the budget and the smallest sufficient one, as
  // far as the error reports them.
  core::RewriteFigures figures;

  bool does_not_fit() const { return outcome == v1::OUTCOME_UNSPECIFIED; }
  // Step time after / before, if the original graph has no swaps: rewritten, or nothing to do.
  std::optional<double> slowdown() const;
  // Need / budget of the fullest GPU.
  std::optional<double> need_ratio() const;
};

// Returns `rewritten`, ...; `does_not_fit` for the unspecified one.
std::string OutcomeName(v1::Outcome outcome);

// Returns the record of a rewrite with `options` that ended with `status`, and with `report` if
// that is OK. Returns nothing for an error other than DOES_NOT_FIT.
std::optional<RewriteRecord> RecordOf(const absl::Status& status, const v1::RewriteReport& report,
                                      const v1::RewriteOptions& options, AnsweredFrom from);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_REWRITE_RECORD_H_
