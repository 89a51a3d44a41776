// A rewrite's cost, in one line.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_COST_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_COST_TEXT_H_

#include <string>

#include "spillway/v1/report.pb.h"

namespace spillway::text {

// `fits with 14 swaps, 3.10 GiB, 5 % slower, host memory 3.20 GiB`; of a graph that is returned
// unchanged `fits, 8.10 GiB of 14.40 GiB`. A fit that was not computed is reported as unknown,
// never as fitting; a warning that TensorFlow may run out of memory comes first. The bytes are
// those that a step copies to the host. If the step may compute other bits even without Grappler,
// the line says so.
std::string CostText(const v1::RewriteReport& report);

// Returns the cost of a rewrite; of a graph that is returned unchanged, the report's summary.
std::string ReportLine(const v1::RewriteReport& report);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_COST_TEXT_H_
