// Compares a simulated step with a traced one.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_CHECK_RUN_H_
#define SPILLWAY_CLIENT_LIB_TEXT_CHECK_RUN_H_

#include "absl/status/statusor.h"
#include "client_lib/text/check_trace.h"
#include "spillway/v1/check.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::text {

// Of `report`, the swaps, the devices, the forecast (after the rewrite, if it has one) and the
// machine are used.
//
// Errors: BAD_OPTION (`run_metadata`) if the step is of another graph: none of the swapped tensors
// is in it.
absl::StatusOr<v1::RunCheck> CheckRun(const v1::RewriteReport& report, const CheckTrace& trace);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_CHECK_RUN_H_
