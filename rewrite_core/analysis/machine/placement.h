// Placement: whether a node runs on the host or on a GPU, and on which, and in which memory its
// inputs and outputs lie, as TensorFlow's placer and kernels decide.
//
// GPUs. Different device strings for the same device are merged (`/gpu:0`, `/device:GPU:0`). A node
// without a device runs on the first GPU of its job and task; in a graph that names no GPU at all,
// such nodes are on one GPU, whose name is empty (the eligibility table counts them in the same
// way).
//
// The host. Nodes on a CPU; nodes without a device type in the job of parameter servers, `ps`, if
// the graph names no GPU of that job; ops that have no GPU kernel (input pipelines, files, strings,
// tables, summaries), regardless of the named device; fed nodes; variables of types without GPU
// kernels.
//
// Variables. Readers and updates run where the variable is, regardless of their own device.
//
// Memory. Nodes on a GPU keep strings, shapes and int32 in host memory, except for kernels that
// process int32 as data (table in the .cc).
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PLACEMENT_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/machine/gpu_index.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

class Placement {
 public:
  // Errors: those of `stop`. `graph` and `shapes` must outlive the result.
  static absl::StatusOr<Placement> Find(const Graph& graph, const Topology& topology,
                                        const Shapes& shapes, const StopToken& stop);

  // The GPUs, as spelled by their first node, in the order of those nodes.
  const std::vector<std::string>& devices() const { return devices_; }

  // Where a node runs: a GPU or the host.
  Place node(NodeId id) const { return place_[id]; }
  // Where nodes with that device run, unless their op has no GPU kernel.
  Place device(DeviceId id) const { return by_device_id_[id]; }
  // Where a node with the device string `device` would run.
  Place Resolve(absl::string_view device) const;

  // The memory in which an output lies.
  Place output(Tensor tensor) const;
  // The memory in which `reader` needs `tensor`, which it reads at its input `index`.
  Place input(NodeId reader, int32_t index, Tensor tensor) const;

 private:
  struct OpRule {
    bool on_host = false;           // No GPU kernel.
    bool host_outputs = false;      // Regardless of type.
    bool int32_on_device = false;   // Its int32 outputs are data.
    uint32_t host_inputs = 0;       // Bit i: input i is read on the host, regardless of type.
    uint32_t int32_inputs_gpu = 0;  // Bit i: an int32 there is data.
  };

  Placement(const Graph& graph, const Shapes& shapes) : graph_(&graph), shapes_(&shapes) {}
  absl::Status FindDevices(const StopToken& stop);
  // Where the variable is whose handle or reference is the first input; kNoMemory: none.
  Place HomeOfVariable(NodeId id) const;

  const Graph* graph_;
  const Shapes* shapes_;
  std::vector<std::string> devices_;
  std::vector<Place> by_device_id_;
  std::vector<OpRule> rules_;  // By Graph::op_id.
  std::vector<Place> place_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_PLACEMENT_H_
