#include "rewrite_core/graph/graph_edit.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/undo.h"

namespace spillway::core {
namespace {

// Takes about as long to copy as a poller's stride of steps.
constexpr size_t kCopiedAtOnce = size_t{256} << 10;

// Inputs that are compared one by one for each control input that is added. (Most nodes have
// fewer.)
constexpr size_t kFewInputs = 16;

absl::Status BadEdit(absl::string_view what, absl::string_view node) {
  return absl::InternalError(absl::StrCat("edit of node ", Quoted(node), ": ", what));
}

// The name in `node`, `node:port` or `^node`.
absl::string_view SourceName(absl::string_view spelling) {
  if (!spelling.empty() && spelling[0] == '^') return spelling.substr(1);
  return spelling.substr(0, spelling.rfind(':'));
}

// The edits of one node: runs of the sorted lists.
struct NodeEdits {
  NodeId node;
  absl::Span<const GraphEdit::Rewire> rewires;
  absl::Span<const GraphEdit::Control> controls;
  const GraphEdit::Placing* placing = nullptr;
};

// Whether `placing` replaces this field.
bool IsReplaced(const WireReader& field, const GraphEdit::Placing& placing) {
  if (field.IsBytes(node_def::kDevice)) return placing.device.has_value();
  return placing.colocations.has_value() && field.IsBytes(node_def::kAttr) &&
         ReadAttrEntry(field.bytes()).key == kClassAttr;
}

void AppendPlacing(const GraphEdit::Placing& placing, std::string* out) {
  if (placing.device && !placing.device->empty()) {
    AppendBytesField(node_def::kDevice, *placing.device, out);
  }
  if (placing.colocations && !placing.colocations->empty()) {
    AppendAttrField(kClassAttr, StringListAttr(*placing.colocations), out);
  }
}

// One node may have very many inputs and edits, so the following functions poll; once stopped they
// return partial results, and AppendEdited reports it.

// Adds the changes by `edits` to the node's existing record, whose originals are older.
UndoRecord MergedRecord(const NodeEdits& edits, const std::vector<absl::string_view>& inputs,
                        UndoRecord record, StopPoller* poll) {
  if (record.added || record.raw) return record;
  const auto older = record.inputs;  // By position.
  for (const auto& rewire : edits.rewires) {
    if (poll->Tick()) return record;
    const auto it =
        std::lower_bound(older.begin(), older.end(), rewire.index,
                         [](const auto& entry, int index) { return entry.first < index; });
    if (it != older.end() && it->first == rewire.index) continue;
    record.inputs.emplace_back(rewire.index, std::string(inputs[rewire.index]));
  }
  if (!older.empty()) PolledSort(record.inputs.begin(), record.inputs.end(), std::less<>(), poll);
  for (const auto& control : edits.controls) {
    if (poll->Tick()) return record;
    record.controls.push_back(control.source);
  }
  return record;
}

// The NodeDef after `edits`, with the given record in it.
std::string EditedNode(absl::string_view node_def, const NodeEdits& edits, size_t num_inputs,
                       const UndoRecord& record, StopPoller* poll) {
  std::string out;
  out.reserve(node_def.size() + 64 * (1 + edits.rewires.size() + edits.controls.size()));
  const auto append_controls = [&] {
    for (const auto& control : edits.controls) {
      if (poll->Tick()) return;
      AppendBytesField(node_def::kInput, absl::StrCat("^", control.source), &out);
    }
  };
  size_t position = 0;
  auto rewire = edits.rewires.begin();
  WireReader reader(node_def);
  while (reader.Next()) {
    if (poll->Tick()) return out;
    if (IsUndoField(reader)) continue;
    if (edits.placing != nullptr && IsReplaced(reader, *edits.placing)) continue;
    if (reader.IsBytes(node_def::kInput) && rewire != edits.rewires.end() &&
        rewire->index == static_cast<int>(position)) {
      AppendBytesField(node_def::kInput, rewire->spelling, &out);
      ++rewire;
    } else {
      out.append(reader.whole().data(), reader.whole().size());
    }
    if (reader.IsBytes(node_def::kInput) && ++position == num_inputs) append_controls();
  }
  // A node without inputs gets them at its end, since their order relative to other fields does not
  // matter.
  if (num_inputs == 0) append_controls();
  if (edits.placing != nullptr) AppendPlacing(*edits.placing, &out);
  AppendAttrField(kUndoAttr, UndoAttr(record), &out);
  return out;
}

// Appends the edited node's field.
absl::Status AppendEdited(const Graph& graph, const NodeEdits& edits, const StopToken& stop,
                          StopPoller* poll, std::string* out) {
  const absl::string_view name = graph.name(edits.node);
  const absl::string_view node_def = graph.node_bytes(edits.node);
  std::vector<absl::string_view> inputs;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (poll->Tick()) return stop.status("apply");
    if (reader.IsBytes(node_def::kInput)) inputs.push_back(reader.bytes());
  }
  // The node that strip must restore: the current one, or the one from before an earlier rewrite.
  std::string original(graph.node_field(edits.node));
  UndoRecord record;
  if (graph.has_undo(edits.node)) {
    auto earlier = ParseUndoAttr(name, graph.attr(edits.node, kUndoAttr).value_or(""));
    if (!earlier.ok()) return earlier.status();
    record = *std::move(earlier);
    original.clear();
    absl::Status s = AppendUndone(name, node_def, record, stop, poll, &original);
    if (!s.ok()) return s;
  }
  // Where a removed field stood is known from the whole node alone.
  if (edits.placing != nullptr && !record.added) {
    record = UndoRecord();
    record.raw = original;
  }
  record = MergedRecord(edits, inputs, std::move(record), poll);
  std::string edited = EditedNode(node_def, edits, inputs.size(), record, poll);
  if (absl::Status s = stop.status("apply"); !s.ok()) return s;
  std::string undone;
  absl::Status status = AppendUndone(name, edited, record, stop, poll, &undone);
  if (absl::Status s = stop.status("apply"); !s.ok()) return s;
  if (!status.ok() || undone != original) {
    // Re-encoding would not restore this encoding, so keep the original bytes.
    UndoRecord raw;
    raw.raw = original;
    edited = EditedNode(node_def, edits, inputs.size(), raw, poll);
    if (absl::Status s = stop.status("apply"); !s.ok()) return s;
  }
  AppendBytesField(graph_def::kNode, edited, out);
  return absl::OkStatus();
}

}  // namespace

