// Which nodes may run twice in a step, with the same result:
//
//   op        its row in op_table.inc says so (OpInfo::run_again)
//   types     no reference, resource or variant among inputs and outputs, except a variable's value
//   fed       not fed
//   frame     outside loops
//   variable  it reads the old value of a variable by reference, or may, as far as the graph alone
//             says (the verifier does not know sizes): the clone runs before each update of it
//
// A clone keeps all control inputs of its original, and its inputs are dead exactly if its
// original's are: so it is dead exactly if its original is. The clone of a Merge may take its dead
// inputs from originals.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CLONE_RULES_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CLONE_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// Whether the outputs of the node depend on this data input. (Batch normalization in training takes
// the moving averages, and does not look at them: fused_batch_norm_op.cc.)
bool ReadsInput(const Graph& graph, NodeId id, int32_t index);

class CloneRules {
 public:
  // Errors: those of `stop`. `facts` must outlive the result. REQUIRES: the facts kShapes,
  // kControlFlow, kBuffers and kActiveNodes.
  static absl::StatusOr<CloneRules> Find(const StepFacts& facts, const StopToken& stop);

  // kNever also if the node breaks a rule above.
  RunAgain Of(NodeId id) const;

  // Whether a node whose output lies in the memory of an input (Buffers::alias_input) may be cloned
  // in front of a reader of that, to forward a clone's output.
  bool MayCloneForwarder(NodeId id) const;

  // The updates of variables that the node may read by reference, in the step or in another one,
  // except initializers: a clone of it must run before them. Distinct, in no order that depends on
  // more than the graph. At most kMaxUpdates, as Of is kNever for a node with more.
  std::vector<NodeId> UpdatesOf(NodeId id) const;
  static constexpr size_t kMaxUpdates = 64;

  // Likewise the updates of the variable whose memory the tensor shares by reference; but there may
  // be one more than kMaxUpdates, for too many.
  std::vector<NodeId> UpdatesOf(Tensor tensor) const;

 private:
  explicit CloneRules(const StepFacts& facts) : facts_(&facts) {}
  absl::Status FindUpdates(const StopToken& stop);
  absl::Status FindShared(const StopToken& stop);
  bool IsInitializer(NodeId write, std::vector<NodeId>* seen_from, int64_t* looks,
                     StopPoller* poll) const;
  // The buffer of the variable that is read by reference; kNoBuffer if none.
  BufferIndex ReferencedBy(Tensor tensor) const;

  const StepFacts* facts_;
  // By variable, kMaxUpdates + 1 at most.
  absl::flat_hash_map<BufferIndex, std::vector<NodeId>> updates_;
  // By node that may pass the memory of variables in updates_ on (MayShareMemory): these, at most
  // kMaxUpdates + 1.
  absl::flat_hash_map<NodeId, std::vector<BufferIndex>> shared_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CLONE_RULES_H_
