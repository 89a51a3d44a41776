// Which readers of a tensor may read a swap-in instead. A strategy says which readers are late
// enough; this says which of them can be served:
//
//   fed    not what is fed: it does not run, and must not be edited
//   loop   no functional loop (While): what it reads becomes a loop variable, which TensorFlow
//          places with the swap-in, on the host (tried with 2.15: copied in every iteration)
//   frame  only nodes in the loop frame of the tensor
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_READERS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_READERS_H_

#include <algorithm>
#include <vector>

#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class SwapInReaders {
 public:
  // REQUIRES: the facts kShapes and kControlFlow. Both must outlive the result.
  SwapInReaders(const StepFacts& facts, const Eligibility& eligibility);

  // Whether the node runs and may be edited. What is not is no reader at all to a strategy.
  bool Runs(NodeId reader) const { return !facts_.shapes().IsFed(reader); }

  // Leaves in `readers`, late readers of `tensor` that run, those that may read a swap-in of it.
  // REASON_SWAPPED, or why the tensor cannot be swapped: the first of these that holds: loops are
  // all who read it, eligibility forbids it, nobody in its frame reads it. `node_of` gives the
  // NodeId of a reader. REQUIRES: `readers` is not empty.
  template <typename Reader, typename NodeOf>
  v1::Reason Keep(Tensor tensor, std::vector<Reader>* readers, const NodeOf& node_of) const {
    const auto drop = [&](auto may_read) {
      readers->erase(
          std::remove_if(readers->begin(), readers->end(),
                         [&](const Reader& reader) { return !may_read(node_of(reader)); }),
          readers->end());
      return readers->empty();
    };
    if (drop([this](NodeId reader) { return !IsLoop(reader); })) return v1::REASON_READ_BY_LOOP;
    const v1::Reason verdict = eligibility_.Judge(tensor);
    if (verdict != v1::REASON_SWAPPED) return verdict;
    if (drop([&](NodeId reader) { return SharesFrame(tensor, reader); })) {
      return v1::REASON_IN_LOOP;
    }
    return verdict;
  }

 private:
  bool IsLoop(NodeId reader) const { return op_is_loop_[facts_.graph().op_id(reader)]; }
  bool SharesFrame(Tensor tensor, NodeId reader) const {
    return facts_.control_flow().input_frame(reader) ==
           facts_.control_flow().output_frame(tensor.node);
  }

  const StepFacts& facts_;
  const Eligibility& eligibility_;
  std::vector<bool> op_is_loop_;  // By Graph::op_id.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_READERS_H_
