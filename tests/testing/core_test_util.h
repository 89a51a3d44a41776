// Common helpers for the tests of rewrite_core: graphs (graph_text.h), matchers (matchers.h), and
// graphs with their analyses.
#ifndef SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
#define SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/simulate/workload_builder.h"
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

// A graph with the facts of its step. Facts that rules and strategies read are already computed.
struct TestFacts {
  explicit TestFacts(TestGraph g, v1::Step s = {})
      : graph(std::move(g)), step(std::move(s)), facts(*graph, step) {
    Compute({core::Fact::kShapes, core::Fact::kControlFlow, core::Fact::kVariableAliases,
             core::Fact::kPlacement, core::Fact::kLoops, core::Fact::kActiveNodes});
  }
  explicit TestFacts(absl::string_view text, v1::Step s = {})
      : TestFacts(TestGraph(text), std::move(s)) {}

  // Computes more facts.
  void Compute(std::initializer_list<core::Fact> wanted) const {
    if (absl::Status status = facts.Compute(wanted, core::StopToken()); !status.ok()) {
      std::cerr << "facts: " << status << "\n";
      std::abort();
    }
  }

  TestGraph graph;
  v1::Step step;
  core::StepFacts facts;
};

// The same with everything needed to build a workload.
struct TestStep : TestFacts {
  template <typename Source>
  explicit TestStep(Source&& source, v1::Step s = {})
      : TestFacts(std::forward<Source>(source), std::move(s)) {
    Compute({core::Fact::kCosts});
  }

  core::Workload Build(const core::SwapPlan* plan = nullptr,
                       core::WorkloadNotes* notes = nullptr) const {
    return ValueOrDie(core::BuildWorkload(facts, plan, notes, {}), "workload");
  }
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
