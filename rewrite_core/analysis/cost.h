// Costs: how long each node runs, by a roofline, in integer nanoseconds:
//
//   launch_s + max(operations / (peak_flops * efficiency), bytes / (mem_bytes_per_s * mem_eff))
//
// where a given efficiency of the kernel's class (Hardware::KernelRate) replaces that of
// operations, and of kernels without operations mem_eff.
//
// Operations are only counted for convolutions and matrix products; a multiply-add is two. Bytes
// are those of inputs and outputs, each read or written once, or as often as its row in the table
// says. Nodes that launch no kernel (Buffers::LaunchesKernel) take no time. If a size is unknown,
// only the launch counts, and the node is counted as unknown. A function call (If, While,
// PartitionedCall) is one node, of unknown cost unless its body bounds it (call_cost.h).
//
// A node on the host takes bytes / host_mem_bytes_per_s on the host's engine if it reads and writes
// kLeastHostBytes or more, otherwise no time: also if its size is unknown, or if it needs neither a
// variable nor a GPU, which is an input pipeline and runs ahead of the step.
//
// Unless Step.kernel_memory is OFF, kernels' memory beside their outputs (kernel_temporaries.h) is
// part of their workspace, and the bytes of these copies take time on top.
//
// A profile replaces the estimates for the nodes that it contains, including those on the host.
//
// Thread safety: immutable after Estimate.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_COST_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_COST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/grappler_layout.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/machine/profile.h"
#include "rewrite_core/analysis/memory/buffers.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// The maximum duration of an operation (100 s), so that the times of any graph add up within 63
// bits.
inline constexpr int64_t kMaxDurationNs = 100'000'000'000;

// Rounds `seconds` to nanoseconds, clamped to 0 to kMaxDurationNs; NaN gives kMaxDurationNs.
int64_t ToNanoseconds(double seconds);

// The time of one copy of `bytes` at `bytes_per_s`; if unknown, its latency alone.
int64_t CopyNanoseconds(const Hardware& hardware, double bytes_per_s, int64_t bytes);

// The time of a Transpose of `bytes`, on a GPU; if unknown, its launch alone.
int64_t TransposeNanoseconds(const Hardware& hardware, int64_t bytes);

// INVALID_ARGUMENT: BAD_OPTION if the workspace of a convolution is negative or above 2^50 bytes,
// or its limit no whole number of MiB in that range; CONFLICTING_OPTIONS for both, and for a limit
// with kernel_memory OFF; UNKNOWN_OPTION for an unknown kernel_memory.
absl::Status CheckKernelMemory(const v1::Step& step);

// The limits of cuDNN's workspaces, in bytes, that a step may be simulated with, the one preferred
// first. Empty: none is.
std::vector<int64_t> WorkspaceLimits(const v1::Step& step);

// Whether kernels' temporaries count.
bool CountsTemporaries(const v1::Step& step);

// A smaller operation is done before it matters.
inline constexpr double kLeastHostBytes = 1 << 20;

struct NodeCost {
  int64_t duration_ns = 0;
  double flops = 0;         // Operations; 0 for nodes that only move data.
  double memory_bytes = 0;  // Read and written.
  int64_t workspace_bytes = 0;
  bool is_known = true;         // False: a size was missing, or is_call.
  bool on_host_engine = false;  // On the host, one after another.
  bool is_call = false;         // It runs functions of the library, and no body bounds it.
};

class Costs {
 public:
  // Reads kernel_memory of `step`, and convolution_workspace_bytes: the temporary memory of each
  // convolution and each of its gradients. `profile` may be null. Errors: those of
  // CheckKernelMemory and of `stop`.
  static absl::StatusOr<Costs> Estimate(const Graph& graph, const Shapes& shapes,
                                        const Placement& placement, const Buffers& buffers,
                                        const Hardware& hardware, const GrapplerLayout& layout,
                                        const v1::Step& step, const Profile* profile,
                                        const StopToken& stop);

  const NodeCost& operator[](NodeId id) const { return nodes_[id]; }
  // A workspace beside NodeCost::workspace_bytes that it takes if it is free, in bytes.
  int64_t wanted_bytes(NodeId id) const {
    return static_cast<size_t>(id) < wanted_bytes_.size() ? wanted_bytes_[id] : 0;
  }

 private:
  std::vector<NodeCost> nodes_;
  std::vector<int64_t> wanted_bytes_;  // Up to the last node that wants one: few graphs have any.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_COST_H_
