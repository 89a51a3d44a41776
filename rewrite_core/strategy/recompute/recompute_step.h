// The step as a sweep (recompute_sweep.h) reads it: by slot, which buffers the node reads and
// makes, whether it may be cloned, and until when; by buffer, whether it may be dropped and
// recomputed.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_STEP_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

struct RecomputeTerms {
  // Nodes whose recomputation is less exact are not cloned.
  RunAgain least = RunAgain::kSameBits;
  // Smaller buffers are not dropped.
  int64_t least_bytes = 0;
  // If not null: only nodes that pass it are cloned.
  const OpFilter* filter = nullptr;
  // If not null: only nodes on devices that are wanted.
  const Eligibility* eligibility = nullptr;
};

class RecomputeStep {
 public:
  // All must outlive it. Errors: those of `stop`.
  static absl::StatusOr<RecomputeStep> Create(const StepFacts& facts, const StepOrder& order,
                                              const CloneRules& rules, const RecomputeTerms& terms,
                                              const StopToken& stop);

  const StepOrder& order() const { return *order_; }
  const StepFacts& facts() const { return *facts_; }
  const CloneRules& rules() const { return *rules_; }

  // The buffers of the GPU that the node of the slot reads, each once, and those that it makes.
  absl::Span<const OrderBuffer> reads(Slot slot) const { return Part(reads_, first_read_, slot); }
  absl::Span<const OrderBuffer> makes(Slot slot) const { return Part(makes_, first_made_, slot); }

  bool may_clone(Slot slot) const { return may_clone_[slot]; }
  // A clone of its node must be launched before this slot; num_slots(): no limit.
  Slot before(Slot slot) const { return before_[slot]; }
  int64_t duration_ns(Slot slot) const { return order_->end_ns(slot) - order_->begin_ns(slot); }

  // Whether it may be recomputed, for readers that come after it was freed; and whether it is also
  // large enough to be dropped.
  bool may_remake(OrderBuffer buffer) const { return may_remake_[buffer]; }
  bool may_drop(OrderBuffer buffer) const {
    return may_remake_[buffer] && order_->bytes(buffer) >= least_bytes_;
  }

 private:
  RecomputeStep(const StepFacts& facts, const StepOrder& order, const CloneRules& rules)
      : facts_(&facts), order_(&order), rules_(&rules) {}
  absl::Status FindSlots(const RecomputeTerms& terms, const StopToken& stop);
  absl::Status FindRemade(const RecomputeTerms& terms, const StopToken& stop);
  bool IsMovable(NodeId reader, Tensor tensor) const;
  bool IsWanted(NodeId id, const RecomputeTerms& terms) const {
    return terms.eligibility == nullptr ||
           terms.eligibility->IsDeviceWanted(facts_->graph().device_id(id));
  }

  template <typename Item>
  static absl::Span<const Item> Part(const std::vector<Item>& items,
                                     const std::vector<int32_t>& first, int32_t i) {
    return absl::MakeConstSpan(items).subspan(first[i], first[i + 1] - first[i]);
  }

  const StepFacts* facts_;
  const StepOrder* order_;
  const CloneRules* rules_;
  std::vector<OrderBuffer> reads_, makes_;
  std::vector<int32_t> first_read_, first_made_;  // num_slots() + 1 items.
  std::vector<bool> may_clone_;                   // By slot.
  std::vector<Slot> before_;                      // By slot.
  std::vector<bool> may_clone_forwarder_;         // By node: if it forwards an input, it may be
                                                  // cloned to forward a clone's.
  std::vector<bool> may_remake_;                  // By buffer.
  int64_t least_bytes_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_STEP_H_
