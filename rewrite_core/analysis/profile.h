// Profile: what a real run of a graph measured, from a serialized tensorflow.RunMetadata or
// StepStats: nanoseconds and workspace per node, and allocated bytes per tensor. It replaces
// estimates.
//
// Times. Where there are entries of a GPU's streams (`/device:GPU:0/stream:all`, or single streams
// if that is missing), they are the kernels' own times and the only ones taken for what runs there;
// otherwise those of the devices' own entries, from the start of the op to its end. Several entries
// of one node (kernels of one op, turns of a loop, steps) add up within one device.
//
// Workspace. What an op's allocators had at most, less what is left of that when it ends: its
// outputs. On a GPU, of the GPU's allocator alone (`GPU_0_bfc`).
//
// The bytes are untrusted. Thread safety: immutable after Read.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_PROFILE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_PROFILE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

inline constexpr int64_t kNotMeasured = -1;

class Profile {
 public:
  // INVALID_ARGUMENT (BAD_OPTION) if `bytes` is neither message, has no node, or is of another
  // graph: fewer than half of the nodes that it names are in `graph` (nodes that TensorFlow adds
  // when it partitions a graph do not count). Names one that is not.
  static absl::StatusOr<Profile> Read(absl::string_view bytes, const Graph& graph,
                                      const StopToken& stop);

  // Time of a node; kNotMeasured if it did not run.
  int64_t duration_ns(NodeId id) const { return duration_ns_[id]; }
  // Bytes that the allocator gave for a tensor (of several runs the most); -1 (kUnknownSize) if the
  // profile does not say.
  int64_t allocated_bytes(Tensor tensor) const {
    const auto it = allocated_.find(Key(tensor));
    return it == allocated_.end() ? -1 : it->second;
  }

  // Bytes that a node took besides its outputs while it ran (of several runs the most);
  // kNotMeasured if the profile does not say.
  int64_t workspace_bytes(NodeId id) const { return workspace_bytes_[id]; }

  // How many nodes of the graph have a time, and how many tensors have bytes.
  int32_t nodes_measured() const { return nodes_measured_; }
  int32_t tensors_measured() const { return static_cast<int32_t>(allocated_.size()); }

 private:
  friend class ProfileReader;
  static int64_t Key(Tensor tensor) { return int64_t{tensor.node} << 32 | tensor.port; }

  std::vector<int64_t> duration_ns_;
  std::vector<int64_t> workspace_bytes_;
  absl::flat_hash_map<int64_t, int64_t> allocated_;
  int32_t nodes_measured_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_PROFILE_H_
