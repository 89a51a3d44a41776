// StepJudge: plays a tuner's plans on a StepModel.
#ifndef SPILLWAY_REWRITE_CORE_STEP_JUDGE_H_
#define SPILLWAY_REWRITE_CORE_STEP_JUDGE_H_

#include <string>

#include "rewrite_core/step_model.h"
#include "rewrite_core/strategy/plan_judge.h"

namespace spillway::core {

class StepJudge : public PlanJudge {
 public:
  // `model` must outlive the judge.
  explicit StepJudge(const StepModel& model) : model_(model) {}

  int32_t num_gpus() const override {
    return static_cast<int32_t>(model_.placement().devices().size());
  }
  const std::string& gpu_name(int32_t gpu) const override {
    return model_.placement().devices()[gpu];
  }
  int32_t GpuOf(int32_t device_id) const override { return model_.placement().device(device_id); }
  int64_t budget_bytes() const override { return model_.hardware().device_budget_bytes(); }
  int64_t GpuMemoryFor(int64_t budget_bytes) const override {
    return model_.hardware().GpuMemoryFor(budget_bytes);
  }
  v1::MemorySource budget_source() const override { return model_.hardware().gpu_memory_source; }
  std::string budget_origin() const override { return model_.hardware().MemoryOrigin(); }
  bool Runs(NodeId id) const override { return model_.Runs(id); }
  absl::StatusOr<PlanOutcome> Play(const SwapPlan& plan, const PlayTerms& terms,
                                   const StopToken& stop) override {
    return model_.Play(plan, terms, stop);
  }

 private:
  const StepModel& model_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STEP_JUDGE_H_