std::string GraphEdit::UniqueName(absl::string_view wanted) {
  std::string name(wanted);
  const Asked given = {0, true};
  if (graph_.Find(name) == kNoNode && names_.try_emplace(name, given).second) return name;
  // Names with the same stem are requested in order, so remember the last number.
  int number = names_[name].last_number;
  do {
    name = absl::StrCat(wanted, "_", ++number);
  } while (graph_.Find(name) != kNoNode || !names_.try_emplace(name, given).second);
  names_.find(wanted)->second.last_number = number;
  return name;
}

GraphEdit::GraphEdit(const Graph& graph) : graph_(graph) {
  // Real rewrites add a fifth of the graph. A hostile one can make every new node repeat a device
  // and a trigger of a megabyte.
  constexpr int64_t kMaxGrowth = 16;
  constexpr int64_t kAlwaysAllowed = int64_t{64} << 20;
  const auto size = static_cast<int64_t>(graph.bytes().size());
  max_new_bytes_ = std::min(kMaxMessageBytes - size, std::max(kAlwaysAllowed, kMaxGrowth * size));
  UndoRecord record;
  record.added = true;
  added_attr_ = UndoAttr(record);
}

void GraphEdit::AddNode(NodeSpec node) {
  if (too_large_) return;
  node.attrs.emplace_back(kUndoAttr, added_attr_);
  AppendNodeField(node, &new_nodes_);
  ++num_new_nodes_;
  Fits(0);
}

bool GraphEdit::Fits(size_t bytes) {
  if (too_large_) return false;
  edit_bytes_ += static_cast<int64_t>(bytes);
  too_large_ = static_cast<int64_t>(new_nodes_.size()) + edit_bytes_ > max_new_bytes_;
  if (!too_large_) return true;
  new_nodes_ = std::string();
  rewires_ = {};
  controls_ = {};
  placings_ = {};
  return false;
}

