// The stages of a rewrite: each is timed, and its name is added to its errors. They are listed in
// the API's enum Stage.
//
// Thread safety: one thread per report.
#ifndef SPILLWAY_REWRITE_CORE_STAGE_H_
#define SPILLWAY_REWRITE_CORE_STAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/steady_time.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Returns `status` with the detail `stage`. (A stopped loop has already named its own.)
inline absl::Status InStage(v1::Stage stage, const absl::Status& status) {
  return WithDetail(status, "stage", StageName(stage));
}

// Runs `work`, which returns a Status or a StatusOr, records its duration in `report`, and adds the
// detail `stage` to its error.
template <typename Work>
auto RunStage(v1::Stage stage, v1::RewriteReport* report, const Work& work) -> decltype(work()) {
  const absl::Time begin = SteadyNow();
  auto result = work();
  v1::StageTiming* timing = report->add_stages();
  timing->set_stage(stage);
  timing->set_duration_ns(absl::ToInt64Nanoseconds(SteadyNow() - begin));
  if (!StatusOf(result).ok()) return InStage(stage, StatusOf(result));
  return result;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STAGE_H_
