#include "rewrite_core/inline/inline_calls.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/graph/undo.h"
#include "rewrite_core/inline/call_inliner.h"
#include "rewrite_core/inline/function_table.h"
#include "rewrite_core/inline/work_graph.h"

namespace spillway::core {
namespace {

// The prefix of a colocation's node name.
constexpr absl::string_view kColocatedWith = "loc:@";

// Writes the bytes of a graph whose calls were inlined.
class InlinedWriter {
 public:
  InlinedWriter(const WorkGraph& work, const StopToken& stop)
      : work_(work), graph_(work.original()), stop_(stop), poll_(stop) {}

  absl::StatusOr<std::string> Run() {
    if (!FindChanged()) return stop_.status("inline");
    const absl::string_view bytes = graph_.bytes();
    std::string out;
    // Allocates everything first, so that memory accounting sees it before any is used.
    out.reserve(bytes.size() + LikelySize());
    if (stop_.ShouldStop(1)) return stop_.status("inline");
    size_t done = 0;
    for (NodeId id : changed_) {
      if (poll_.Tick()) return stop_.status("inline");
      const absl::string_view field = graph_.node_field(id);
      const size_t begin = field.data() - bytes.data();
      out.append(bytes.data() + done, begin - done);
      if (const Expansion* call = work_.ReplacedBy(id)) {
        if (!AppendKept(id, *call, &out)) return stop_.status("inline");
      } else if (!AppendReader(id, &out)) {
        return stop_.status("inline");
      }
      done = begin + field.size();
    }
    out.append(bytes.data() + done, graph_.nodes_end() - done);
    if (!AppendNew(&out)) return stop_.status("inline");
    out.append(bytes.data() + graph_.nodes_end(), bytes.size() - graph_.nodes_end());
    return out;
  }

  int64_t num_added() const { return num_added_; }

 private:
  // Each returns false if the call must end.

  // Finds the graph's replaced calls, and their readers.
  bool FindChanged() {
    for (int32_t i = 0; i < work_.num_expansions(); ++i) {
      const NodeId call = work_.expansion(i).call;
      if (!work_.IsOriginal(call)) continue;
      changed_.push_back(call);
      const Graph::Readers readers = graph_.readers(call);
      for (uint32_t r = 0; r < readers.size(); ++r) {
        if (poll_.Tick()) return false;
        if (changed_.back() != readers[r].node) changed_.push_back(readers[r].node);
      }
    }
    if (!PolledSort(changed_.begin(), changed_.end(), std::less<>(), &poll_)) return false;
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    return true;
  }

  // An estimate of the result's bytes besides the graph's own, usually slightly too large: it only
  // affects speed.
  size_t LikelySize() {
    // For each new node: its record without the call's name, and sizes of fields.
    constexpr size_t kNodeBytes = 64;
    size_t size = 0;
    for (int32_t i = 0; i < work_.num_expansions(); ++i) {
      const Expansion& call = work_.expansion(i);
      if (call.body == nullptr) continue;
      const Graph& body = *call.body->graph;
      const NodeId top = work_.IsOriginal(call.call) ? call.call : work_.node(call.call).top_call;
      size += body.bytes().size() + body.num_nodes() * (kNodeBytes + graph_.name(top).size()) +
              (body.num_nodes() + body.num_inputs()) * call.prefix.size();
    }
    for (NodeId id(graph_.num_nodes()); id < work_.num_nodes(); ++id) {
      if (poll_.Tick()) break;  // Run checks next.
      const WorkNode& node = work_.node(id);
      if (node.body_node != kNoNode) continue;
      // The nodes that it reads and is colocated with have similar names.
      size += kNodeBytes + node.name.size() * (2 + node.num_inputs) + node.device.size() +
              node.attrs.size() + graph_.name(node.top_call).size();
    }
    // Records of the original bytes, or of some inputs with other nodes' names.
    for (NodeId id : changed_) size += 2 * graph_.node_field(id).size() + kNodeBytes;
    return std::min<size_t>(size, kMaxMessageBytes);
  }

