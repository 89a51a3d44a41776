// Explorations of sizes as text for people.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_EXPLORE_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_EXPLORE_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/text/recompute_choice.h"
#include "client_lib/text/style.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::text {

// A table of sizes, by size. `size_is_batch`: as in ExploreReport.
std::string FormatSizes(std::vector<v1::ExploredSize> sizes, bool size_is_batch, Style style);

// The output of `spillway explore`: the sizes that were tried, then the largest that fits, the
// fastest, and the largest near full speed; and the gain of more recomputation, unless `recompute`
// was given.
std::string FormatExploration(const v1::ExploreReport& report, Style style,
                              RecomputeChoice recompute);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_EXPLORE_TEXT_H_
