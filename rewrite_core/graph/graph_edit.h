// GraphEdit: collects edits to a Graph, validates them all, then applies all of them or none.
//
// The bytes of untouched nodes are copied without being parsed. Every edited or added node carries
// its undo record (undo.h); if an earlier rewrite edited the node, the record keeps the older
// originals.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_EDIT_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/node_writer.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class GraphEdit {
 public:
  // Makes data input `index` of `node` read `spelling` (`name` or `name:port`).
  struct Rewire {
    NodeId node;
    int index;
    std::string spelling;
  };
  // Makes `node` wait for the node named `source`. The kind is only reported in patches; the bytes
  // do not hold it.
  struct Control {
    NodeId node;
    std::string source;
    v1::EdgeKind kind;
  };
  // Gives `node` another device, and other colocations: the strings of its attribute `_class`,
  // which an empty list removes. Absent: as they are.
  struct Placing {
    NodeId node;
    absl::optional<std::string> device;
    absl::optional<std::vector<std::string>> colocations;
  };

  // `graph` must outlive the edit.
  explicit GraphEdit(const Graph& graph);

  // Returns and reserves a name that neither the graph nor an added node uses: `wanted`, or
  // `wanted_1`, `wanted_2`, ...
  std::string UniqueName(absl::string_view wanted);

  // Adds a node, with its `_spillway_undo`. REQUIRES: its name comes from UniqueName. Once the new
  // nodes are too large (see Apply), they are dropped, and no more are accepted.
  void AddNode(NodeSpec node);
  // Likewise dropped once the edits are too large.
  void RewireInput(NodeId node, int index, std::string spelling);
  // Does nothing if the graph's node has that control input already. Likewise dropped.
  void AddControlInput(NodeId node, absl::string_view source,
                       v1::EdgeKind kind = v1::EDGE_KIND_UNSPECIFIED);

  // Likewise dropped. REQUIRES: at most once per node.
  void PlaceNode(Placing placing);

  // Whether nodes were dropped. Apply will fail; more edits only take memory.
  bool too_large() const { return too_large_; }

  // The added nodes, as fields of a GraphDef; ReadNode (node_writer.h) reads each.
  absl::string_view new_nodes() const { return new_nodes_; }
  int64_t num_new_nodes() const { return num_new_nodes_; }
  const std::vector<Rewire>& rewires() const { return rewires_; }
  const std::vector<Control>& controls() const { return controls_; }
  const std::vector<Placing>& placings() const { return placings_; }

  // OK if Apply would give a graph in which all names are unique and all inputs resolve. Otherwise
  // INTERNAL, naming the edit: edits come from this program, not from the user.
  absl::Status Validate(const StopToken& stop) const;

  // Validates, then returns the bytes of the edited graph. May be called once: it sorts the
  // collected edits and forgets the reserved names. OUT_OF_RANGE (RESULT_TOO_LARGE) if the result
  // would be too large for TensorFlow, or if its additions are many times as large as the graph
  // (names or devices of megabytes, repeated often).
  absl::StatusOr<std::string> Apply(const StopToken& stop);

 private:
  absl::Status TooLarge() const;
  // Counts the bytes that an edit adds. Returns false if they are too many; all edits are then
  // dropped.
  bool Fits(size_t bytes);

  const Graph& graph_;
  std::string added_attr_;  // The undo record of every added node.
  // As fields of a GraphDef: there may be very many, and NodeSpecs would be several times as large.
  std::string new_nodes_;
  int64_t max_new_bytes_;
  int64_t edit_bytes_ = 0;  // Bytes of rewired and added inputs, and of placings.
  bool too_large_ = false;
  int64_t num_new_nodes_ = 0;
  std::vector<Rewire> rewires_;
  std::vector<Control> controls_;
  std::vector<Placing> placings_;
  // The original control inputs of each node that AddControlInput was called for.
  absl::flat_hash_map<NodeId, absl::flat_hash_set<absl::string_view>> control_inputs_;
  // The names that UniqueName returned, and those names of the graph that it was called with.
  struct Asked {
    int last_number = 0;  // The last suffix tried.
    bool is_new = false;  // It was returned.
  };
  absl::flat_hash_map<std::string, Asked> names_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_EDIT_H_
