// A graph while its calls are inlined: the original nodes, with their ids, followed by the new
// ones.
//
// Inputs refer to nodes as of the time they were added; calls that were replaced since then are
// resolved when the inputs are read. Thread safety: none; one inlining owns it.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/name_index.h"
#include "rewrite_core/inline/inline_body.h"
#include "rewrite_core/inline/inline_calls.h"

namespace spillway::core {

// Bytes of names that take about a step (stop_token.h). The names of all nodes that replace a call
// begin with its name, which may be long.
inline constexpr int64_t kNameBytesPerStep = 256;

// As a port: the end of the node that makes the tensor at port p.
inline constexpr int32_t ControlOf(int32_t port) { return kControl - 1 - port; }
inline constexpr bool IsControlOf(int32_t port) { return port < kControl; }

struct WorkNode {
  absl::string_view name, op, device;
  // For a node of a body: its NodeDef there, which has its attributes, in terms of the call.
  absl::string_view node_def;
  NodeId body_node = kNoNode;
  int32_t expansion = -1;
  // For any other: its attributes, as fields of a NodeDef, and the tensor whose node it is
  // colocated with (kNoNode: none).
  absl::string_view attrs;
  Tensor colocated_with;
  // For calls made by lowering.
  CallKind kind = CallKind::kNone;
  bool forwards = false;  // It forwards its input, which readers may read instead.
  uint32_t first_input = 0, num_inputs = 0;
  NodeId top_call = kNoNode;  // The original call that it comes from.
};

// A replaced call or lowered node.
struct Expansion {
  NodeId call = kNoNode;
  std::vector<Tensor> results;
  std::vector<DataType> result_types;
  // For a call.
  const InlineBody* body = nullptr;
  absl::string_view prefix;  // The call's name and a slash.
  bool is_native = false;
  NodeId first_argument = kNoNode, first_node = kNoNode;
  NodeId input_control = kNoNode, output_control = kNoNode;  // kNoNode: none.

  // The work node for a node of the body.
  NodeId NodeOf(NodeId body_node) const {
    const auto arguments = static_cast<int32_t>(body->arguments.size());
    return NodeId(body_node < arguments ? first_argument + body_node
                                        : first_node + body_node - arguments);
  }
};

class WorkGraph {
 public:
  // `borders`: the tensors that the consumers of an inlined call's results read. Once `stop` has
  // fired, names may be taken and tensors not current: check it.
  WorkGraph(const Graph& graph, Borders borders, const StopToken& stop)
      : graph_(graph), borders_(borders), poll_(stop), replaced_(graph.num_nodes(), -1) {}

  const Graph& original() const { return graph_; }
  int32_t num_nodes() const { return graph_.num_nodes() + static_cast<int32_t>(nodes_.size()); }
  bool IsOriginal(NodeId id) const { return id < graph_.num_nodes(); }
  // REQUIRES: it is a new node.
  const WorkNode& node(NodeId id) const { return nodes_[id - graph_.num_nodes()]; }

  absl::string_view name(NodeId id) const {
    return IsOriginal(id) ? graph_.name(id) : node(id).name;
  }
  absl::string_view op(NodeId id) const { return IsOriginal(id) ? graph_.op(id) : node(id).op; }
  absl::string_view device(NodeId id) const {
    return IsOriginal(id) ? graph_.device(id) : node(id).device;
  }
  absl::Span<const Tensor> inputs(NodeId id) const {
    if (IsOriginal(id)) return graph_.inputs(id);
    return absl::MakeConstSpan(inputs_).subspan(node(id).first_input, node(id).num_inputs);
  }
  // A NodeDef with at least its attributes.
  absl::string_view node_def(NodeId id) const {
    if (IsOriginal(id)) return graph_.node_bytes(id);
    return node(id).node_def.empty() ? node(id).attrs : node(id).node_def;
  }

  // Adds `node` with these inputs, data inputs first.
  NodeId Add(WorkNode node, absl::Span<const Tensor> inputs);
  // Replaces `expansion.call`: its readers now read the results.
  void Replace(const Expansion& expansion);
  // Null if it was not replaced.
  const Expansion* ReplacedBy(NodeId id) const {
    return replaced_[id] < 0 ? nullptr : &expansions_[replaced_[id]];
  }
  const Expansion& expansion(int32_t number) const { return expansions_[number]; }
  int32_t num_expansions() const { return static_cast<int32_t>(expansions_.size()); }

  // The current tensor for an earlier one; and its producer, followed back through all forwarding
  // nodes.
  Tensor Resolve(Tensor tensor) const;
  Tensor Source(Tensor tensor) const;
  // Appends the tensor in the spelling of an input.
  void Spell(Tensor tensor, std::string* spelling) const;

  // Copies text; the copy lives as long as the graph.
  absl::string_view Keep(absl::string_view text);
  // Returns and reserves an unused name: `first` and `second` joined, followed by `_1`, `_2`, ...
  // if needed.
  absl::string_view UniqueName(absl::string_view first, absl::string_view second = {});
  // The same of the form `Func/CALL/WHAT/_N`.
  absl::string_view BorderName(absl::string_view call, absl::string_view what);
  // The same of the form `NODE/WHAT/_N`.
  absl::string_view NumberedName(absl::string_view node, absl::string_view what);

 private:
  // Whether neither graph has a node of that name; `tag`: NameIndex's.
  bool IsFree(absl::string_view name, uint32_t tag) const;
  void Index(size_t i);  // Indexes names_[i].
  bool Forwards(Tensor tensor) const {
    return borders_ == Borders::kDirect && !tensor.is_control() && !IsOriginal(tensor.node) &&
           node(tensor.node).forwards;
  }

  const Graph& graph_;
  const Borders borders_;
  mutable StopPoller poll_;
  std::deque<WorkNode> nodes_;  // Many and large, so never moved.
  // The inputs of forwarding nodes, and the results of expansions, are mutable: calls may form
  // chains of any length, and each time that one is followed, it becomes half as long.
  mutable std::vector<Tensor> inputs_;
  std::vector<int32_t> replaced_;  // Per node: its expansion, or -1.
  mutable std::vector<Expansion> expansions_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // For Keep.
  char* free_ = nullptr;                         // In the last block.
  size_t free_bytes_ = 0;
  // Names of new nodes, with their tags.
  std::vector<std::pair<absl::string_view, uint32_t>> names_;
  NameIndex index_;
  size_t index_room_ = 0;
  absl::flat_hash_map<std::string, int> numbers_;  // For names that are taken: the last one tried.
  std::string wanted_;                             // Scratch.
  int64_t next_number_ = 0;                        // For border names.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_
