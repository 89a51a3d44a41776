// Graph: an immutable index over the bytes of a serialized tensorflow.GraphDef.
//
// Nodes have dense ids in file order, names are views, edges are compressed arrays in both
// directions; attributes stay serialized until they are requested. Nothing is copied out of the
// bytes.
//
// Thread safety: immutable after Parse; any number of threads may read it.
// The bytes given to Parse must outlive the graph.
//
// Invariants after Parse: names are unique and legal, every input resolves, data inputs come before
// control inputs, ports exist as far as TensorFlow's op registry knows. Cycles are *not*
// checked here (see graph/topology.h).
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/graph/name_index.h"
#include "rewrite_core/graph/op_registry.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// A node's position in the file, from 0. kNoNode: none.
using NodeId = StrongId<struct NodeIdTag>;
inline constexpr NodeId kNoNode(-1);

// A device string of a graph: its number among them. Several strings may name one device.
using DeviceId = StrongId<struct DeviceIdTag>;

// One output port of a node; port kControl stands for the node's end.
inline constexpr int32_t kControl = -1;
struct Tensor {
  NodeId node = kNoNode;
  int32_t port = 0;

  bool is_control() const { return port == kControl; }
  friend bool operator==(Tensor a, Tensor b) { return a.node == b.node && a.port == b.port; }
};

class Graph {
 public:
  // One input position that reads an output of a node.
  struct Reader {
    NodeId node;    // The consumer.
    int32_t index;  // Position among its inputs, control inputs counted.
    int32_t port;   // The producer's port; kControl for a control edge.
  };
  // Readers of a node, ordered by (port, consumer, position); iterate with operator[].
  class Readers;

  // Indexes `bytes`. Errors (INVALID_ARGUMENT, or RESOURCE_EXHAUSTED above a limit) name the node
  // and the field.
  static absl::StatusOr<Graph> Parse(absl::string_view bytes, const v1::Limits& limits,
                                     const StopToken& stop);