void GraphEdit::RewireInput(NodeId node, int index, std::string spelling) {
  if (Fits(spelling.size())) rewires_.push_back({node, index, std::move(spelling)});
}

void GraphEdit::PlaceNode(Placing placing) {
  // The undo record has the whole node.
  if (Fits(graph_.node_field(placing.node).size() + placing.device.value_or("").size())) {
    placings_.push_back(std::move(placing));
  }
}

absl::Status GraphEdit::TooLarge() const {
  return Error(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
      absl::StrCat("the rewritten graph would be larger than TensorFlow can read (",
                   BytesText(kMaxMessageBytes), "), or its new nodes larger than ",
                   BytesText(max_new_bytes_),
                   "; swap fewer tensors (n_tensors), shorten names and devices of megabytes, or "
                   "keep constants out of the graph"),
      {{"value", absl::StrCat(max_new_bytes_)}});
}

void GraphEdit::AddControlInput(NodeId node, absl::string_view source, v1::EdgeKind kind) {
  absl::Span<const Tensor> inputs;
  if (node >= 0 && node < graph_.num_nodes()) inputs = graph_.inputs(node);
  if (inputs.size() <= kFewInputs) {
    // A set for each of very many nodes would take long to move and to free, without a stop check.
    for (Tensor input : inputs) {
      if (input.is_control() && graph_.name(input.node) == source) return;
    }
  } else {
    // Read only once: a node may have very many inputs, and get very many added control inputs.
    const auto [known, is_new] = control_inputs_.try_emplace(node);
    for (size_t i = 0; is_new && i < inputs.size(); ++i) {
      if (inputs[i].is_control()) known->second.insert(graph_.name(inputs[i].node));
    }
    if (known->second.contains(source)) return;
  }
  if (Fits(source.size())) controls_.push_back({node, std::string(source), kind});
}

