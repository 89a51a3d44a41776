#include "rewrite_core/graph/strip.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/undo.h"

namespace spillway::core {

absl::Status StripTo(const Graph& graph, const StopToken& stop,
                     const std::function<bool(absl::string_view)>& sink) {
  const absl::string_view bytes = graph.bytes();
  size_t done = 0;
  StopPoller poll(stop);
  std::string restored;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strip");
    if (!graph.has_undo(id)) continue;
    auto record = ParseUndoAttr(graph.name(id), graph.attr(id, kUndoAttr).value_or(""));
    if (!record.ok()) return record.status();
    const absl::string_view field = graph.node_field(id);
    const size_t begin = field.data() - bytes.data();
    if (begin > done && !sink(bytes.substr(done, begin - done))) return absl::OkStatus();
    done = begin + field.size();
    restored.clear();
    absl::Status status =
        AppendUndone(graph.name(id), graph.node_bytes(id), *record, stop, &poll, &restored);
    if (!status.ok()) return status;
    if (!restored.empty() && !sink(restored)) return absl::OkStatus();
  }
  if (done < bytes.size()) sink(bytes.substr(done));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Strip(const Graph& graph, const StopToken& stop) {
  const auto earlier = FindEarlierRewrite(graph, stop);
  if (!earlier.ok()) return earlier.status();
  if (!earlier->ours && earlier->foreign_node != kNoNode) {
    const absl::string_view name = graph.name(earlier->foreign_node);
    return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_FOREIGN_REWRITE,
                 absl::StrCat("node ", Quoted(name),
                              " comes from another program (TFLMS), which keeps no record to undo "
                              "it by; start from the original graph"),
                 {{"node", name}});
  }
  std::string out;
  out.reserve(graph.bytes().size());
  absl::Status status = StripTo(graph, stop, [&out](absl::string_view piece) {
    out.append(piece.data(), piece.size());
    return true;
  });
  if (!status.ok()) return status;
  return out;
}

bool HasUndoRecords(const Graph& graph) {
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (graph.has_undo(id)) return true;
  }
  return false;
}

absl::StatusOr<EarlierRewrite> FindEarlierRewrite(const Graph& graph, const StopToken& stop) {
  EarlierRewrite earlier;
  earlier.ours = HasUndoRecords(graph);
  // Examines every node's name, but only one character in eight of names without the mark.
  const absl::string_view kMark = kSwapNodeMark;
  const std::boyer_moore_horspool_searcher mark(kMark.begin(), kMark.end());
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes() && !earlier.ours; ++id) {
    if (poll.Tick()) return stop.status("parse");
    const absl::string_view name = graph.name(id);
    if (std::search(name.begin(), name.end(), mark) == name.end()) continue;
    earlier.foreign_node = id;
    break;
  }
  return earlier;
}

bool IsAddedNode(const Graph& graph, NodeId id) {
  if (!graph.has_undo(id)) return false;
  const auto record = ParseUndoAttr(graph.name(id), graph.attr(id, kUndoAttr).value_or(""));
  return record.ok() && record->added && !record->call;
}

bool IsInlinedNode(const Graph& graph, NodeId id) {
  if (!graph.has_undo(id)) return false;
  const auto record = ParseUndoAttr(graph.name(id), graph.attr(id, kUndoAttr).value_or(""));
  return record.ok() && record->call.has_value();
}

bool IsInlinedCall(const Graph& graph, NodeId id) {
  if (!graph.has_undo(id) || (graph.op(id) != "IdentityN" && graph.op(id) != "NoOp")) return false;
  const auto record = ParseUndoAttr(graph.name(id), graph.attr(id, kUndoAttr).value_or(""));
  if (!record.ok() || !record->raw) return false;
  // The original node: another op.
  WireReader field(*record->raw);
  return field.Next() && field.IsBytes(graph_def::kNode) &&
         LastPayload(field.bytes(), node_def::kOp) != graph.op(id);
}

bool IsIdleCall(const Graph& graph, NodeId id) {
  if (!graph.has_undo(id)) return false;
  const auto record = ParseUndoAttr(graph.name(id), graph.attr(id, kUndoAttr).value_or(""));
  return record.ok() && record->idle;
}

}  // namespace spillway::core
