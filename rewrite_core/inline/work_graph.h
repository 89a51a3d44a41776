// A graph while its calls are inlined: the original nodes, by their ids, and new ones behind them.
//
// Inputs name nodes as they were when they were made; a call that was replaced since then is
// resolved when they are read. Thread safety: none, one inlining owns it.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/name_index.h"
#include "rewrite_core/inline/inline_body.h"
#include "rewrite_core/inline/inline_calls.h"

namespace spillway::core {

// As a port: the end of the node that makes the tensor at port p.
inline constexpr int32_t ControlOf(int32_t port) { return kControl - 1 - port; }
inline constexpr bool IsControlOf(int32_t port) { return port < kControl; }

struct WorkNode {
  absl::string_view name, op, device;
  // A node of a body: its NodeDef there, whose attributes it has, in terms of that call.
  absl::string_view node_def;
  NodeId body_node = kNoNode;
  int32_t expansion = -1;
  // Any other: its attributes, as fields of a NodeDef, and the tensor whose node it is colocated
  // with (none: kNoNode).
  absl::string_view attrs;
  Tensor colocated_with;
  // Calls that lowering makes.
  CallKind kind = CallKind::kNone;
  bool hands_on = false;  // Its output is its input, which others may read instead.
  uint32_t first_input = 0, num_inputs = 0;
  int32_t top_call = 0;  // Index of the original call that it comes from.
};

// A call, or what was lowered to calls, that was replaced.
struct Expansion {
  NodeId call = kNoNode;
  std::vector<Tensor> results;
  std::vector<DataType> result_types;
  // Of a call.
  const InlineBody* body = nullptr;
  absl::string_view prefix;  // The call's name and a slash.
  bool is_native = false;
  NodeId first_argument = kNoNode, first_node = kNoNode;
  NodeId input_control = kNoNode, output_control = kNoNode;  // kNoNode: there is none.

  // The work node of a node of the body.
  NodeId NodeOf(NodeId body_node) const {
    const auto arguments = static_cast<NodeId>(body->arguments.size());
    return body_node < arguments ? first_argument + body_node : first_node + body_node - arguments;
  }
};

class WorkGraph {
 public:
  // `borders`: what readers of an inlined call's results read.
  WorkGraph(const Graph& graph, Borders borders)
      : graph_(graph), borders_(borders), replaced_(graph.num_nodes(), -1) {}

  const Graph& original() const { return graph_; }
  NodeId num_nodes() const { return graph_.num_nodes() + static_cast<NodeId>(nodes_.size()); }
  bool IsOriginal(NodeId id) const { return id < graph_.num_nodes(); }
  // REQUIRES: it is a new one.
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
  // A NodeDef with its attributes at least.
  absl::string_view node_def(NodeId id) const {
    if (IsOriginal(id)) return graph_.node_bytes(id);
    return node(id).node_def.empty() ? node(id).attrs : node(id).node_def;
  }

  // `node` with these inputs; data inputs first.
  NodeId Add(WorkNode node, absl::Span<const Tensor> inputs);
  // `node.call` is gone: who reads it reads the results.
  void Replace(const Expansion& expansion);
  // Null: it was not replaced.
  const Expansion* ReplacedBy(NodeId id) const {
    return replaced_[id] < 0 ? nullptr : &expansions_[replaced_[id]];
  }
  const Expansion& expansion(int32_t number) const { return expansions_[number]; }
  int32_t num_expansions() const { return static_cast<int32_t>(expansions_.size()); }

  // What a tensor is now; and who makes it, behind all that hand it on.
  Tensor Resolve(Tensor tensor) const;
  Tensor Source(Tensor tensor) const;
  // Appends it as an input is spelled.
  void Spell(Tensor tensor, std::string* spelling) const;

  // A copy that lives as long as the graph.
  absl::string_view Keep(absl::string_view text);
  // A name that no node has, reserved from then on: `first` and `second` joined, and `_1`, `_2`,
  // ... behind that, if need be.
  absl::string_view UniqueName(absl::string_view first, absl::string_view second = {});
  // The same of the form `Func/CALL/WHAT/_N`.
  absl::string_view BorderName(absl::string_view call, absl::string_view what);
  // And of the form `NODE/WHAT/_N`.
  absl::string_view NumberedName(absl::string_view node, absl::string_view what);

 private:
  // Whether neither graph has a node of that name; `tag`: NameIndex's.
  bool IsFree(absl::string_view name, uint32_t tag) const;
  void Index(size_t i);  // Of names_.

  const Graph& graph_;
  const Borders borders_;
  std::deque<WorkNode> nodes_;  // They are many and large: never moved.
  std::vector<Tensor> inputs_;
  std::vector<int32_t> replaced_;  // Per node: its expansion, or -1.
  std::vector<Expansion> expansions_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // Of text that is kept.
  char* free_ = nullptr;                         // In the last block.
  size_t free_bytes_ = 0;
  // Names of new nodes, with their tags.
  std::vector<std::pair<absl::string_view, uint32_t>> names_;
  NameIndex index_;
  size_t index_room_ = 0;
  std::string wanted_;       // Scratch.
  int64_t next_number_ = 0;  // Of border names.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_WORK_GRAPH_H_