  // How an edited graph relates to its original.
  struct Edited {
    std::vector<NodeId> origins;  // Per node: its id in the original, or kNoNode.
    std::vector<NodeId> changed;  // Nodes whose bytes are not those of an original node, by id.
  };
  // Indexes bytes that equal those of `original` except for edited nodes, and nodes added anywhere.
  // Unchanged nodes are not read again, which makes it three times as fast. The result has no name
  // index: Find finds nothing. Errors: as for Parse; also INVALID_ARGUMENT if an original node is
  // missing or has moved. `original` must also outlive the graph.
  static absl::StatusOr<Graph> ParseEdited(absl::string_view bytes, const Graph& original,
                                           const v1::Limits& limits, const StopToken& stop,
                                           Edited* edited);

  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size()); }
  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  absl::string_view bytes() const { return bytes_; }

  absl::string_view name(NodeId id) const { return View(nodes_[id].name, nodes_[id].name_size); }
  absl::string_view op(NodeId id) const { return ops_[nodes_[id].op].spelling; }
  const OpInfo& op_info(NodeId id) const { return ops_[nodes_[id].op].info; }
  absl::string_view device(NodeId id) const { return devices_[nodes_[id].device]; }
  // Dense ids of op types and device strings, in order of their first node.
  int32_t op_id(NodeId id) const { return nodes_[id].op; }
  DeviceId device_id(NodeId id) const { return nodes_[id].device; }
  int32_t num_ops() const { return static_cast<int32_t>(ops_.size()); }
  int32_t num_devices() const { return static_cast<int32_t>(devices_.size()); }
  absl::string_view op_name(int32_t op_id) const { return ops_[op_id].spelling; }
  const OpInfo& op_type_info(int32_t op_id) const { return ops_[op_id].info; }
  absl::string_view device_name(DeviceId id) const { return devices_[id]; }

  // Inputs of a node in file order: data, then control.
  absl::Span<const Tensor> inputs(NodeId id) const {
    return absl::MakeSpan(inputs_).subspan(nodes_[id].first_input, nodes_[id].num_inputs);
  }
  Readers readers(NodeId id) const;
  // The inputs as the NodeDef spells them.
  std::vector<absl::string_view> input_spellings(NodeId id) const;

  // The node of that name, or kNoNode.
  NodeId Find(absl::string_view name) const { return Find(name, NameIndex::Tag(name)); }
  // The same, for callers that already have the name's tag.
  NodeId Find(absl::string_view name, uint32_t tag) const;

  // The serialized NodeDef without its field header in the GraphDef, and with it.
  absl::string_view node_bytes(NodeId id) const { return View(nodes_[id].begin, nodes_[id].size); }
  absl::string_view node_field(NodeId id) const;
  // Offset in bytes() just past the last node's field, where new nodes go.
  size_t nodes_end() const { return nodes_end_; }

  // The serialized AttrValue of that attribute, or nullopt.
  absl::optional<absl::string_view> attr(NodeId id, absl::string_view key) const;
  // Whether the node carries `_spillway_undo`.
  bool has_undo(NodeId id) const { return nodes_[id].has_undo; }
  // Whether the graph has a non-empty function library.
  bool has_functions() const { return has_functions_; }
  // Whether some op steers control flow (Switch, Merge, Enter, ...).
  bool has_control_flow() const { return has_control_flow_; }

 private:
  // Offsets fit 32 bits since a GraphDef is below 2 GiB.
  struct Node {
    uint32_t field_begin, begin, size;  // In bytes_: its field, its NodeDef, the NodeDef's size.
    uint32_t name, name_size;
    int32_t op;
    DeviceId device;
    uint32_t first_input, num_inputs : 31, has_undo : 1;
  };
  struct OpType {
    absl::string_view spelling;
    OpInfo info;
  };
  // An edge from its producer's side.
  struct OutEdge {
    NodeId consumer;
    uint32_t slot;  // In inputs_.
  };
  friend class GraphParser;

  absl::string_view View(uint32_t begin, uint32_t size) const { return bytes_.substr(begin, size); }

  absl::string_view bytes_;
  std::vector<Node> nodes_;
  std::vector<Tensor> inputs_;
  std::vector<OutEdge> out_edges_;
  std::vector<uint32_t> first_out_edge_;  // num_nodes() + 1.
  std::vector<OpType> ops_;
  std::vector<absl::string_view> devices_;
  NameIndex names_;
  // Of nodes with so many inputs and attributes that reading through them for each one would last.
  absl::flat_hash_map<NodeId, absl::flat_hash_map<absl::string_view, absl::string_view>>
      indexed_attrs_;
  size_t nodes_end_ = 0;
  bool has_functions_ = false;
  bool has_control_flow_ = false;
};

class Graph::Readers {
 public:
  Readers(const Graph& graph, NodeId producer)
      : graph_(graph),
        begin_(graph.first_out_edge_[producer]),
        size_(graph.first_out_edge_[producer + 1] - begin_) {}

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Reader operator[](uint32_t i) const {
    const OutEdge& edge = graph_.out_edges_[begin_ + i];
    return {edge.consumer,
            static_cast<int32_t>(edge.slot - graph_.nodes_[edge.consumer].first_input),
            graph_.inputs_[edge.slot].port};
  }

 private:
  const Graph& graph_;
  uint32_t begin_;
  uint32_t size_;
};

inline Graph::Readers Graph::readers(NodeId id) const { return Readers(*this, id); }

// How many of a node's inputs are data inputs.
int CountDataInputs(const Graph& graph, NodeId id);

// Whether some node reads an output of this one, other than by a control edge.
bool HasDataReader(const Graph& graph, NodeId id);

// `node:port`, the form in which reports name a tensor.
std::string TensorName(const Graph& graph, Tensor tensor);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_H_
