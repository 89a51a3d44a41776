// Which nodes of a graph another one may be a clone of: those with the same op, device and
// attributes, and data inputs that have the same values. Their own values are then the same, too.
// (A graph often has several such nodes: gates of gradients, for example.)
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_CLONE_MATCH_H_
#define SPILLWAY_REWRITE_CORE_APPLY_CLONE_MATCH_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

class CloneMatch {
 public:
  // For clones of nodes of `graph`, which must outlive it, with op types in `ops`; `fed` nodes have
  // none. Errors: those of Topology::Build.
  static absl::StatusOr<CloneMatch> Create(const Graph& graph,
                                           const absl::flat_hash_set<absl::string_view>& ops,
                                           const absl::flat_hash_set<NodeId>& fed,
                                           const StopToken& stop);

  // The nodes that `node_def` may be a clone of, in topological order. `inputs`: tensors of the
  // graph with the values of its data inputs.
  absl::Span<const NodeId> Find(absl::string_view node_def, std::vector<Tensor> inputs) const;

  // The first node of each kind of those: nodes of a kind wait for the same nodes, too, and read
  // nodes of the same kinds, so that a clone of one is a clone of each. Of more than kMaxKinds only
  // those that wait for the first of `controls`: for all of them, or for fewer, as a clone begins
  // with the control inputs of its original. So very many equal nodes are not examined for each
  // clone.
  std::vector<NodeId> FindKinds(absl::string_view node_def, std::vector<Tensor> inputs,
                                absl::Span<const NodeId> controls) const;

  // The first node that has the same values, or the node itself.
  NodeId FirstLike(NodeId id) const { return same_[id]; }

  // By node: the first one of its kind, or the node itself.
  const std::vector<NodeId>& kinds() const { return kinds_; }

 private:
  static constexpr size_t kMaxKinds = 64;
  // Nodes with the same values.
  struct Class {
    std::vector<NodeId> nodes;
    std::vector<NodeId> kinds;                        // The first node of each.
    absl::flat_hash_map<std::string, NodeId> by_key;  // The same by KindOf.
    absl::flat_hash_set<size_t> num_controls;         // Of some node.
  };

  CloneMatch() = default;
  static std::string KeyOf(absl::string_view node_def, absl::Span<const Tensor> inputs);
  const Class* FindClass(absl::string_view node_def, std::vector<Tensor> inputs) const;
  std::string KindOf(absl::Span<const Tensor> inputs, absl::Span<const NodeId> controls) const;

  std::vector<NodeId> same_;  // By node: the first one with the same values.
  std::vector<NodeId> kinds_;
  absl::flat_hash_map<std::string, Class> classes_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_CLONE_MATCH_H_
