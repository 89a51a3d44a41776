// The record that makes a rewrite reversible: the attribute `_spillway_undo` on every node that
// Spillway added or edited. Its value is a list of strings:
//
//   ["added"]                     Spillway added the node: strip removes it
//   ["call=NAME"]                 likewise, as part of a function's body: the call NAME was inlined
//   ["2=conv/Relu:0", "^t", ...]  input 2 was `conv/Relu:0`; the control input `^t` was added
//   ["raw=BYTES"]                 the node's whole field in the GraphDef was BYTES (for nodes with
//                                 an unusual encoding, which the rest would not restore)
//   ["idle", "raw=BYTES"]         likewise; the node stands for an inlined call that other nodes
//                                 depend on: it only runs if a step names it
//
// Data inputs are identified by position and control inputs by name, so strip still works after
// TensorFlow has imported and exported the graph (it then gives the same graph, in TensorFlow's
// spelling).
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_UNDO_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_UNDO_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// The record of one node, parsed.
struct UndoRecord {
  bool added = false;
  std::vector<std::pair<int, std::string>> inputs;  // Position and original spelling, by position.
  std::vector<std::string> controls;                // Names of added control inputs, without `^`.
  absl::optional<std::string> raw;                  // The original field.
  bool idle = false;                                // Only with `raw`.
  absl::optional<std::string> call;                 // For an added node: the inlined call it comes
                                                    // from.
};

// The serialized AttrValue of a record.
std::string UndoAttr(const UndoRecord& record);

// Reads the value of the attribute on node `name`. FAILED_PRECONDITION (BAD_UNDO_RECORD) if it is
// not of the form above.
absl::StatusOr<UndoRecord> ParseUndoAttr(absl::string_view name, absl::string_view value);

// Appends to `out` the GraphDef field of the node as it was before the edit; nothing for an added
// node. `node_def` is the edited node's NodeDef. `poll`, a poller of `stop`, is used because a node
// may have very many inputs.
absl::Status AppendUndone(absl::string_view name, absl::string_view node_def,
                          const UndoRecord& record, const StopToken& stop, StopPoller* poll,
                          std::string* out);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_UNDO_H_
