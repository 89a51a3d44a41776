// The record that makes a rewrite reversible: the attribute `_spillway_undo` on every node that
// Spillway added or edited. Its value is a list of strings:
//
//   ["added"]                     the node is Spillway's: strip removes it
//   ["call=NAME"]                 likewise, but it is of a function's body: the call NAME was
//   inlined
//   ["2=conv/Relu:0", "^t", ...]  input 2 was spelled `conv/Relu:0`; the control input `^t` was
//                                 added
//   ["raw=BYTES"]                 the node's whole field in the GraphDef was BYTES (for nodes whose
//                                 encoding is unusual, so that the rest would not give it back)
//   ["idle", "raw=BYTES"]         likewise; the node stands for a call that was inlined, which
//   others
//                                 read: it runs only where somebody names it
//
// Positions count data inputs, names stand for control inputs: so strip still works after
// TensorFlow imported and exported the graph (then to the same graph, in TensorFlow's spelling).
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

// What strip has to do to one node.
struct UndoRecord {
  bool added = false;
  std::vector<std::pair<int, std::string>> inputs;  // Position and original spelling, by position.
  std::vector<std::string> controls;                // Names of added control inputs, without `^`.
  absl::optional<std::string> raw;                  // The original field.
  bool idle = false;                                // Only with `raw`.
  absl::optional<std::string> call;                 // Of an added node: the call it comes from.
};

// The serialized AttrValue of a record.
std::string UndoAttr(const UndoRecord& record);

// Reads the value of the attribute on node `name`. FAILED_PRECONDITION (BAD_UNDO_RECORD) if it is
// not of the form above.
absl::StatusOr<UndoRecord> ParseUndoAttr(absl::string_view name, absl::string_view value);

// Appends to `out` the field (in the GraphDef) of the node as it was before `record`. `node_def`
// is the edited node's NodeDef. Nothing for an added node. A node may have very many inputs: `poll`
// is of `stop`.
absl::Status AppendUndone(absl::string_view name, absl::string_view node_def,
                          const UndoRecord& record, const StopToken& stop, StopPoller* poll,
                          std::string* out);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_UNDO_H_
