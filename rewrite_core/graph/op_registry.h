// What Spillway knows of TensorFlow's op types: their outputs, and what the executor does with the
// few that steer control flow.
//
// Thread safety: everything here is constant.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace spillway::core {

// The part an op has in TensorFlow's dataflow control flow.
enum class ControlFlow : uint8_t {
  kNone,
  kSwitch,         // Switch, RefSwitch, _SwitchN: one output is alive, the others are dead.
  kMerge,          // Merge, RefMerge: alive as soon as one data input is.
  kEnter,          // Enter, RefEnter: into a loop frame.
  kExit,           // Exit, RefExit: out of it.
  kNextIteration,  // NextIteration, RefNextIteration: the only legal back edge starts here.
  kLoopCond,
};

struct OpInfo {
  absl::string_view name;
  // Output signature in the form that op_table.inc explains.
  absl::string_view outputs;
  // Known to TensorFlow 2.15. If not, nothing is known of its outputs.
  bool known = false;
  ControlFlow control_flow = ControlFlow::kNone;
  // An output may be the very buffer of an input (Identity, Reshape, slices along dimension 0...).
  bool forwards = false;
  // All outputs live in host memory on a GPU too (Shape, Size, Rank, ...).
  bool host_outputs = false;
  // The number of outputs, where it does not depend on attributes; otherwise -1.
  int fixed_output_count = -1;
};

// Whether ops of this type stand for a variable: its reference, or a handle to it.
bool IsVariableOp(absl::string_view op);

// What is known of the op type `name`; `known` is false if it is none of TensorFlow's. The result's
// `name` is then empty.
OpInfo FindOp(absl::string_view name);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_
