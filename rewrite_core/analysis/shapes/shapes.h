// The known properties of a graph's tensors: type, shape, size in bytes, and the values of the
// small integer tensors that shapes are computed with.
//
// One pass of shape functions over the graph (shape_functions/), merged with the nodes'
// `_output_shapes`; loops by a bounded fixed point; function calls through the library. Facts about
// variables whose own nodes do not state them (variable_handles.h) go into another pass, until
// nothing new is found. Feeds fix the shapes of fed tensors, and the batch size stands for an
// unknown first dimension of sources (placeholders, iterators, dequeues). Unknown is a value of its
// own, with a reason: never 0.
//
// Thread safety: immutable after Infer.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/shape_pool.h"
#include "rewrite_core/analysis/shapes/tensor_fact.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

inline constexpr int64_t kUnknownSize = -1;

// A possibly partial shape; an unknown dimension is kUnknownDim.
struct ShapeView {
  bool known_rank = false;
  absl::Span<const int64_t> dims;
};

class Shapes {
 public:
  // Reads step.feeds and step.batch_size. Errors (INVALID_ARGUMENT) name the node and the field or
  // the option: a feed that names no node, is given twice, has a dimension or value out of range or
  // contradicts the graph; a batch_size out of range; invalid inputs of an op (ranks, dimensions),
  // unless it may not run (conditionals, functions); a size in bytes above 63 bits; more distinct
  // shapes than a ShapePool holds (LIMIT_EXCEEDED).
  static absl::StatusOr<Shapes> Infer(const Graph& graph, const Topology& topology,
                                      const v1::Step& step, const StopToken& stop);

  // 0 if unknown; for an op that TensorFlow does not have, at least those that are read. Fewer for
  // a node that claims more outputs than the graph's size accounts for.
  int num_outputs(NodeId node) const { return static_cast<int>(first_[node + 1] - first_[node]); }

  // The properties of one tensor; all unknown for a port that does not exist.
  ShapeView shape(Tensor tensor) const {
    const ShapeId id = fact(tensor).shape;
    return {id != kUnknownShape, (*pool_)[id]};
  }
  OutputType type(Tensor tensor) const {
    const TensorFact& f = fact(tensor);
    return {static_cast<DataType>(f.dtype), f.is_ref};
  }
  // Bytes of a tensor; kUnknownSize if unknown, for the reason given. References have no size.
  int64_t size_bytes(Tensor tensor) const;
  v1::SizeUnknown why_unknown(Tensor tensor) const;
  // The same, but for a reference the size of the variable.
  int64_t buffer_bytes(Tensor tensor) const;
  // The value of an int32, int64 or bool tensor of at most ShapePool::kMaxListSize elements, as far
  // as it is known, from feeds or the graph: in row-major order, false and true are 0 and 1, an
  // unknown element is kUnknownElement.
  absl::optional<absl::Span<const int64_t>> value(Tensor tensor) const;
  // The shape behind a resource or variant handle: a variable's shape; for a list (TensorArray,
  // TensorList, Stack), the number of elements, then their common shape.
  ShapeView handle_shape(Tensor tensor) const;

  // The type of the variable whose handle enters the graph at this node; kDtInvalid if none does.
  // Its shape, from reads and updates, is given by handle_shape.
  DataType captured_variable(NodeId node) const {
    const auto found = captured_.find(node);
    return found == captured_.end() ? kDtInvalid : found->second;
  }

  // The same with upper bounds for unknown sizes that depend on values (Unique, Where, ...), and
  // for tensors computed from these.
  const Shapes& bounds() const { return bounds_ == nullptr ? *this : *bounds_; }

  // The nodes whose shapes a feed or batch_size states, not the graph.
  const absl::flat_hash_set<NodeId>& requested() const { return requested_; }
  // Whether the caller feeds this node.
  bool IsFed(NodeId node) const { return !fed_.empty() && fed_.contains(node); }

  // Placeholders, iterators and dequeues whose first dimension is not given by the graph, a feed or
  // batch_size. By id.
  const std::vector<NodeId>& open_sources() const { return open_sources_; }

  // Whether a batch_size was given but is the first dimension of none of these: the graph states
  // others.
  bool ignores_batch_size() const { return ignores_batch_size_; }

 private:
  const TensorFact& fact(Tensor tensor) const {
    static constexpr TensorFact kNothing;
    const int64_t index = int64_t{first_[tensor.node]} + tensor.port;
    return tensor.port >= 0 && index < first_[tensor.node + 1] ? facts_[index] : kNothing;
  }

  std::vector<uint32_t> first_;  // In facts_: num_nodes + 1.
  std::vector<TensorFact> facts_;
  std::shared_ptr<ShapePool> pool_ = std::make_shared<ShapePool>();  // Shared with bounds().
  std::shared_ptr<const Shapes> bounds_;                             // Null: there are no bounds.
  absl::flat_hash_set<NodeId> fed_, requested_;
  absl::flat_hash_map<NodeId, DataType> captured_;
  std::vector<NodeId> open_sources_;
  bool ignores_batch_size_ = false;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPES_H_