  bool AppendNew(std::string* out) {
    std::string node, spelling;
    for (NodeId id(graph_.num_nodes()); id < work_.num_nodes(); ++id) {
      if (poll_.Tick(1 + static_cast<int64_t>(node.size()) / kNameBytesPerStep)) return false;
      if (work_.ReplacedBy(id) != nullptr) continue;
      ++num_added_;
      node.clear();
      const WorkNode& work = work_.node(id);
      AppendBytesField(node_def::kName, work.name, &node);
      AppendBytesField(node_def::kOp, work.op, &node);
      for (Tensor input : work_.inputs(id)) {
        if (poll_.Tick()) return false;
        spelling.clear();
        work_.Spell(input, &spelling);
        AppendBytesField(node_def::kInput, spelling, &node);
      }
      if (!work.device.empty()) AppendBytesField(node_def::kDevice, work.device, &node);
      if (work.body_node != kNoNode) {
        if (!AppendBodyAttrs(work, &node)) return false;
      } else {
        node.append(work.attrs.data(), work.attrs.size());
      }
      if (work.colocated_with.node != kNoNode) {
        const Tensor with = work_.Source(work.colocated_with);
        AppendAttrField(
            "_class", StringListAttr({absl::StrCat(kColocatedWith, work_.name(with.node))}), &node);
      }
      node.append(RecordOf(work.top_call));
      AppendBytesField(graph_def::kNode, node, out);
    }
    return true;
  }

  // The undo record for nodes from that call, as a field. Nodes of one call are consecutive.
  const std::string& RecordOf(NodeId top_call) {
    if (recorded_call_ != top_call) {
      recorded_call_ = top_call;
      UndoRecord record;
      record.added = true;
      record.call = std::string(graph_.name(top_call));
      record_.clear();
      AppendAttrField(kUndoAttr, UndoAttr(record), &record_);
    }
    return record_;
  }

  // Appends all fields of the node in the body except those already written; names of other nodes
  // and of loop frames are prefixed with the call's name (AddPrefixAndSuffixToNode and its
  // neighbours in TensorFlow's core/framework/node_def_util.cc).
  bool AppendBodyAttrs(const WorkNode& work, std::string* node) {
    const Expansion& call = work_.expansion(work.expansion);
    const absl::string_view copied = call.body->copied[work.body_node];
    const bool is_bound =
        work.node_def.data() != call.body->graph->node_bytes(work.body_node).data();
    if (!is_bound && !copied.empty()) {
      node->append(copied.data(), copied.size());
      return true;
    }
    WireReader reader(work.node_def);
    while (reader.Next()) {
      if (IsWrittenAnew(reader)) continue;
      if (reader.IsBytes(node_def::kAttr)) {
        const AttrEntry attr = ReadAttrEntry(reader.bytes());
        if (attr.key == "_class") {
          if (!AppendColocation(call, attr.value, work.name, node)) return false;
          continue;
        }
        if (attr.key == "frame_name" && absl::EndsWith(work.op, "Enter")) {
          const absl::string_view frame = AttrString(attr.value).value_or(absl::string_view());
          AppendAttrField(attr.key, StringAttr(absl::StrCat(call.prefix, frame)), node);
          continue;
        }
      }
      node->append(reader.whole().data(), reader.whole().size());
    }
    return true;
  }

  // A function may name a node that does not exist: one of the graph in which it was created.
  // TensorFlow's importer rejects such a name, its placer treats it as the name of a group; so the
  // first node of the group represents it.
  bool AppendColocation(const Expansion& call, absl::string_view value, absl::string_view itself,
                        std::string* node) {
    std::vector<std::string> names;
    const auto add = [&names](absl::string_view name) {
      names.push_back(absl::StrCat(kColocatedWith, name));
    };
    for (absl::string_view name : AttrStrings(value)) {
      if (poll_.Tick()) return false;
      absl::string_view other = name;
      if (!absl::ConsumePrefix(&other, kColocatedWith)) {
        names.emplace_back(name);
        continue;
      }
      const NodeId found = call.body->graph->Find(other);
      if (found == kNoNode) {
        if (graph_.Find(other) != kNoNode) {
          add(other);
        } else if (const auto [first, is_new] = groups_.try_emplace(other, itself); !is_new) {
          add(first->second);
        }
        continue;
      }
      // Drops colocations with replaced calls.
      const NodeId with = call.NodeOf(found);
      if (found < static_cast<int32_t>(call.body->arguments.size())) {
        add(work_.name(work_.Source({with, 0}).node));
      } else if (work_.ReplacedBy(with) == nullptr) {
        add(work_.name(with));
      }
    }
    if (!names.empty()) AppendAttrField("_class", StringListAttr(names), node);
    return true;
  }

