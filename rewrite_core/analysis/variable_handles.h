// What the ops that take handles of variables say of these: their type and their shape. A captured
// variable, a resource that comes from outside of the graph (Placeholder) or of a function's body
// (_Arg), says little or nothing itself: that it is one stands at its reads and its updates.
//
// Likewise of lists (TensorArray, TensorList, Stack): what their elements are stands where one is
// written, often in a loop, behind where others are read.
//
// Thread safety: pure functions, values.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLE_HANDLES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLE_HANDLES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shape_context.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// How an op tells the shape of the variable whose handle is its input 0.
enum class HandleShape : uint8_t {
  kNoWord,    // It does not.
  kOutput,    // Output 0 has it.
  kOperand,   // The input `operand` has it, and so have all variables that the op takes.
  kRows,      // The same, but for the first dimension.
  kGather,    // Output 0 has rows of it, by indices of any rank (input 1).
  kGatherNd,  // The same, by indices of several dimensions.
  kScatter,   // The input 2 has rows of it, by indices of any rank (input 1).
  // Of lists.
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
// Whether it takes the handle of a variable, and not of a list.
bool TakesVariable(absl::string_view op);

// Notes in `c`, whose outputs are final, what the node says of the variables that it takes.
void NoteVariables(const VariableOp& op, ShapeContext& c);

// The tensor that a handle comes from, behind what merely hands it on, or hands on the list with an
// element more or less. At most kMaxHandleHops are followed.
inline constexpr int kMaxHandleHops = 256;
bool HandsHandleOn(absl::string_view op);
Tensor HandleOrigin(const Graph& graph, Tensor handle);

// By the node that a handle comes from.
using VariableFacts = absl::flat_hash_map<NodeId, VariableFact>;

// What both say; of shapes that contradict each other nothing remains. Elements of a list may have
// different shapes: what remains is what all have.
VariableFact JoinVariables(const VariableFact& a, const VariableFact& b, ShapePool* pool);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLE_HANDLES_H_
