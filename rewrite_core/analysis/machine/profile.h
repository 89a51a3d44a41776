// Profile: measurements of a real run of a graph, from a serialized tensorflow.RunMetadata or
// StepStats: nanoseconds and workspace per node, and allocated bytes per tensor. It replaces
// estimates.
//
// Times. Entries of a GPU's streams (`/device:GPU:0/stream:all`, or single streams if that is
// missing), if any, are the kernels' own times, and the only ones used for nodes on that GPU;
// otherwise the device's own entries are used, from the start of the op to its end. Several entries
// for one node (kernels of one op, loop iterations, steps) add up within one device.
//
// Workspace. The peak bytes of an op's allocators, less the bytes still live when it ends: its
// outputs. On a GPU, only the GPU's allocator counts (`GPU_0_bfc`).
//
// The bytes are untrusted. Thread safety: immutable after Read.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PROFILE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PROFILE_H_

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
  // INVALID_ARGUMENT (BAD_OPTION) if `bytes` is neither message, has no node, or belongs to another
  // graph: fewer than half of the nodes that it names are in `graph` (nodes that TensorFlow adds
  // when it partitions a graph do not count). The error names a missing node.
  static absl::StatusOr<Profile> Read(absl::string_view bytes, const Graph& graph,
                                      const StopToken& stop);

  // Time of a node; kNotMeasured if it did not run.
  int64_t duration_ns(NodeId id) const { return duration_ns_[id]; }
  // Bytes allocated for a tensor (the maximum over several runs); -1 (kUnknownSize) if the profile
  // does not have them.
  int64_t allocated_bytes(Tensor tensor) const {
    const auto it = allocated_.find(Key(tensor));
    return it == allocated_.end() ? -1 : it->second;
  }

  // Bytes that a node used besides its outputs while it ran (the maximum over several runs);
  // kNotMeasured if the profile does not have them.
  int64_t workspace_bytes(NodeId id) const { return workspace_bytes_[id]; }

 private:
  friend class ProfileReader;
  static int64_t Key(Tensor tensor) { return int64_t{tensor.node} << 32 | tensor.port; }

  std::vector<int64_t> duration_ns_;
  std::vector<int64_t> workspace_bytes_;
  absl::flat_hash_map<int64_t, int64_t> allocated_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PROFILE_H_
