// Which tensors may be swapped at all, with any strategy: one table of rules, each with a reason,
// so that every refusal can be explained.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_ELIGIBILITY_H_
#define SPILLWAY_REWRITE_CORE_PLAN_ELIGIBILITY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class Eligibility {
 public:
  // INVALID_ARGUMENT if options.devices names a device without nodes; otherwise the errors of the
  // facts that it computes: those of Soundness, variable aliases and placement. `facts` must
  // outlive the result. REQUIRES: min_tensor_bytes is not negative.
  static absl::StatusOr<Eligibility> Create(const StepFacts& facts,
                                            const v1::RewriteOptions& options,
                                            const StopToken& stop);

  // Returns REASON_SWAPPED if `tensor` may be swapped; otherwise the first rule that forbids it.
  v1::Reason ReasonFor(Tensor tensor) const;

  // The same for a tensor in host memory, of which a swap-in makes a copy for readers on a GPU.
  // (late_reads.h has more rules for variables.) REQUIRES: the fact kBuffers.
  v1::Reason ReasonOnHost(Tensor tensor) const;

  // Whether nodes on this device may have their outputs swapped; false for CPUs.
  bool IsDeviceWanted(DeviceId id) const { return device_rule_[id] == kWanted; }

 private:
  // The rule for all nodes on one device: kWanted, or the reason against it.
  static constexpr v1::Reason kWanted = v1::REASON_SWAPPED;

  explicit Eligibility(const StepFacts& facts) : facts_(&facts) {}

  v1::Reason ReasonOfSize(Tensor tensor) const;

  const StepFacts* facts_;
  int64_t min_tensor_bytes_ = 0;
  std::vector<v1::Reason> device_rule_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_ELIGIBILITY_H_