absl::Status GraphEdit::Validate(const StopToken& stop) const {
  StopPoller poll(stop);
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(num_new_nodes_);
  for (WireReader nodes(new_nodes_); nodes.Next();) {
    if (poll.Tick()) return stop.status("apply");
    WireReader node(nodes.bytes());
    node.Next();
    const absl::string_view name = node.bytes();  // The first field that AppendNodeField writes.
    const auto asked = names_.find(name);
    if (asked == names_.end() || !asked->second.is_new || !names.insert(name).second) {
      return BadEdit("the name of a new node is taken or was not reserved", name);
    }
  }
  const auto resolves = [&](absl::string_view name) {
    return names.contains(name) || graph_.Find(name) != kNoNode;
  };
  for (WireReader nodes(new_nodes_); nodes.Next();) {
    if (poll.Tick()) return stop.status("apply");
    absl::string_view name;
    for (WireReader node(nodes.bytes()); node.Next();) {
      if (node.IsBytes(node_def::kName)) name = node.bytes();
      if (node.IsBytes(node_def::kInput) && !resolves(SourceName(node.bytes()))) {
        return BadEdit("an input does not resolve", name);
      }
    }
  }
  for (const Rewire& rewire : rewires_) {
    if (poll.Tick()) return stop.status("apply");
    if (rewire.node < 0 || rewire.node >= graph_.num_nodes()) return BadEdit("no such node", "?");
    const auto inputs = graph_.inputs(rewire.node);
    if (rewire.index < 0 || rewire.index >= static_cast<int>(inputs.size()) ||
        inputs[rewire.index].is_control()) {
      return BadEdit("no such data input", graph_.name(rewire.node));
    }
    if (absl::StartsWith(rewire.spelling, "^") || !resolves(SourceName(rewire.spelling))) {
      return BadEdit("a rewired input does not resolve", graph_.name(rewire.node));
    }
  }
  for (const Control& control : controls_) {
    if (poll.Tick()) return stop.status("apply");
    if (control.node < 0 || control.node >= graph_.num_nodes()) return BadEdit("no such node", "?");
    if (!resolves(control.source)) {
      return BadEdit("a control input does not resolve", graph_.name(control.node));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> GraphEdit::Apply(const StopToken& stop) {
  if (too_large_) return TooLarge();
  if (absl::Status status = Validate(stop); !status.ok()) return status;
  names_ = {};  // Takes as much memory as the new nodes; the output comes next.
  StopPoller poll(stop);
  const auto by_position = [](const Rewire& a, const Rewire& b) {
    return std::tie(a.node, a.index) < std::tie(b.node, b.index);
  };
  const auto by_node = [](const auto& a, const auto& b) { return a.node < b.node; };
  if (!PolledSort(rewires_.begin(), rewires_.end(), by_position, &poll) ||
      !PolledSort(controls_.begin(), controls_.end(), by_node, &poll) ||
      !PolledSort(placings_.begin(), placings_.end(), by_node, &poll)) {
    return stop.status("apply");
  }

  // The edited nodes and the new ones first, so that the output is allocated once.
  struct Piece {
    NodeId node;
    size_t end;  // In `edited`.
  };
  std::string edited;
  size_t replaced = 0;
  std::vector<Piece> pieces;
  auto rewire = rewires_.begin();
  auto control = controls_.begin();
  auto placing = placings_.begin();
  const NodeId end(graph_.num_nodes());
  while (rewire != rewires_.end() || control != controls_.end() || placing != placings_.end()) {
    if (poll.Tick()) return stop.status("apply");
    NodeEdits edits;
    edits.node = std::min({rewire != rewires_.end() ? rewire->node : end,
                           control != controls_.end() ? control->node : end,
                           placing != placings_.end() ? placing->node : end});
    if (placing != placings_.end() && placing->node == edits.node) edits.placing = &*placing++;
    const auto rewires_begin = rewire;
    while (rewire != rewires_.end() && rewire->node == edits.node) {
      if (poll.Tick()) return stop.status("apply");
      if (rewire != rewires_begin && rewire->index == (rewire - 1)->index) {
        return BadEdit("an input is rewired twice", graph_.name(edits.node));
      }
      ++rewire;
    }
    const auto controls_begin = control;
    while (control != controls_.end() && control->node == edits.node) ++control;
    edits.rewires = absl::MakeConstSpan(rewires_.data() + (rewires_begin - rewires_.begin()),
                                        rewire - rewires_begin);
    edits.controls = absl::MakeConstSpan(controls_.data() + (controls_begin - controls_.begin()),
                                         control - controls_begin);
    absl::Status status = AppendEdited(graph_, edits, stop, &poll, &edited);
    if (!status.ok()) return status;
    if (static_cast<int64_t>(edited.size()) > kMaxMessageBytes) return TooLarge();
    replaced += graph_.node_field(edits.node).size();
    pieces.push_back({edits.node, edited.size()});
  }
  const absl::string_view bytes = graph_.bytes();
  const size_t size = bytes.size() - replaced + edited.size() + new_nodes_.size();
  if (size > static_cast<size_t>(kMaxMessageBytes)) return TooLarge();
  std::string out;
  out.reserve(size);
  const auto append = [&](absl::string_view part) {
    for (; !part.empty(); part.remove_prefix(std::min(part.size(), kCopiedAtOnce))) {
      out.append(part.data(), std::min(part.size(), kCopiedAtOnce));
      if (part.size() >= kCopiedAtOnce && stop.ShouldStop(StopPoller::kStride)) return false;
    }
    return !poll.Tick();
  };
  size_t done = 0, edited_done = 0;
  for (const Piece& piece : pieces) {
    const absl::string_view field = graph_.node_field(piece.node);
    const size_t begin = field.data() - bytes.data();
    if (!append(bytes.substr(done, begin - done)) ||
        !append(absl::string_view(edited).substr(edited_done, piece.end - edited_done))) {
      return stop.status("apply");
    }
    done = begin + field.size();
    edited_done = piece.end;
  }
  if (!append(bytes.substr(done, graph_.nodes_end() - done)) || !append(new_nodes_) ||
      !append(bytes.substr(graph_.nodes_end()))) {
    return stop.status("apply");
  }
  return out;
}

}  // namespace spillway::core
