// Stages of a rewrite: each is timed, and its name is in its error. The list is the enum Stage of
// the API.
//
// Thread safety: one report, one thread.
#ifndef SPILLWAY_REWRITE_CORE_STAGE_H_
#define SPILLWAY_REWRITE_CORE_STAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// `status` as an error of that stage: with the detail `stage`. (A stopped loop had said of itself
// what it was at.)
inline absl::Status InStage(v1::Stage stage, const absl::Status& status) {
  return WithDetail(status, "stage", StageName(stage));
}

// Runs `work`, which gives a Status or a StatusOr, notes in `report` how long it took, and adds the
// detail `stage` to its error.
template <typename Work>
auto RunStage(v1::Stage stage, v1::RewriteReport* report, const Work& work) -> decltype(work()) {
  const absl::Time begin = absl::Now();
  auto result = work();
  v1::StageTiming* timing = report->add_stages();
  timing->set_stage(stage);
  timing->set_duration_ns(absl::ToInt64Nanoseconds(absl::Now() - begin));
  if (!StatusOf(result).ok()) return InStage(stage, StatusOf(result));
  return result;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STAGE_H_
