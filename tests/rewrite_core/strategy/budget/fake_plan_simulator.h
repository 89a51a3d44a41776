// A simulator that answers as a test says, and records its calls; and a request with it.
#ifndef SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_FAKE_PLAN_SIMULATOR_H_
#define SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_FAKE_PLAN_SIMULATOR_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::testing {

struct FakePlanSimulator final : core::PlanSimulator {
  using Answer = std::function<absl::StatusOr<core::StepResult>(const core::SwapPlan& plan,
                                                                const core::StepTerms& terms)>;
  explicit FakePlanSimulator(Answer of) : answer(std::move(of)) {}

  absl::StatusOr<core::StepResult> Simulate(const core::SwapPlan& plan,
                                            const core::StepTerms& terms,
                                            const core::StopToken&) override {
    calls.push_back({plan, terms});
    return answer(plan, terms);
  }
  absl::StatusOr<std::vector<core::DeviceBounds>> LowerBounds(const std::vector<core::NodeId>&,
                                                              const std::vector<bool>&,
                                                              const core::StopToken&) override {
    return bounds;
  }

  struct Call {
    core::SwapPlan plan;
    core::StepTerms terms;
  };
  std::vector<Call> calls;
  Answer answer;
  std::vector<core::DeviceBounds> bounds;
};

inline core::StepResult Fits(int64_t time_ns) { return FittingStep(time_ns, time_ns, 0); }

// A step in which `node` does not get its memory.
inline core::StepResult RunsOutAt(core::NodeId node, core::GpuIndex gpu = core::GpuIndex(0),
                                  core::OpKind kind = core::OpKind::kCompute) {
  core::OutOfMemory oom;
  oom.device = gpu;
  oom.node = node;
  oom.kind = kind;
  return UnfitStep(oom, 0, 0, gpu + 1);
}

struct TestRequest : TestStep {
  TestRequest(const std::string& graph_text, const std::string& options_text)
      : TestStep(graph_text, Parse(options_text).step()), options(Parse(options_text)) {
    Compute({core::Fact::kHardware, core::Fact::kGpuMemory});
  }
  static v1::RewriteOptions Parse(const std::string& text) {
    v1::RewriteOptions parsed;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &parsed)) << text;
    return parsed;
  }

  const v1::RewriteOptions options;
  const v1::Limits limits = core::DefaultLimits();
  const core::StopToken stop;
  const core::Eligibility eligibility =
      ValueOrDie(core::Eligibility::Create(facts, options, stop), "eligibility");
  FakePlanSimulator simulator{[](const auto&, const auto&) { return Fits(1); }};
  const core::StrategyInput input{facts, eligibility, options, limits, &simulator, stop};
  core::SearchBudget steps{limits.max_search_steps(), stop};
  core::BudgetRequest request{input, &steps};
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_FAKE_PLAN_SIMULATOR_H_
