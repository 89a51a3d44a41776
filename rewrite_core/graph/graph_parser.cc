// Graph::Parse and Graph::ParseEdited: from bytes to the index.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_outputs.h"

namespace spillway::core {
namespace {

// Valid node names: TensorFlow's rule ([A-Za-z0-9.][A-Za-z0-9_.\/>-]*), plus a leading underscore,
// as in its internal nodes. ASCII only, so names are safe to print.
struct NameChars {
  bool allowed[256] = {};
  constexpr NameChars() {
    for (int c = 0; c < 256; ++c) {
      allowed[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_' || c == '.' || c == '/' || c == '-' || c == '>' || c == '\\';
    }
  }
};
constexpr NameChars kNameChars;

bool IsNodeName(absl::string_view name) {
  if (name.empty() || name[0] == '/' || name[0] == '-' || name[0] == '>' || name[0] == '\\') {
    return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return kNameChars.allowed[c]; });
}

absl::Status Malformed(absl::string_view where) {
  return InvalidError(v1::ERROR_REASON_MALFORMED_GRAPH,
                      absl::StrCat("the bytes are not a GraphDef, or are cut off: ", where,
                                   "; send a serialized (binary) tensorflow.GraphDef"));
}

absl::Status TooMany(absl::string_view what, int64_t limit, absl::string_view limit_name) {
  return Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
               absl::StrCat("the graph has more than ", limit, " ", what, " (limit ", limit_name,
                            "); raise the limit or split the graph"),
               {{"limit", limit_name}, {"value", absl::StrCat(limit)}});
}

// Op types, and devices, of one graph: work done once for each of them does not poll the stop
// token; this limit keeps it below some milliseconds. TensorFlow has 1,900 op types.
constexpr size_t kMaxKinds = 65'536;
// The length of their names, which are compared and parsed many times; those of TensorFlow have
// some 60 bytes, of functions some hundred.
constexpr size_t kMaxKindBytes = 4096;

// Inputs of one node: work on one node does not poll the stop token; this limit keeps it below some
// ten milliseconds. The widest node that TensorFlow makes by itself, a group of all updates, has
// one for each variable.
constexpr uint32_t kMaxInputs = 1'000'000;
// A node with more inputs and attributes has its attributes indexed: each reader of one would go
// through all of them.
constexpr int kManyFields = 128;

absl::Status TooManyInputs(absl::string_view node) {
  return InvalidError(v1::ERROR_REASON_LIMIT_EXCEEDED,
                      absl::StrCat("node ", Quoted(node), " has more than the ", kMaxInputs,
                                   " inputs allowed; split it into several nodes"),
                      {{"node", node}, {"limit", absl::StrCat(kMaxInputs)}});
}

absl::Status TooLong(absl::string_view node, absl::string_view field, size_t size) {
  return InvalidError(v1::ERROR_REASON_BAD_ATTRIBUTE,
                      absl::StrCat("node ", Quoted(node), " has a field ", field, " of ", size,
                                   " bytes, more than the ", kMaxKindBytes, " allowed; no ", field,
                                   " has such a name"),
                      {{"node", node}, {"field", field}});
}

absl::Status TooManyKinds(absl::string_view what) {
  return InvalidError(v1::ERROR_REASON_LIMIT_EXCEEDED,
                      absl::StrCat("the graph has more than the ", kMaxKinds, " ", what,
                                   " allowed; send a graph with fewer"),
                      {{"limit", absl::StrCat(kMaxKinds)}});
}

}  // namespace

// Builds a Graph in two passes: the first finds the nodes and the spellings of their inputs, the
// second resolves the spellings, since a node may read one that comes later in the file.
class GraphParser {
 public:
  GraphParser(absl::string_view bytes, const v1::Limits& limits, const StopToken& stop)
      : limits_(limits), stop_(stop) {
    graph_.bytes_ = bytes;
  }