  // Appends the node that takes the call's name.
  bool AppendKept(NodeId id, const Expansion& call, std::string* out) {
    std::string node;
    const size_t num_results = call.results.size();
    AppendBytesField(node_def::kName, graph_.name(id), &node);
    AppendBytesField(node_def::kOp, num_results > 0 ? "IdentityN" : "NoOp", &node);
    std::string types;
    for (size_t i = 0; i < num_results; ++i) {
      if (poll_.Tick()) return false;
      const Tensor result = work_.Resolve(call.results[i]);
      AppendBytesField(node_def::kInput,
                       result.port == 0 ? std::string(work_.name(result.node))
                                        : absl::StrCat(work_.name(result.node), ":", result.port),
                       &node);
      AppendVarintField(attr_value::kListType, call.result_types[i], &types);
    }
    AppendBytesField(node_def::kInput, absl::StrCat("^", work_.name(call.output_control)), &node);
    if (!graph_.device(id).empty()) {
      AppendBytesField(node_def::kDevice, graph_.device(id), &node);
    }
    if (num_results > 0) {
      std::string value;
      AppendBytesField(attr_value::kList, types, &value);
      AppendAttrField("T", value, &node);
      const auto shapes = graph_.attr(id, kOutputShapesAttr);
      if (shapes.has_value()) AppendAttrField(kOutputShapesAttr, *shapes, &node);
    }
    UndoRecord record;
    record.raw = std::string(graph_.node_field(id));
    record.idle = !graph_.readers(id).empty();
    AppendAttrField(kUndoAttr, UndoAttr(record), &node);
    AppendBytesField(graph_def::kNode, node, out);
    return true;
  }

  // Appends a node that reads calls, with new inputs and a record of the changed ones. An existing
  // record is kept, because the result is then never stripped.
  bool AppendReader(NodeId id, std::string* out) {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    UndoRecord record;
    bool is_plain = true;  // False if control inputs changed, which only a record of the whole node
                           // can express.
    std::string node;
    size_t i = 0;
    WireReader reader(graph_.node_bytes(id));
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (!reader.IsBytes(node_def::kInput) || work_.ReplacedBy(inputs[i].node) == nullptr) {
        i += reader.IsBytes(node_def::kInput);
        node.append(reader.whole().data(), reader.whole().size());
        continue;
      }
      if (inputs[i].is_control()) {
        is_plain = false;
      } else {
        record.inputs.emplace_back(static_cast<int>(i), std::string(reader.bytes()));
      }
      std::string spelling;
      work_.Spell(inputs[i], &spelling);
      AppendBytesField(node_def::kInput, spelling, &node);
      ++i;
    }
    const size_t without_record = node.size();
    if (graph_.has_undo(id)) {
      AppendBytesField(graph_def::kNode, node, out);
      return true;
    }
    if (is_plain) {
      AppendAttrField(kUndoAttr, UndoAttr(record), &node);
      std::string undone;
      is_plain = AppendUndone(graph_.name(id), node, record, stop_, &poll_, &undone).ok() &&
                 undone == graph_.node_field(id);
    }
    if (!is_plain) {
      node.resize(without_record);
      UndoRecord whole;
      whole.raw = std::string(graph_.node_field(id));
      AppendAttrField(kUndoAttr, UndoAttr(whole), &node);
    }
    AppendBytesField(graph_def::kNode, node, out);
    return true;
  }

  const WorkGraph& work_;
  const Graph& graph_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<NodeId> changed_;  // Original nodes, by id.
  NodeId recorded_call_ = kNoNode;
  std::string record_;
  int64_t num_added_ = 0;
  // By the name of a nonexistent node: the first node that is colocated with it.
  absl::flat_hash_map<absl::string_view, absl::string_view> groups_;
};

}  // namespace

bool MayHaveCalls(const Graph& graph) {
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    if (KindOfOp(graph.op_name(op)) != CallKind::kNone) return true;
    if (graph.has_functions() && !graph.op_type_info(op).known) return true;
  }
  return false;
}

absl::StatusOr<InlinedCalls> InlineCalls(const Graph& graph, const v1::Step& step,
                                         const v1::Limits& limits, const StopToken& stop,
                                         Borders borders) {
  InlinedCalls inlined;
  if (!MayHaveCalls(graph)) return inlined;
  // With a cycle through a call, a reader of its results would read itself. The analysis of the
  // unchanged graph reports the cycle.
  if (auto order = Topology::Build(graph, stop); !order.ok()) {
    if (absl::Status s = stop.status("inline"); !s.ok()) return s;
    return inlined;
  }
  auto table = FunctionTable::Read(graph.bytes(), stop);
  if (!table.ok()) return table.status();
  WorkGraph work(graph, borders, stop);
  CallInliner inliner(*table, step, limits, stop, &work, &inlined.summary);
  if (absl::Status s = inliner.Run(); !s.ok()) return s;
  inlined.too_large = inliner.too_large();
  inlined.has_loops = inliner.lowered_loops();
  if (work.num_expansions() == 0) return inlined;
  InlinedWriter writer(work, stop);
  auto bytes = writer.Run();
  if (!bytes.ok()) return bytes.status();
  inlined.graph_def = *std::move(bytes);
  inlined.summary.set_added_node_count(writer.num_added());
  inlined.summary.set_added_bytes(
      static_cast<int64_t>(inlined.graph_def.size() - graph.bytes().size()));
  return inlined;
}

}  // namespace spillway::core
