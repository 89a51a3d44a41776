// The type and shape of variables, as stated by the ops that take their handles. A captured
// variable, a resource from outside the graph (Placeholder) or a function's body (_Arg), itself
// states little or nothing: its reads and updates show that it is a variable.
//
// Likewise for lists (TensorArray, TensorList, Stack): their elements are described where one is
// written, often in a loop and after other elements are read.
//
// Thread safety: pure functions, values.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_VARIABLE_HANDLES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_VARIABLE_HANDLES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes/shape_context.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// How an op determines the shape of the variable whose handle is its input 0.
enum class HandleShape : uint8_t {
  kNoWord,    // Not at all.
  kOutput,    // Output 0 has it.
  kOperand,   // The input `operand` has it, and so have all variables that the op takes.
  kRows,      // The same, except for the first dimension.
  kGather,    // Output 0 has rows of it, by indices of any rank (input 1).
  kGatherNd,  // The same, by indices of several dimensions.
  kScatter,   // The input 2 has rows of it, by indices of any rank (input 1).
  // For lists:
  kElement,  // The input `operand` is an element.
  kUnpack,   // Its rows are.
  kPieces,   // Groups of its rows are.
  kList,     // The elements of that list are.
};

struct VariableOp {
  absl::string_view op;
  absl::string_view dtype;  // The attribute with the variable's type.
  HandleShape shape = HandleShape::kNoWord;
  int operand = 0;
};

// Null if the op takes no handle of a variable or list.
const VariableOp* FindVariableOp(absl::string_view op);
// Whether the op takes the handle of a variable, not of a list.
bool TakesVariable(absl::string_view op);

// Records in `c`, whose outputs are final, the node's statements about the variables that it takes.
void NoteVariables(const VariableOp& op, ShapeContext& c);

// The tensor that a handle originates from, followed back through ops that forward the handle, or
// forward the list with an element more or less. Follows at most kMaxHandleHops.
inline constexpr int kMaxHandleHops = 256;
bool ForwardsHandle(absl::string_view op);
Tensor HandleOrigin(const Graph& graph, Tensor handle);

// By the node that a handle originates from.
using VariableFacts = absl::flat_hash_map<NodeId, VariableFact>;

// Merges two facts; conflicting shapes become unknown. Elements of a list may have different
// shapes: their common part remains.
VariableFact JoinVariables(const VariableFact& a, const VariableFact& b, ShapePool* pool);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_VARIABLE_HANDLES_H_