  // For ParseEdited.
  GraphParser(absl::string_view bytes, const Graph& original, const v1::Limits& limits,
              const StopToken& stop)
      : GraphParser(bytes, limits, stop) {
    original_ = &original;
    graph_.ops_ = original.ops_;
    graph_.devices_ = original.devices_;
    for (size_t i = 0; i < graph_.ops_.size(); ++i) op_ids_[graph_.ops_[i].spelling] = i;
    for (size_t i = 0; i < graph_.devices_.size(); ++i)
      device_ids_[graph_.devices_[i]] = DeviceId(i);
  }

  Graph::Edited TakeEdited() { return std::move(edited_); }

  absl::StatusOr<Graph> Run() {
    if (graph_.bytes_.size() >
        static_cast<uint64_t>(
            std::min<int64_t>(limits_.max_graph_bytes(), std::numeric_limits<int32_t>::max()))) {
      return TooMany("bytes", limits_.max_graph_bytes(), "max_graph_bytes");
    }
    for (auto step :
         {&GraphParser::ReadNodes, &GraphParser::IndexNames, &GraphParser::ResolveInputs,
          &GraphParser::CheckPorts, &GraphParser::LinkReaders}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return std::move(graph_);
  }

 private:
  using Node = Graph::Node;

  absl::Status ReadNodes() {
    StopPoller poll(stop_);
    if (original_ != nullptr) MakeRoomForEdited();
    WireReader reader(graph_.bytes_);
    while (true) {
      if (original_ != nullptr) {
        size_t end = 0;
        if (!CopyNodes(Offset(reader.rest()), &poll, &end)) return stop_.status("parse");
        reader = WireReader(graph_.bytes_.substr(end));
      }
      if (!reader.Next()) break;
      if (poll.Tick()) return stop_.status("parse");
      if (reader.IsBytes(graph_def::kLibrary) && !reader.bytes().empty()) {
        graph_.has_functions_ = true;
      }
      if (!reader.IsBytes(graph_def::kNode)) continue;
      if (graph_.num_nodes() >= limits_.max_node_count()) {
        return TooMany("nodes", limits_.max_node_count(), "max_node_count");
      }
      if (graph_.nodes_.size() == graph_.nodes_.capacity()) MakeRoom(Offset(reader.whole()));
      if (absl::Status status = ReadNode(reader.bytes(), reader.whole(), &poll); !status.ok()) {
        return status;
      }
      if (original_ != nullptr) NoteOrigin();
    }
    if (!reader.ok()) return Malformed(absl::StrCat("after node ", graph_.num_nodes()));
    if (graph_.nodes_.empty()) {
      return InvalidError(v1::ERROR_REASON_EMPTY_GRAPH,
                          "the graph has no nodes; send a serialized tensorflow.GraphDef of a "
                          "training graph");
    }
    if (original_ != nullptr && next_original_ < original_->num_nodes()) {
      const absl::string_view name = original_->name(next_original_);
      return InvalidError(v1::ERROR_REASON_DANGLING_INPUT,
                          absl::StrCat("original node ", Quoted(name), " is gone or has moved"),
                          {{"node", name}});
    }
    return absl::OkStatus();
  }

  // Reserves space for the number of nodes extrapolated from the first `done` bytes, but for at
  // most twice the current number.
  void MakeRoom(size_t done) {
    constexpr size_t kFirst = 1024;
    const size_t size = graph_.nodes_.size();
    size_t wanted = std::min(kFirst, graph_.bytes_.size() / 2);
    if (size > 0) {
      const double whole = 1.05 * static_cast<double>(graph_.bytes_.size()) / done;
      wanted = static_cast<size_t>(size * std::min(whole, 2.0)) + 1;
      graph_.inputs_.reserve(static_cast<size_t>(graph_.inputs_.size() * std::min(whole, 2.0)));
    }
    graph_.nodes_.reserve(wanted);
  }

  // The minimum size of a new node, given its name, attributes and undo record.
  static constexpr size_t kMinNewNode = 128;
  void MakeRoomForEdited() {
    const size_t before = original_->bytes().size();
    const size_t grown = graph_.bytes_.size() - std::min(graph_.bytes_.size(), before);
    graph_.nodes_.reserve(original_->num_nodes() + grown / kMinNewNode);
    graph_.inputs_.reserve(original_->num_inputs() + 2 * grown / kMinNewNode);
    edited_.origins.reserve(graph_.nodes_.capacity());
  }

  // Copies the facts about the unchanged, consecutive original nodes that start at offset `begin`;
  // sets `*end` to their end. Their inputs are unchanged, and are ids in `original_` until
  // ResolveInputs. False if the call must end.
  bool CopyNodes(size_t begin, StopPoller* poll, size_t* end) {
    for (; next_original_ < original_->num_nodes(); ++next_original_) {
      const absl::string_view field = original_->node_field(next_original_);
      if (graph_.bytes_.substr(begin, field.size()) != field) break;
      if (poll->Tick()) return false;
      Node node = original_->nodes_[next_original_];
      const uint32_t moved = static_cast<uint32_t>(begin) - node.field_begin;
      node.field_begin += moved;
      node.name += moved;
      node.begin += moved;
      node.first_input = graph_.inputs_.size();
      const absl::Span<const Tensor> inputs = original_->inputs(next_original_);
      graph_.inputs_.insert(graph_.inputs_.end(), inputs.begin(), inputs.end());
      graph_.nodes_.push_back(node);
      graph_.nodes_end_ = begin += field.size();
      if (original_->indexed_attrs_.contains(next_original_)) IndexAttrs();
      edited_.origins.push_back(next_original_);
    }
    *end = begin;
    return true;
  }

  // For the last node read.
  void NoteOrigin() {
    const NodeId id(graph_.num_nodes() - 1);
    const bool is_next = next_original_ < original_->num_nodes() &&
                         graph_.name(id) == original_->name(next_original_);
    edited_.origins.push_back(is_next ? next_original_ : kNoNode);
    if (is_next) ++next_original_;
    edited_.changed.push_back(id);
  }

  absl::Status ReadNode(absl::string_view bytes, absl::string_view field, StopPoller* poll) {
    Node node = {};
    node.field_begin = Offset(field);
    node.begin = Offset(bytes);
    node.size = bytes.size();
    node.first_input = graph_.inputs_.size();
    absl::string_view name, op, device;
    int attributes = 0;
    WireReader reader(bytes);
    while (reader.Next()) {
      if (poll->Tick()) return stop_.status("parse");
      if (reader.IsBytes(node_def::kInput)) {
        // Until ResolveInputs: where the spelling is.
        graph_.inputs_.push_back(
            {NodeId(Offset(reader.bytes())), static_cast<int32_t>(reader.bytes().size())});
      } else if (reader.IsBytes(node_def::kAttr)) {
        node.has_undo |= ReadAttrEntry(reader.bytes()).key == kUndoAttr;
        ++attributes;
      } else if (reader.IsBytes(node_def::kName)) {
        name = reader.bytes();
      } else if (reader.IsBytes(node_def::kOp)) {
        op = reader.bytes();
      } else if (reader.IsBytes(node_def::kDevice)) {
        device = reader.bytes();
      }
    }
    if (!reader.ok()) {
      return Malformed(absl::StrCat("in node ", graph_.nodes_.size(), " ", Quoted(name)));
    }
    if (attributes > kMaxAttributes) {
      return InvalidError(
          v1::ERROR_REASON_BAD_ATTRIBUTE,
          absl::StrCat("node ", Quoted(name), " has ", attributes, " attributes, more than the ",
                       kMaxAttributes, " allowed; remove those that its op does not have"),
          {{"node", name}, {"field", "attr"}});
    }
    if (!IsNodeName(name)) {
      const std::string position = absl::StrCat(graph_.nodes_.size());
      return InvalidError(v1::ERROR_REASON_BAD_NODE_NAME,
                          absl::StrCat("node ", position, " has the name ", Quoted(name),
                                       ", which TensorFlow does not allow; rename it"),
                          {{"node", name}, {"index", position}, {"field", "name"}});
    }
    for (const auto& [what, kind] : {std::make_pair("op", op), std::make_pair("device", device)}) {
      if (kind.size() > kMaxKindBytes) return TooLong(name, what, kind.size());
    }
    node.op = InternOp(op);
    if (graph_.ops_.size() > kMaxKinds) return TooManyKinds("op types");
    if (bad_op_) {
      return InvalidError(v1::ERROR_REASON_BAD_NODE_NAME,
                          absl::StrCat("node ", Quoted(name), " has the op type ", Quoted(op),
                                       ", which is no op name; set the field op"),
                          {{"node", name}, {"field", "op"}, {"value", op}});
    }
    if (graph_.inputs_.size() > static_cast<uint64_t>(limits_.max_input_count())) {
      return TooMany("inputs", limits_.max_input_count(), "max_input_count");
    }
    node.name = Offset(name);
    node.name_size = name.size();
    node.num_inputs = graph_.inputs_.size() - node.first_input;
    if (node.num_inputs > kMaxInputs) return TooManyInputs(name);
    node.device = InternDevice(device);
    if (graph_.devices_.size() > kMaxKinds) return TooManyKinds("devices");
    if (bad_device_) {
      return Malformed(absl::StrCat("the device of node ", Quoted(name), " is ", Quoted(device)));
    }
    graph_.nodes_.push_back(node);
    graph_.nodes_end_ = node.begin + node.size;
    if (node.num_inputs + attributes > kManyFields) IndexAttrs();
    return absl::OkStatus();
  }

  // Those of the last node.
  void IndexAttrs() {
    const NodeId id(graph_.num_nodes() - 1);
    auto& attrs = graph_.indexed_attrs_[id];
    WireReader reader(graph_.node_bytes(id));
    while (reader.Next()) {
      if (!reader.IsBytes(node_def::kAttr)) continue;
      const AttrEntry entry = ReadAttrEntry(reader.bytes());
      attrs[entry.key] = entry.value;  // The last one counts, as in protobuf.
    }
  }

  // An input while its spelling is resolved to a tensor.
  struct Lookup {
    NodeId node;
    uint32_t index;
    absl::string_view source;
    int32_t port;
    uint32_t tag;
  };

  // Names are indexed and looked up in batches, so that their cache misses overlap.
  static constexpr int kBatch = 64;

  absl::Status IndexNames() {
    if (original_ != nullptr) return IndexNewNames();
    StopPoller poll(stop_);
    graph_.names_.Reset(graph_.nodes_.size());
    const auto name_of = [this](int32_t id) { return graph_.name(NodeId(id)); };
    uint32_t tags[kBatch];
    for (NodeId begin(0), end(0); begin < graph_.num_nodes(); begin = end) {
      end = NodeId(std::min(graph_.num_nodes(), begin + kBatch));
      for (NodeId id = begin; id < end; ++id) {
        tags[id - begin] = NameIndex::Tag(graph_.name(id));
        graph_.names_.Prefetch(tags[id - begin]);
      }
      for (NodeId id = begin; id < end; ++id) {
        if (poll.Tick()) return stop_.status("parse");
        const NodeId other(graph_.names_.Insert(graph_.name(id), tags[id - begin], id, name_of));
        if (other != NameIndex::kNotFound) return Duplicate(other, id);
      }
    }
    return absl::OkStatus();
  }

  // Names of original nodes are found through `original_`; the index holds only new ones.
  absl::Status IndexNewNames() {
    StopPoller poll(stop_);
    new_ids_.resize(original_->num_nodes());
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll.Tick()) return stop_.status("parse");
      const NodeId origin = edited_.origins[id];
      if (origin == kNoNode) continue;
      new_ids_[origin] = id;
      have_moved_ |= id != origin;
    }
    std::vector<NodeId> added;
    for (NodeId id : edited_.changed) {
      if (edited_.origins[id] == kNoNode) added.push_back(id);
    }
    graph_.names_.Reset(added.size());
    const auto name_of = [this](int32_t id) { return graph_.name(NodeId(id)); };
    for (NodeId id : added) {
      if (poll.Tick()) return stop_.status("parse");
      const absl::string_view name = graph_.name(id);
      const uint32_t tag = NameIndex::Tag(name);
      const NodeId original = FindOriginal(name, tag);
      if (original != kNoNode) return Duplicate(new_ids_[original], id);
      const NodeId other(graph_.names_.Insert(name, tag, id, name_of));
      if (other != NameIndex::kNotFound) return Duplicate(other, id);
    }
    return absl::OkStatus();
  }

  NodeId FindProducer(const Lookup& lookup) const {
    const auto name_of = [this](int32_t id) { return graph_.name(NodeId(id)); };
    const NodeId found(graph_.names_.Find(lookup.source, lookup.tag, name_of));
    if (found != kNoNode || original_ == nullptr) return found;
    const NodeId original = FindOriginal(lookup.source, lookup.tag);
    return original == kNoNode ? kNoNode : new_ids_[original];
  }

  NodeId FindOriginal(absl::string_view name, uint32_t tag) const {
    const auto name_of = [this](int32_t id) { return original_->name(NodeId(id)); };
    return NodeId(original_->names_.Find(name, tag, name_of));
  }

  // Most inputs are found here: even in an edited graph most are original nodes.
  const Graph& named() const { return original_ != nullptr ? *original_ : graph_; }

  absl::Status Duplicate(NodeId first, NodeId second) const {
    return InvalidError(
        v1::ERROR_REASON_DUPLICATE_NODE,
        absl::StrCat("nodes ", first.value(), " and ", second.value(), " are both named ",
                     Quoted(graph_.name(second)), "; names must be unique"),
        {{"node", graph_.name(second)},
         {"first_index", absl::StrCat(first.value())},
         {"second_index", absl::StrCat(second.value())}});
  }

  absl::Status ResolveInputs() {
    StopPoller poll(stop_);
    std::vector<Lookup> batch;
    batch.reserve(kBatch);
    if (original_ == nullptr) {
      for (NodeId id(0); id < graph_.num_nodes(); ++id) {
        if (absl::Status status = ResolveNode(id, &batch, &poll); !status.ok()) return status;
      }
    } else {
      if (have_moved_ && !MoveInputs(&poll)) return stop_.status("parse");
      for (NodeId id : edited_.changed) {
        if (absl::Status status = ResolveNode(id, &batch, &poll); !status.ok()) return status;
      }
    }
    return Resolve(&batch);
  }

  // For the nodes copied by CopyNodes. False if the call must end.
  bool MoveInputs(StopPoller* poll) {
    auto changed = edited_.changed.begin();
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll->Tick()) return false;
      if (changed != edited_.changed.end() && *changed == id) {
        ++changed;
        continue;
      }
      const Node& node = graph_.nodes_[id];
      for (uint32_t i = 0; i < node.num_inputs; ++i) {
        NodeId& producer = graph_.inputs_[node.first_input + i].node;
        producer = new_ids_[producer];
      }
    }
    return true;
  }

  absl::Status ResolveNode(NodeId id, std::vector<Lookup>* batch, StopPoller* poll) {
    const Node& node = graph_.nodes_[id];
    bool seen_control = false;
    for (uint32_t i = 0; i < node.num_inputs; ++i) {
      if (poll->Tick()) return stop_.status("parse");
      const Tensor slot = graph_.inputs_[node.first_input + i];
      const absl::string_view spelling = graph_.View(slot.node, slot.port);
      absl::string_view source = spelling;
      int32_t port = 0;
      bool legal = !source.empty();
      if (legal && source[0] == '^') {
        source.remove_prefix(1);
        port = kControl;
        seen_control = true;
      } else if (legal) {
        legal = !seen_control;
        const auto* colon = static_cast<const char*>(memrchr(source.data(), ':', source.size()));
        if (colon != nullptr) {
          const size_t at = colon - source.data();
          legal = legal && ParsePort(source.substr(at + 1), &port);
          source = source.substr(0, at);
        }
      }
      legal = legal && !source.empty();
      if (!legal || batch->size() == kBatch) {
        if (absl::Status status = Resolve(batch); !status.ok()) return status;
      }
      if (!legal) return BadInput(id, i, spelling, seen_control);
      batch->push_back({id, i, source, port, NameIndex::Tag(source)});
      named().names_.Prefetch(batch->back().tag);
    }
    return absl::OkStatus();
  }

  absl::Status Resolve(std::vector<Lookup>* batch) {
    const Graph& graph = named();
    for (const Lookup& lookup : *batch) {
      const NodeId guess(graph.names_.Guess(lookup.tag));
      if (guess != kNoNode) __builtin_prefetch(&graph.nodes_[guess]);
    }
    for (const Lookup& lookup : *batch) {
      const NodeId guess(graph.names_.Guess(lookup.tag));
      if (guess != kNoNode) __builtin_prefetch(graph.name(guess).data());
    }
    for (const Lookup& lookup : *batch) {
      const NodeId producer = FindProducer(lookup);
      if (producer == kNoNode) return Dangling(lookup.node, lookup.index, lookup.source);
      graph_.inputs_[graph_.nodes_[lookup.node].first_input + lookup.index] = {producer,
                                                                               lookup.port};
    }
    batch->clear();
    return absl::OkStatus();
  }

  // Rejects a port that its producer does not have. Output counts that depend on attributes are
  // computed once per node, so that many readers of one wide node cost no more than few.
  absl::Status CheckPorts() {
    absl::flat_hash_map<NodeId, int> counts;
    StopPoller poll(stop_);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
        if (poll.Tick()) return stop_.status("parse");
        const NodeId producer = inputs[i].node;
        int count = graph_.op_info(producer).fixed_output_count;
        if (count < 0) {
          auto [it, is_new] = counts.try_emplace(producer, 0);
          if (is_new) it->second = CountOutputs(graph_, producer);
          count = it->second;
        }
        if (count >= 0 && inputs[i].port >= count) return BadPort(id, i, inputs[i], count);
      }
    }
    return absl::OkStatus();
  }

  absl::Status LinkReaders() {
    StopPoller poll(stop_);
    const size_t n = graph_.nodes_.size();
    std::vector<uint32_t>& first = graph_.first_out_edge_;
    first.assign(n + 1, 0);
    for (Tensor input : graph_.inputs_) {
      if (poll.Tick()) return stop_.status("parse");
      ++first[input.node + 1];
    }
    for (size_t i = 0; i < n; ++i) first[i + 1] += first[i];
    graph_.out_edges_.resize(graph_.inputs_.size());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.nodes_[id];
      for (uint32_t slot = node.first_input; slot < node.first_input + node.num_inputs; ++slot) {
        if (poll.Tick()) return stop_.status("parse");
        graph_.out_edges_[next[graph_.inputs_[slot].node]++] = {id, slot};
      }
    }
    // Edges of a node are in order of consumer and position now; order them by port first.
    const auto port = [this](const Graph::OutEdge& e) { return graph_.inputs_[e.slot].port; };
    const auto by_port = [&](const Graph::OutEdge& a, const Graph::OutEdge& b) {
      return port(a) < port(b);
    };
    for (size_t i = 0; i < n; ++i) {
      const auto begin = graph_.out_edges_.begin() + first[i];
      const auto end = graph_.out_edges_.begin() + first[i + 1];
      for (auto edge = begin; edge != end; ++edge) {
        if (poll.Tick()) return stop_.status("parse");
        if (edge == begin || !by_port(*edge, *(edge - 1))) continue;
        if (!PolledSort(begin, end, by_port, &poll)) return stop_.status("parse");
        break;
      }
    }
    for (const Graph::OpType& op : graph_.ops_) {
      graph_.has_control_flow_ |= op.info.control_flow != ControlFlow::kNone;
    }
    return absl::OkStatus();
  }

  uint32_t Offset(absl::string_view part) const { return part.data() - graph_.bytes_.data(); }

  int32_t InternOp(absl::string_view op) {
    if (last_op_ >= 0 && graph_.ops_[last_op_].spelling == op) return last_op_;
    const auto [it, is_new] = op_ids_.try_emplace(op, graph_.ops_.size());
    if (is_new) graph_.ops_.push_back({op, FindOp(op)});
    if (is_new) bad_op_ = !IsNodeName(op);
    return last_op_ = it->second;
  }

  DeviceId InternDevice(absl::string_view device) {
    if (last_device_ >= 0 && graph_.devices_[last_device_] == device) return last_device_;
    const auto [it, is_new] = device_ids_.try_emplace(device, DeviceId(graph_.devices_.size()));
    if (is_new) graph_.devices_.push_back(device);
    // ASCII only, as for names. Reports contain device strings, and a protobuf string must be
    // UTF-8.
    if (is_new) bad_device_ = !std::all_of(device.begin(), device.end(), absl::ascii_isascii);
    return last_device_ = it->second;
  }

  static bool ParsePort(absl::string_view digits, int32_t* port) {
    return !digits.empty() &&
           std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
           absl::SimpleAtoi(digits, port);
  }

  absl::Status BadInput(NodeId id, uint32_t i, absl::string_view spelling,
                        bool seen_control) const {
    const bool late = seen_control && !spelling.empty();
    return InvalidError(
        v1::ERROR_REASON_BAD_INPUT,
        absl::StrCat("node ", Quoted(graph_.name(id)), " input ", i, " is ", Quoted(spelling),
                     late ? ", a data input behind a control input; put control inputs last"
                          : ", which is not of the form node, node:port or ^node; correct it"),
        {{"node", graph_.name(id)},
         {"field", "input"},
         {"input_index", absl::StrCat(i)},
         {"value", spelling}});
  }

  absl::Status Dangling(NodeId id, uint32_t i, absl::string_view source) const {
    return InvalidError(
        v1::ERROR_REASON_DANGLING_INPUT,
        absl::StrCat("node ", Quoted(graph_.name(id)), " input ", i, " refers to missing node ",
                     Quoted(source), "; add the node or remove the input"),
        {{"node", graph_.name(id)},
         {"field", "input"},
         {"input_index", absl::StrCat(i)},
         {"value", source}});
  }

  absl::Status BadPort(NodeId id, size_t i, Tensor input, int count) const {
    return InvalidError(
        v1::ERROR_REASON_PORT_OUT_OF_RANGE,
        absl::StrCat("node ", Quoted(graph_.name(id)), " input ", i, " reads output ", input.port,
                     " of ", Quoted(graph_.name(input.node)), ", a ", graph_.op(input.node),
                     " with ", count, count == 1 ? " output" : " outputs", "; correct the port"),
        {{"node", graph_.name(id)},
         {"field", "input"},
         {"input_index", absl::StrCat(i)},
         {"value", TensorName(graph_, input)},
         {"output_count", absl::StrCat(count)}});
  }

  const v1::Limits& limits_;
  const StopToken& stop_;
  Graph graph_;
  // For ParseEdited: the original graph, and the first of its nodes not seen yet; for each of its
  // nodes, the id here, and whether any of these ids differs.
  const Graph* original_ = nullptr;
  NodeId next_original_{0};
  Graph::Edited edited_;
  std::vector<NodeId> new_ids_;
  bool have_moved_ = false;
  absl::flat_hash_map<absl::string_view, int32_t> op_ids_;
  absl::flat_hash_map<absl::string_view, DeviceId> device_ids_;
  int32_t last_op_ = -1;
  DeviceId last_device_{-1};
  bool bad_op_ = false;
  bool bad_device_ = false;
};

absl::StatusOr<Graph> Graph::Parse(absl::string_view bytes, const v1::Limits& limits,
                                   const StopToken& stop) {
  return GraphParser(bytes, limits, stop).Run();
}

absl::StatusOr<Graph> Graph::ParseEdited(absl::string_view bytes, const Graph& original,
                                         const v1::Limits& limits, const StopToken& stop,
                                         Edited* edited) {
  GraphParser parser(bytes, original, limits, stop);
  auto graph = parser.Run();
  if (graph.ok()) {
    graph->names_ = NameIndex();
    *edited = parser.TakeEdited();
  }
  return graph;
}

}  // namespace spillway::core
