// Workload: one training step as the simulator runs it. It has no graph semantics, only operations
// on engines, the buffers that they read and write, and their dependences. A plain value;
// workload_builder makes it from a graph (and a plan), tests make it by hand.
//
// A tensor that crosses between a GPU and the host has a copy operation of its own and two buffers:
// one on either side. So a swap-out is kCopyOut (reads the device buffer, writes the host buffer),
// the swap-out node a kHost operation of no duration behind it, the swap-in node another one, and a
// kCopyIn (reads the host buffer, writes a new device buffer) before the readers on the device.
// Likewise, one that is written in one layout and read in another has an operation that transposes
// it, and two buffers on the same GPU.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/analysis/machine/gpu_index.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

using OpId = StrongId<struct OpIdTag>;          // An index into Workload::ops.
using BufferId = StrongId<struct BufferIdTag>;  // An index into Workload::buffers.
inline constexpr OpId kNoOp(-1);
inline constexpr BufferId kNoBufferId(-1);

enum class OpKind : uint8_t {
  kCompute,  // On a GPU's compute engine. If it takes no time, it launches no kernel.
  kHost,     // On the CPU: any number at once, except those on the host's engine.
  kCopyOut,  // On a GPU's device-to-host engine. Exactly one read and one write.
  kCopyIn,   // On a GPU's host-to-device engine. Exactly one read and one write.
};

// Where a tensor is, and whether in the other layout than the file's (grappler_layout.h). In host
// memory it never is.
struct TensorForm {
  Place place;
  bool other = false;

  friend bool operator==(TensorForm a, TensorForm b) {
    return a.place == b.place && a.other == b.other;
  }
  friend bool operator<(TensorForm a, TensorForm b) {
    return a.place != b.place ? a.place < b.place : a.other < b.other;
  }
  template <typename H>
  friend H AbslHashValue(H h, TensorForm form) {
    return H::combine(std::move(h), form.place, form.other);
  }
};

struct WorkloadOp {
  OpKind kind = OpKind::kCompute;
  Place device{0};              // Of kHost operations: kHostPlace.
  int64_t duration_ns = 0;      // Of its engine. At least 0.
  int64_t workspace_bytes = 0;  // Device memory that it needs while it runs. Only of kCompute.
  NodeId node = kNoNode;        // Its source; of a copy, the node whose output is copied.
  bool on_host_engine = false;  // kHost: after those that the engine was given before.
  bool transposes = false;      // kCompute: makes another TensorForm of an output of `node`.
  // For a plan's swap nodes and the copies of their outputs: the index of the swap in the plan, and
  // of the swap-in in the swap (-1: the swap-out). A tensor is copied to the host once, for all its
  // readers there.
  int32_t swap = -1;
  int32_t swap_in = -1;
};

// Whether it runs the node itself.
inline bool RunsNode(const WorkloadOp& op) {
  return op.kind == OpKind::kCompute && op.node != kNoNode && !op.transposes;
}

struct WorkloadBuffer {
  int64_t bytes = 0;
  Place device{0};        // Or kHostPlace.
  bool resident = false;  // Live before the step and after it (variables, constants): never freed.
  bool copied = false;    // Resident, and its first value was copied there: a reference variable.
  bool stays = false;     // No plan frees it before its last use: a list holds it.
  bool transposed = false;  // Such an operation's output.
  Tensor tensor;            // Its source: the first of its aliases.
  // For the buffers that such copies write.
  int32_t swap = -1;
  int32_t swap_in = -1;
};

// Lists of Item, by the id List, in one array.
template <typename List, typename Item>
class IndexLists {
 public:
  IndexLists() : begin_{0} {}
  // List i has the items from begin[i] to begin[i + 1].
  IndexLists(std::vector<Item> items, std::vector<int32_t> begin)
      : items_(std::move(items)), begin_(std::move(begin)) {}
  // Appends to the last list, and begins the next one.
  void Add(Item item) { items_.push_back(item); }
  void EndList() { begin_.push_back(static_cast<int32_t>(items_.size())); }
  absl::Span<const Item> operator[](List list) const {
    return absl::MakeSpan(items_).subspan(begin_[list], begin_[list + 1] - begin_[list]);
  }
  int32_t size() const { return static_cast<int32_t>(begin_.size()) - 1; }
  int64_t num_items() const { return static_cast<int64_t>(items_.size()); }

 private:
  std::vector<Item> items_;
  std::vector<int32_t> begin_;
};

struct Workload {
  std::vector<std::string> devices;  // The GPUs, as the nodes spell them.
  std::vector<WorkloadOp> ops;  // In the order of the graph's nodes, then swap nodes, then copies.
  std::vector<WorkloadBuffer> buffers;
  // By operation, of kCompute: a workspace that it takes if it is free, in bytes. Those beyond the
  // list take none.
  std::vector<int64_t> wanted_bytes;
  // By operation. All ids are in range; the operations with `waits_for` make an acyclic graph.
  IndexLists<OpId, OpId> waits_for;  // Operations, without repetition, by data and control edges.
  IndexLists<OpId, BufferId> reads;  // Buffers, without repetition: live until it has run.
  // Buffers that it allocates: each buffer that is not resident has one writer, which every reader
  // waits for, directly or not.
  IndexLists<OpId, BufferId> writes;
  // kCompute reads and writes on its own device, and host memory (shapes and the like, which do not
  // count); kHost host memory alone; copies one buffer on either side.
  //
  // By operation: which of its reads each output may reuse in place, if it has no other reader left
  // and both have the same size (TensorFlow's forward_input_or_allocate_output, which also wants
  // the same type: the maker of this list checks that). The i-th item is for the i-th buffer of
  // `writes`, kNoBufferId for none; an empty list means none for any output. An input that the
  // operation reads twice cannot be reused (it has two references). Copies reuse nothing.
  IndexLists<OpId, BufferId> reuses;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_H_
