// The text form of plans, for expectations and messages of tests.
#ifndef SPILLWAY_TESTS_TESTING_PLAN_TEXT_H_
#define SPILLWAY_TESTS_TESTING_PLAN_TEXT_H_

#include <string>

#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"

namespace spillway::testing {

// Prints one line per swap-in, per pace edge, per deadline edge and per added control edge:
//   a:0 (1024 bytes) -> c[0], d[1] after t
//   a:0 in => e       (a pace edge)
//   a:0 out => b      (a deadline edge)
//   t => c            (serialization; "(order)" after an order edge)
std::string PrintPlan(const core::Graph& graph, const core::SwapPlan& plan);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_PLAN_TEXT_H_
