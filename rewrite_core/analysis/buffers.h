// Buffers: which tensors share one piece of memory (an alias class), where it lies, how large it
// is, what of it is there before the step (variables, optimizer slots, constants), and which
// outputs may reuse an input's memory in place.
//
// Only what TensorFlow's kernels really do counts. (OpInfo::forwards is wider: it is there to be
// careful with variables.) The tables in the .cc have a row per family.
//
// A handle of a resource variable stands for the variable's own memory. A Merge shares the memory
// of its largest live input, outside of loops; in them, of what enters. An Exit shares that of the
// last iteration.
//
// Lists (Stack, TensorArray, TensorList) hold the memory of what is written to them. Who writes
// gives out, as the list or as the flow that stands for it, the memory of the element; who takes an
// element out shares it. What a loop writes to a list is there as often as the loop runs
// (Buffer::copies), until nobody reads the list any more; a loop that takes elements out reads it
// until its last iteration ends.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_BUFFERS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_BUFFERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/conditionals.h"
#include "rewrite_core/analysis/loops.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/analysis/profile.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// What makes the memory behind a tensor.
enum class Storage : uint8_t {
  kNone,       // A handle, nothing to hold.
  kAllocated,  // Each step anew.
  kVariable,   // Resident, whether its nodes run or not.
  kConstant,   // Resident if its node runs.
};

inline constexpr int32_t kNoAlias = -1;
inline constexpr int32_t kNoBuffer = -1;

class Buffers {
 public:
  struct Buffer {
    Tensor first;                  // The first of its aliases.
    int64_t bytes = kUnknownSize;  // The largest of them; kUnknownSize if none is known.
    Place place = kNoMemory;
    Storage storage = Storage::kAllocated;
    // How many of them there are: 1, or of what a loop keeps in a list one for each iteration.
    int64_t copies = 1;
    bool copies_known = true;  // False: nobody knows how often the loop runs.
    bool in_list = false;      // A list holds it: a swap of a tensor would not free it.
  };

  // `profile` (may be null) has sizes that were measured. A Merge shares no dead input's memory.
  // Errors: those of `stop`. `graph` must outlive the result.
  static absl::StatusOr<Buffers> Find(const Graph& graph, const Topology& topology,
                                      const Shapes& shapes, const Placement& placement,
                                      const Conditionals& conditionals, const Loops& loops,
                                      const Profile* profile, const StopToken& stop);

  // Outputs of a node: those it is known to have, and those that are read.
  int32_t num_outputs(NodeId id) const { return first_[id + 1] - first_[id]; }
  // A dense number for each tensor, below num_tensors(). Absurd ports of ops that nobody knows
  // share the number of the node's last output, so that memory stays in proportion to the graph.
  // REQUIRES: the tensor has a reader, or is among num_outputs().
  int32_t index(Tensor tensor) const {
    return first_[tensor.node] + std::min(tensor.port, num_outputs(tensor.node) - 1);
  }
  int32_t num_tensors() const { return first_.back(); }

  // The input whose memory this output shares, or kNoAlias. They may lie in different memories, as
  // those of an Identity on the CPU: it then shares the copy's.
  int32_t alias_input(Tensor tensor) const { return outputs_[index(tensor)].alias_input; }
  // The tensor, not an input, whose memory this output shares: of an Exit the value of the last
  // iteration, of a StackPop what was pushed. kNoNode if there is none.
  Tensor shared(Tensor tensor) const {
    const auto found = shared_.find(index(tensor));
    return found == shared_.end() ? Tensor{kNoNode, 0} : found->second;
  }
  // The inputs whose memory this output may reuse in place if nobody else is to read them:
  // TensorFlow's forward_input_or_allocate_output. Bit i: input i. kAnyInput: each.
  uint32_t reusable_inputs(Tensor tensor) const;
  static constexpr uint32_t kAnyInput = ~uint32_t{0};

  // Bytes of this tensor, and of a handle or reference those of its variable; kUnknownSize.
  int64_t bytes(Tensor tensor) const { return outputs_[index(tensor)].bytes; }
  // Whether these bytes are an upper bound: the size hangs on the values of tensors.
  bool is_bound(Tensor tensor) const { return outputs_[index(tensor)].is_bound; }
  Place place(Tensor tensor) const { return outputs_[index(tensor)].place; }
  Storage storage(Tensor tensor) const { return outputs_[index(tensor)].storage; }

  // The buffer behind a tensor; kNoBuffer if there is none.
  int32_t buffer_of(Tensor tensor) const { return outputs_[index(tensor)].buffer; }
  const std::vector<Buffer>& buffers() const { return buffers_; }

  // Of a NextIteration: what another loop has written to lists of which this one's iterations each
  // take an element.
  absl::Span<const Tensor> held(NodeId id) const {
    const auto found = held_.find(id);
    return found == held_.end() ? absl::Span<const Tensor>() : found->second;
  }

  // Whether a node on a GPU launches a kernel there. Not so what only hands memory on or names it,
  // nor what works in host memory.
  bool LaunchesKernel(NodeId id) const;

 private:
  struct Output {
    int64_t bytes = kUnknownSize;
    int32_t buffer = kNoBuffer;
    int32_t alias_input = kNoAlias;
    Place place = kNoMemory;
    Storage storage = Storage::kNone;
    bool is_bound = false;
  };
  struct Reuse {
    int32_t output = -1;
    uint32_t inputs = 0;
  };
  friend class BufferFinder;

  explicit Buffers(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  std::vector<int32_t> first_;
  std::vector<Output> outputs_;
  std::vector<Buffer> buffers_;
  absl::flat_hash_map<int32_t, Tensor> shared_;  // By index.
  absl::flat_hash_map<NodeId, std::vector<Tensor>> held_;
  std::vector<Reuse> reuse_;       // By Graph::op_id.
  std::vector<bool> bookkeeping_;  // By Graph::op_id.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_BUFFERS_H_
