// A function's body for inlining: as a graph, with the properties that TensorFlow requires of a
// function before inlining it.
//
// Thread safety: immutable once made.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_INLINE_BODY_H_
#define SPILLWAY_REWRITE_CORE_INLINE_INLINE_BODY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/shapes/function_body.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/inline/function_table.h"

namespace spillway::core {

// The type of an argument or a result: fixed, or given by an attribute of the call.
struct BorderType {
  DataType dtype = kDtInvalid;
  absl::string_view attr;
};

struct InlineBody {
  std::string bytes;            // `graph` points into them.
  absl::optional<Graph> graph;  // The arguments, nodes `_Arg`, are its first nodes.
  std::vector<BorderType> arguments;
  std::vector<BorderType> results;
  // CallInliner's facts about the types of all results: whether one is none, and the attributes
  // that give others. A call may have very many results, and a body very many calls.
  bool has_bad_result = false;
  absl::flat_hash_set<absl::string_view> result_attrs;
  std::vector<Tensor> result_tensors;
  std::vector<bool> returns_control;    // Per node: the end of the call waits for it.
  std::vector<NodeId> control_returns;  // The same nodes, in order.
  std::vector<CallKind> kinds;          // By op id.
  std::vector<int32_t> last_port;       // Per calling node: the last port read, or -1.
  // Per node: the contiguous fields of its NodeDef that every call copies unchanged: all except
  // name, op, inputs and device. Empty if some need the call's name, or are not contiguous.
  std::vector<absl::string_view> copied;
  bool has_attrs = false;  // FunctionTable::Function::has_attrs.

  // As in ValidateSideEffectsExecution and ValidateNoDeadOutputs of TensorFlow's
  // grappler/optimizers/function_optimizer.cc: whether some node has an effect besides its outputs;
  // whether each of these leads to a control return, and to a result; whether a result may be dead
  // while the call is alive.
  bool has_effects = false;
  bool effects_reach_controls = true;
  bool effects_reach_results = true;
  bool has_dead_results = false;
};

// Whether the current field of a NodeDef is rewritten for each call: name, op, inputs, device.
inline bool IsWrittenAnew(const WireReader& reader) {
  return reader.field() >= node_def::kName && reader.field() <= node_def::kDevice;
}
// Whether an attribute names nodes or loop frames, which are prefixed with the call's name.
inline bool NamesNodes(absl::string_view key) { return key == "_class" || key == "frame_name"; }

// Null if the body cannot be read (list arguments, inputs that name nothing, a cycle), or if
// stopped (check `stop`). `results`: of the table's functions, for all bodies.
std::unique_ptr<InlineBody> ReadBody(const FunctionTable& table, int32_t function,
                                     const StopToken& stop, FunctionResults* results);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_INLINE_BODY_H_
