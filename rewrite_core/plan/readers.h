// Which readers of a tensor may read a swap-in instead. A strategy decides which readers are late
// enough; these rules decide which of them can be served:
//
//   fed    no fed node: it does not run, and must not be edited
//   loop   no functional loop (While): its input becomes a loop variable, which TensorFlow places
//          with the swap-in, on the host (tried with 2.15: it is copied in every iteration)
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

  // Whether the node runs and may be edited. To a strategy, other nodes are no readers at all.
  bool Runs(NodeId reader) const { return !facts_.shapes().IsFed(reader); }

  // Whether the node, which runs, is on a GPU, and may read a swap-in of a tensor in host memory.
  // If that may be a variable's memory, late_reads.h has more rules. REQUIRES: the fact kBuffers.
  bool MayServeFromHost(Tensor tensor, NodeId reader) const {
    return facts_.placement().node(reader) != kHostPlace && !IsLoop(reader) &&
           SharesFrame(tensor, reader) &&
           eligibility_.IsDeviceWanted(facts_.graph().device_id(reader)) &&
           eligibility_.ReasonOnHost(tensor) == v1::REASON_SWAPPED;
  }

  // Removes from `readers`, late readers of `tensor` that run, those that may not read a swap-in of
  // it. Returns REASON_SWAPPED, or the first applicable reason why the tensor cannot be swapped:
  // only loops read it, eligibility forbids it, it has no reader in its frame. `node_of` gives the
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
    const v1::Reason verdict = eligibility_.ReasonFor(tensor);
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
