// Buffers: which tensors share one piece of memory (an alias class), its place and size, which of
// it is resident (variables, optimizer slots, constants), and which outputs may reuse an input's
// memory in place.
//
// Only what TensorFlow's kernels actually do counts. (OpInfo::forwards is wider, to be conservative
// about variables.) The tables in the .cc have one row per family.
//
// A handle of a resource variable stands for the variable's own memory. A Merge shares the memory
// of its largest live input outside loops; inside loops, of the value on entry. An Exit shares the
// memory of the last iteration's value.
//
// Lists (Stack, TensorArray, TensorList) hold the memory of tensors written to them. The output of
// a write (the list, or the flow that stands for it) has the memory of the element; an op that
// takes an element out shares that memory. An element that a loop writes to a list exists once per
// iteration (Buffer::copies), until the last read of the list; a loop that takes elements out reads
// the list until its last iteration ends.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_BUFFERS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_BUFFERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/flow/conditionals.h"
#include "rewrite_core/analysis/flow/loops.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/machine/profile.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// The kind of memory behind a tensor.
enum class Storage : uint8_t {
  kNone,       // A handle: no memory.
  kAllocated,  // Allocated in each step.
  kVariable,   // Resident, whether or not its nodes run.
  kConstant,   // Resident if its node runs.
};

inline constexpr int32_t kNoAlias = -1;

// An index in Buffers::buffers().
using BufferIndex = StrongId<struct BufferIndexTag>;
inline constexpr BufferIndex kNoBuffer(-1);

class Buffers {
 public:
  struct Buffer {
    Tensor first;                  // The first of its aliases.
    int64_t bytes = kUnknownSize;  // The largest of its aliases; kUnknownSize if none is known.
    Place place = kNoMemory;
    Storage storage = Storage::kAllocated;
    // The number of copies: one for each iteration if a loop keeps it in a list, otherwise 1.
    int64_t copies = 1;
    bool copies_known = true;  // False: the loop count is unknown.
    bool in_list = false;      // A list holds it, so swapping a tensor would not free it.
  };

  // `profile` (may be null) has measured sizes. A Merge never shares a dead input's memory. Errors:
  // those of `stop`. `graph` must outlive the result.
  static absl::StatusOr<Buffers> Find(const Graph& graph, const Topology& topology,
                                      const Shapes& shapes, const Placement& placement,
                                      const Conditionals& conditionals, const Loops& loops,
                                      const Profile* profile, const StopToken& stop);

  // Outputs of a node: those it is known to have, and any others that are read.
  int32_t num_outputs(NodeId id) const { return first_[id + 1] - first_[id]; }
  // A dense index for each tensor, below num_tensors(). Absurd ports of unknown ops share the index
  // of the node's last output, so that memory stays proportional to the graph. REQUIRES: the tensor
  // has a reader, or its port is below num_outputs().
  int32_t index(Tensor tensor) const {
    return first_[tensor.node] + std::min(tensor.port, num_outputs(tensor.node) - 1);
  }
  int32_t num_tensors() const { return first_.back(); }

  // The input whose memory this output shares, or kNoAlias. They may lie in different memories, as
  // for an Identity on the CPU: the output then shares the memory of the copy.
  int32_t alias_input(Tensor tensor) const { return outputs_[index(tensor)].alias_input; }
  // The tensor, other than an input, whose memory this output shares: for an Exit the value of the
  // last iteration, for a StackPop the pushed tensor. kNoNode if none.
  Tensor shared(Tensor tensor) const {
    const auto found = shared_.find(index(tensor));
    return found == shared_.end() ? Tensor{kNoNode, 0} : found->second;
  }
  // The inputs whose memory this output may reuse in place if they have no other pending readers:
  // TensorFlow's forward_input_or_allocate_output. Bit i: input i. kAnyInput: all.
  uint32_t reusable_inputs(Tensor tensor) const;
  static constexpr uint32_t kAnyInput = ~uint32_t{0};

  // Bytes of this tensor, or, for a handle or reference, of its variable; may be kUnknownSize.
  int64_t bytes(Tensor tensor) const { return outputs_[index(tensor)].bytes; }
  // Whether these bytes are an upper bound, because the size depends on tensor values.
  bool is_bound(Tensor tensor) const { return outputs_[index(tensor)].is_bound; }
  Place place(Tensor tensor) const { return outputs_[index(tensor)].place; }
  Storage storage(Tensor tensor) const { return outputs_[index(tensor)].storage; }

  // The buffer behind a tensor; kNoBuffer if none.
  BufferIndex buffer_of(Tensor tensor) const { return outputs_[index(tensor)].buffer; }
  const std::vector<Buffer>& buffers() const { return buffers_; }

  // For a NextIteration: tensors that another loop wrote to lists, one element of which each
  // iteration of this loop takes out.
  absl::Span<const Tensor> held(NodeId id) const {
    const auto found = held_.find(id);
    return found == held_.end() ? absl::Span<const Tensor>() : found->second;
  }

  // Whether a node on a GPU launches a kernel there. Ops that only forward or name memory do not,
  // nor do ops that work in host memory.
  bool LaunchesKernel(NodeId id) const;
  // Whether a node on the host reads and writes memory, likewise.
  bool ComputesOnHost(NodeId id) const;

 private:
  struct Output {
    int64_t bytes = kUnknownSize;
    BufferIndex buffer = kNoBuffer;
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

  bool Computes(NodeId id, bool on_host) const;
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

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_BUFFERS_H_
