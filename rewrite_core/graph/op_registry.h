// Spillway's knowledge of TensorFlow's op types: their outputs, and how the executor treats the few
// that implement control flow.
//
// Thread safety: everything here is constant.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace spillway::core {

// The role of an op in TensorFlow's dataflow control flow.
enum class ControlFlow : uint8_t {
  kNone,
  kSwitch,         // Switch, RefSwitch, _SwitchN: one output is alive, the others are dead.
  kMerge,          // Merge, RefMerge: alive as soon as one data input is.
  kEnter,          // Enter, RefEnter: into a loop frame.
  kExit,           // Exit, RefExit: out of it.
  kNextIteration,  // NextIteration, RefNextIteration: the only legal back edge starts here.
  kLoopCond,
};

// Whether an output may share the buffer of an input (set_output(i, input(j)) in its kernel, or a
// Tensor::Slice of it). In-place reuse of a buffer without other users (Relu and the like) does not
// count. Too many are safe, a missing one is not.
enum class Forwards : uint8_t {
  kNo,
  kMaybe,
  kByInput1,  // It depends on the value of input 1: the paddings, the permutation.
  kAlways,    // Input 0, or each input.
};

// The result of an op when recomputed in a step.
enum class RunAgain : uint8_t {
  // It may not be: ops with state or an effect, fed ones, writes into inputs, functions, nodes that
  // only order others, and sums in any order or writes of several to one place, which differ from
  // run to run.
  kNever,
  // The same value; it may differ in the last bits if a library chooses its algorithm by the memory
  // that is left (cuDNN, cuBLAS), or sums in any order.
  kSameValue,
  // The same bits: elementwise ops, normalization, activations, pooling, softmax, casts,
  // reductions, data movement, Switch and Merge.
  kSameBits,
};

struct OpInfo {
  absl::string_view name;
  // Output signature and names of outputs in the form described in op_table.inc.
  absl::string_view outputs;
  absl::string_view output_names;
  // It has state, or an effect besides its outputs (OpDef.is_stateful).
  bool is_stateful = false;
  // Known to TensorFlow 2.15. If not, its outputs are unknown.
  bool known = false;
  ControlFlow control_flow = ControlFlow::kNone;
  Forwards forwards = Forwards::kNo;
  RunAgain run_again = RunAgain::kNever;
  // All outputs live in host memory on a GPU too (Shape, Size, Rank, ...).
  bool host_outputs = false;
  // The number of outputs if it does not depend on attributes; otherwise -1.
  int fixed_output_count = -1;
};

// Whether ops of this type stand for a variable: its reference, or a handle to it.
bool IsVariableOp(absl::string_view op);

// Looks up the op type `name`. If TensorFlow has no such op, `known` is false and the result's
// `name` is empty.
OpInfo FindOp(absl::string_view name);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_OP_REGISTRY_H_
