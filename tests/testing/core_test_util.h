// The vocabulary of the tests of rewrite_core: graphs (graph_text.h), matchers (matchers.h), and
// graphs with their analyses.
#ifndef SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
#define SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/graph_facts.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"

namespace spillway::testing {

// The value of `result`; ends the program with its error if it has none. For set-up code.
template <typename T>
T ValueOrDie(absl::StatusOr<T> result, absl::string_view what) {
  if (result.ok()) return *std::move(result);
  std::cerr << what << ": " << result.status() << "\n";
  std::abort();
}

// Names the tests of a suite after their parameter's `name`.
struct CaseName {
  template <typename Param>
  std::string operator()(const ::testing::TestParamInfo<Param>& param_info) const {
    return param_info.param.name;
  }
};

// A graph with all its analyses.
struct TestFacts {
  explicit TestFacts(TestGraph g, const v1::Step& step = {})
      : graph(std::move(g)),
        facts(ValueOrDie(core::GraphFacts::Compute(*graph, step, core::StopToken()), "analyses")) {}
  explicit TestFacts(absl::string_view text, const v1::Step& step = {})
      : TestFacts(TestGraph(text), step) {}

  TestGraph graph;
  core::GraphFacts facts;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
