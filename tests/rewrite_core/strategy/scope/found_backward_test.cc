// The backward part as found from the structure of real graphs must lead to the same swaps of
// forward tensors as the name scopes of the graphs' authors.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/strategy/scope/scope_strategy.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/recorded_v1.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::core {
namespace {

using testing::TestFacts;
using testing::TestGraph;

bool InScopes(absl::string_view name, const v1::ScopeStrategy& scope) {
  for (const std::string& prefix : scope.optimizer_scopes()) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

// The tensors of the forward part that are swapped, with their consumers.
std::set<std::string> ForwardSwaps(const TestFacts& f, const v1::RewriteOptions& options,
                                   const v1::ScopeStrategy& named) {
  const StrategyResult result = testing::ValueOrDie(testing::PlanWith(f, options), "plan");
  std::set<std::string> swaps;
  for (const PlannedSwap& swap : result.plan.swaps) {
    if (InScopes(f.graph->name(swap.tensor.node), named)) continue;
    std::set<std::string> consumers;
    for (const PlannedSwapIn& in : swap.swap_ins) {
      for (const InputPosition& p : in.consumers) {
        consumers.insert(absl::StrCat(f.graph->name(p.node), "[", p.index, "]"));
      }
    }
    std::string line = absl::StrCat(TensorName(*f.graph, swap.tensor), " ->");
    for (const std::string& consumer : consumers) absl::StrAppend(&line, " ", consumer);
    swaps.insert(line);
  }
  return swaps;
}

class FoundBackwardTest : public ::testing::TestWithParam<std::string> {};

// Between the last use of a weight and the loss, the two parts cannot always be distinguished: an
// unused gradient looks like a loss. So one or two tensors of the head may differ for each loss;
// they are printed.
TEST_P(FoundBackwardTest, GivesTheForwardSwapsThatNamesGive) {
  constexpr int kMaxDifferences = 2;
  v1::RewriteOptions named;
  for (const std::string& scope : testing::OptimizerScopes(GetParam())) {
    named.mutable_scope()->add_optimizer_scopes(scope);
  }
  const TestFacts f(
      TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(GetParam(), "/graph.pb"))));
  const std::set<std::string> by_name = ForwardSwaps(f, named, named.scope());
  v1::RewriteOptions unnamed;
  unnamed.mutable_scope();
  const std::set<std::string> found = ForwardSwaps(f, unnamed, named.scope());
  EXPECT_FALSE(by_name.empty());
  int missing = 0, more = 0;
  for (const std::string& swap : by_name) {
    if (found.count(swap) > 0) continue;
    std::cout << "by name only: " << swap << "\n";
    ++missing;
  }
  for (const std::string& swap : found) {
    if (by_name.count(swap) > 0) continue;
    std::cout << "found only: " << swap << "\n";
    ++more;
  }
  std::cout << by_name.size() - missing << " alike, " << missing << " by name only, " << more
            << " found only\n";
  EXPECT_LE(missing, kMaxDifferences);
  EXPECT_LE(more, kMaxDifferences);
}

INSTANTIATE_TEST_SUITE_P(FoundBackward, FoundBackwardTest,
                         ::testing::ValuesIn(testing::GraphsWithV1Orders()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace spillway::core
