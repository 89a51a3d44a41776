// Shape inference over one graph, the caller's or a function's body: the pass, and the fixed point
// for its loops. shapes.h describes the results, shape_table.h how to add ops.
//
// A tensor's shape is the result of the op's shape function, merged with the node's
// `_output_shapes` and with its feed. If inference contradicts a stated shape, the stated shape
// holds, because TensorFlow wrote it. So invalid inputs of an op are only an error if no shape is
// stated, neither for the node nor for the sources of its inputs.
//
// Loops (Merge that reads a NextIteration): the first round uses the shape on entry; as long as a
// loop's end gives a different one, the two are joined and everything dependent is inferred again;
// shapes still changing after kMaxRounds are unknown.
//
// Sizes that depend on tensor values (Unique, Where, ...) are unknown, but bounded: a second pass
// infers upper bounds. In that pass such an op gives its maximum (ShapeContext::set_bound), and
// everything computed from it is a bound, too. This is only correct for monotonic functions: so the
// values of bounded tensors are hidden from all shape functions except those of the ops in a table
// (kBoundedValues in the .cc).
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_GRAPH_INFERENCE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_GRAPH_INFERENCE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "rewrite_core/analysis/shapes/output_signature.h"
#include "rewrite_core/analysis/shapes/shape_context.h"
#include "rewrite_core/analysis/shapes/shape_table.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// The facts about a graph's op types, looked up once for all of its nodes.
class GraphOps {
 public:
  explicit GraphOps(const Graph& graph);

  struct Op {
    ShapeFunction function;
    OutputSignature outputs;
    bool known;             // Its outputs are those of the signature.
    bool is_source;         // Its data come from outside: the first dimension may be the batch.
    bool is_handle_source;  // It may give out the handle of a variable.
    const VariableOp* variable_op;  // Null: it takes no handle of a variable.
    uint32_t bounded_values;        // Bit i: the value of input i may be a bound.
  };
  const Op& operator[](int32_t op_id) const { return ops_[op_id]; }

 private:
  std::vector<Op> ops_;
};

// The caller's facts about a fed tensor.
struct FedTensor {
  ShapeId shape = kUnknownShape;
  ShapeId value = kNoValue;  // Its elements, as a list.
};
using FedTensors = absl::flat_hash_map<NodeId, absl::flat_hash_map<int, FedTensor>>;

struct InferenceInputs {
  const Graph& graph;
  const Topology& topology;
  const GraphOps& ops;
  int producer = 0;
  int64_t batch_size = kUnknownDim;
  // Fed tensors, by node and port.
  const FedTensors* feeds = nullptr;
  // For `_Arg` nodes of a function's body: facts from the call.
  const absl::flat_hash_map<NodeId, TensorFact>* arguments = nullptr;
  // Facts about variables and lists from elsewhere; may be null.
  const VariableFacts* variables = nullptr;
  // Whether contradictions are errors; otherwise they give unknown.
  bool strict = false;
  // If not null, bounds are inferred, and these are the exact facts.
  const std::vector<TensorFact>* exact = nullptr;
};

class GraphInference {
 public:
  static constexpr int kMaxRounds = 8;

  GraphInference(const InferenceInputs& inputs, ShapePool& pool, FunctionCaller* caller);

  // Errors: see Shapes::Infer.
  absl::Status Run(const StopToken& stop);

  TensorFact FactOf(Tensor tensor) const {
    const int64_t index = int64_t{first_[tensor.node]} + tensor.port;
    return index < first_[tensor.node + 1] ? facts_[index] : TensorFact();
  }
  std::vector<uint32_t>& first() { return first_; }  // In facts; num_nodes + 1.
  std::vector<TensorFact>& facts() { return facts_; }
  std::vector<NodeId>& sources() { return sources_; }  // See GraphOps::Op::is_source; by id.
  // The nodes whose shapes a feed or batch_size completes.
  absl::flat_hash_set<NodeId>& requested() { return requested_; }
  // Whether any unknown size has a bound.
  bool has_bounds() const { return context_.has_bounds_; }
  // Nodes' statements about variables and lists whose own nodes do not state it in full. May be
  // called once.
  VariableFacts TakeVariables();

 private:
  bool LayOut(StopPoller* poll);
  absl::Status Visit(NodeId id);
  // Adds the facts about its variable to the handle that a node outputs.
  void SetHandle(NodeId id, ShapeContext& c);
  void KeepNotes(NodeId id);  // For the current node.
  bool IsStatedInFull() const;
  // If an output is known exactly, replaces the bound.
  void TakeExact(int64_t index, TensorFact* fact);
  static void CallByName(ShapeContext& c);  // Calls the function named by the op type.
  absl::Status Mismatch(NodeId id, absl::string_view failure) const;
  absl::Status BadFeed(NodeId id, int port, ShapeId feed, ShapeId shape) const;
  absl::Status CheckValue(NodeId id, int port, const FedTensor& feed, int dtype) const;
  absl::Status TooManyShapes(NodeId id) const;
  absl::Status TooLarge(NodeId id, int port, ShapeId shape) const;

  const InferenceInputs in_;
  ShapePool& pool_;
  ShapeContext context_;
  std::vector<uint32_t> first_;
  std::vector<TensorFact> facts_;
  std::vector<NodeId> sources_;
  absl::flat_hash_set<NodeId> requested_;
  // By node: its statements, and for whose handle.
  absl::flat_hash_map<NodeId, std::vector<std::pair<NodeId, VariableFact>>> notes_;
  std::vector<ShapeId> stated_;  // For the current node.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_GRAPH_INFERENCE_H_
