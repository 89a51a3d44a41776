// Shape inference over one graph, the caller's or a function's body: the pass, and the fixed point
// of its loops. shapes.h says what it finds; shape_table.h how ops are taught.
//
// A tensor's shape is what the op's shape function finds, merged with what the node states in
// `_output_shapes` and with its feed. Where inference contradicts a statement, the statement holds:
// it is TensorFlow's own word. So inputs that an op cannot take are an error only where nothing is
// stated: not of the node, and not of what its inputs come from.
//
// Loops (Merge that reads a NextIteration): the first round takes the shape on entry; as long as a
// loop's end brings another one, both are joined and what depends on it is done again; after
// kMaxRounds what still changes is unknown.
//
// Sizes that hang on the values of tensors (Unique, Where, ...) are unknown, but not without end: a
// second pass infers bounds. There what such an op says is its most (ShapeContext::set_bound), and
// so is, as a bound, all that is computed from it. This is right as long as what is computed grows
// with what it is computed from: so the values of bounded tensors are kept from all shape functions
// but those of ops in a table (kBoundedValues in the .cc).
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_INFERENCE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_INFERENCE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "rewrite_core/analysis/output_signature.h"
#include "rewrite_core/analysis/shape_context.h"
#include "rewrite_core/analysis/shape_table.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/analysis/variable_handles.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// What is known of a graph's op types: looked up once for all of its nodes.
class GraphOps {
 public:
  explicit GraphOps(const Graph& graph);

  struct Op {
    ShapeFunction function;
    OutputSignature outputs;
    bool known;             // Its outputs are those of the signature.
    bool is_source;         // Its data come from outside: their first dimension may be the batch.
    bool is_handle_source;  // It may give out the handle of a variable.
    const VariableOp* variable_op;  // Null: it takes no handle of a variable.
    uint32_t bounded_values;        // Bit i: the value of input i may be a bound.
  };
  const Op& operator[](int32_t op_id) const { return ops_[op_id]; }

 private:
  std::vector<Op> ops_;
};

// What is given of a fed tensor.
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
  // Fed tensors, by node and port; a node's name is looked up here for its feed.
  const FedTensors* feeds = nullptr;
  // What is known from outside, of `_Arg` nodes of a function's body.
  const absl::flat_hash_map<NodeId, TensorFact>* arguments = nullptr;
  // What is known of variables and lists from elsewhere; may be null.
  const VariableFacts* variables = nullptr;
  // Whether what cannot be is an error; otherwise unknown.
  bool strict = false;
  // Not null: bounds are inferred, and these are the facts without any.
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
  // Whether a size is unknown that has a bound.
  bool has_bounds() const { return context_.has_bounds_; }
  // What nodes say of variables, and of lists, whose own nodes do not say it in full. Once.
  VariableFacts TakeVariables();

 private:
  void LayOut();
  absl::Status Visit(NodeId id);
  // Adds to the handle that a node gives out what is known of its variable.
  void SetHandle(NodeId id, ShapeContext& c);
  void KeepNotes(NodeId id);  // Of the node at hand.
  bool IsStatedInFull() const;
  // What is known of an output without bounds is no bound.
  void TakeExact(int64_t index, TensorFact* fact);
  static void CallByName(ShapeContext& c);  // Of a function whose name is the op type.
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
  // By node: what it says, and of whose handle.
  absl::flat_hash_map<NodeId, std::vector<std::pair<NodeId, VariableFact>>> notes_;
  std::vector<ShapeId> stated_;  // Of the node at hand.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_INFERENCE_H_
