#include "rewrite_core/analysis/shapes/table_rows.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace spillway::core {
namespace {

// Identities looked through before indices and gradients' shapes.
constexpr int kMaxNames = 16;

using TensorKey = std::pair<NodeId, int32_t>;

class TableRows {
 public:
  TableRows(const InferredFacts& inferred, ShapePool& pool, VariableFacts* variables)
      : graph_(inferred.graph), in_(inferred), pool_(pool), variables_(*variables) {}

  void Run(StopPoller* poll) {
    std::vector<NodeId> joins;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll->Tick()) return;
      const absl::string_view op = graph_.op(id);
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (inputs.size() < 2 || inputs[0].is_control() || inputs[1].is_control()) continue;
      if (op == "Reshape") {
        // If two tensors are reshaped to the same shape tensor, the indices are ambiguous.
        const auto [found, is_new] = flattened_.try_emplace(Key(inputs[1]), Named(inputs[0]));
        if (!is_new && found->second != Named(inputs[0])) found->second = {kNoNode, 0};
      } else if (op == "ConcatV2") {
        joins.push_back(id);
      } else if (op == "ResourceGather") {
        const NodeId table = HandleOrigin(graph_, inputs[0]).node;
        if (IsOpen(table)) Add(table, &gathered_[Named(inputs[1])]);
      } else if (absl::StartsWith(op, "ResourceScatter") && !absl::StrContains(op, "Nd")) {
        Add(HandleOrigin(graph_, inputs[0]).node, &scattered_[Named(inputs[1])]);
      }
    }
    if (gathered_.empty()) return;
    for (NodeId id : joins) {
      if (poll->Tick()) return;
      FindGradient(graph_.inputs(id));
    }
    for (const auto& [indices, tables] : gathered_) {
      if (poll->Tick()) return;
      const auto shapes = shapes_.find(indices);
      // The size might belong to another table's gradient if a table has none.
      if (shapes == shapes_.end() || shapes->second.size() < tables.size()) continue;
      for (NodeId table : tables) Settle(table, shapes->second);
    }
    Apply();
    for (const auto& [indices, tables] : scattered_) {
      if (poll->Tick()) return;
      ShareRows(tables);
    }
    Apply();
  }

 private:
  static TensorKey Key(Tensor tensor) { return {tensor.node, tensor.port}; }

  TensorKey Named(Tensor tensor) const {
    for (int hop = 0; hop < kMaxNames && graph_.op(tensor.node) == "Identity"; ++hop) {
      if (graph_.inputs(tensor.node).empty() || graph_.inputs(tensor.node)[0].is_control()) break;
      tensor = graph_.inputs(tensor.node)[0];
    }
    return Key(tensor);
  }

  static void Add(NodeId table, std::vector<NodeId>* tables) {
    constexpr size_t kMaxTables = 64;  // With the same indices.
    if (tables->size() < kMaxTables &&
        std::find(tables->begin(), tables->end(), table) == tables->end()) {
      tables->push_back(table);
    }
  }

  ShapeId Said(NodeId table) const {
    const auto found = variables_.find(table);
    return found == variables_.end() || found->second.contradicted || found->second.is_list
               ? kUnknownShape
               : found->second.shape;
  }
  // Whether everything but the number of rows is known.
  bool IsOpen(NodeId table) const {
    const ShapeId said = Said(table);
    if (said <= kScalar) return false;
    const absl::Span<const int64_t> dims = pool_[said];
    return dims[0] < 0 &&
           std::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d >= 0; });
  }
  bool SameRows(ShapeId a, ShapeId b) const {
    return a > kScalar && b > kScalar && pool_[a].subspan(1) == pool_[b].subspan(1);
  }

  // ConcatV2(ExpandDims(Size(indices)), StridedSlice(shape of the table, [1], ...), axis), and the
  // indices are also reshaped to the first of them.
  void FindGradient(absl::Span<const Tensor> inputs) {
    const auto indices = flattened_.find(Key(inputs[0]));
    if (indices == flattened_.end() || gathered_.find(indices->second) == gathered_.end()) return;
    const TensorKey rest = Named(inputs[1]);
    if (graph_.op(rest.first) != "StridedSlice" || graph_.inputs(rest.first).empty()) return;
    const Tensor whole = graph_.inputs(rest.first)[0];
    if (whole.is_control()) return;
    const auto shape = Value(Named(whole)), part = Value(rest);
    if (!shape || !part || shape->size() != part->size() + 1 || shape->subspan(1) != *part) return;
    if (std::any_of(shape->begin(), shape->end(), [](int64_t dim) { return dim < 0; })) return;
    std::vector<ShapeId>& shapes = shapes_[indices->second];
    constexpr size_t kMaxShapes = 256;
    const DimVector dims(shape->begin(), shape->end());
    if (shapes.size() < kMaxShapes) shapes.push_back(pool_.Intern(dims));
  }

  absl::optional<absl::Span<const int64_t>> Value(TensorKey tensor) const {
    if (tensor.second < 0 || static_cast<uint32_t>(tensor.second) >=
                                 in_.first[tensor.first + 1] - in_.first[tensor.first]) {
      return absl::nullopt;
    }
    const TensorFact& fact = in_.facts[in_.first[tensor.first] + tensor.second];
    if (!IsValueType(fact.dtype) || fact.extra <= kUnknownShape) return absl::nullopt;
    return pool_[fact.extra];
  }

  // The shape that has the table's rows, if there is only one.
  void Settle(NodeId table, const std::vector<ShapeId>& shapes) {
    const ShapeId said = Said(table);
    ShapeId one = kUnknownShape;
    for (ShapeId shape : shapes) {
      if (!SameRows(said, shape)) continue;
      if (one != kUnknownShape && one != shape) return;
      one = shape;
    }
    if (one == kUnknownShape) return;
    const auto [found, is_new] = settled_.try_emplace(table, one);
    if (!is_new && found->second != one) found->second = kUnknownShape;
  }

  // Applies the results, so that they do not depend on the order of discovery.
  void Apply() {
    for (const auto& [table, shape] : settled_) {
      if (shape != kUnknownShape) variables_[table].shape = shape;
    }
    settled_.clear();
  }

  void ShareRows(const std::vector<NodeId>& tables) {
    for (NodeId table : tables) {
      if (!IsOpen(table)) continue;
      std::vector<ShapeId> shapes;
      for (NodeId other : tables) {
        if (other != table && !IsOpen(other)) shapes.push_back(Said(other));
      }
      Settle(table, shapes);
    }
  }

  const Graph& graph_;
  const InferredFacts& in_;
  ShapePool& pool_;
  VariableFacts& variables_;
  absl::flat_hash_map<TensorKey, TensorKey> flattened_;  // The tensor reshaped to it.
  absl::flat_hash_map<TensorKey, std::vector<NodeId>> gathered_, scattered_;  // By indices.
  absl::flat_hash_map<NodeId, ShapeId> settled_;                 // kUnknownShape if ambiguous.
  absl::flat_hash_map<TensorKey, std::vector<ShapeId>> shapes_;  // By indices: the gradients'
                                                                 // shapes.
};

}  // namespace

void NoteTableRows(const InferredFacts& inferred, ShapePool& pool, StopPoller* poll,
                   VariableFacts* variables) {
  const bool has_open =
      std::any_of(variables->begin(), variables->end(), [&pool](const auto& said) {
        return said.second.shape > kScalar && pool[said.second.shape][0] < 0;
      });
  if (has_open) TableRows(inferred, pool, variables).Run(poll);
}

}  // namespace spillway::core
