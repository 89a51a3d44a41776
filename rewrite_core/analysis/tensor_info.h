// What is known of the tensors that a node puts out: type, shape and size in bytes.
//
// Sizes come from the attribute `_output_shapes`, from the shapes of feeds (which go first), from a
// Placeholder's own shape, and from the batch size, which replaces an unknown first dimension.
// Unknown is a value of its own, with a reason: never 0.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_INFO_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_INFO_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_outputs.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

inline constexpr int64_t kUnknownSize = -1;

struct TensorInfo {
  OutputType type;
  // As far as it is known; nothing if nobody states one.
  absl::optional<Shape> shape;
  int64_t size_bytes = kUnknownSize;
  v1::SizeUnknown why_unknown = v1::SIZE_UNKNOWN_NO_SHAPE;  // Meaningful where the size is unknown.
};

class TensorInfos {
 public:
  // INVALID_ARGUMENT if a feed names no node, is given twice, or has a dimension out of range, or
  // if batch_size is. `graph` must outlive the result.
  static absl::StatusOr<TensorInfos> Create(const Graph& graph, const v1::RewriteOptions& options);

  // The outputs `ports` (ascending, not empty) of a node. INVALID_ARGUMENT (BAD_ATTRIBUTE) if a
  // size does not fit 63 bits.
  absl::StatusOr<std::vector<TensorInfo>> Outputs(NodeId node,
                                                  absl::Span<const int32_t> ports) const;

  // Whether the caller feeds this node.
  bool IsFed(NodeId node) const { return fed_nodes_.contains(node); }

 private:
  explicit TensorInfos(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  int64_t batch_size_ = kUnknownDim;
  absl::flat_hash_map<NodeId, absl::flat_hash_map<int, std::vector<int64_t>>> fed_nodes_;
};

// Bytes of `elements` dims of `element_bytes` each; nothing if it does not fit 63 bits.
// REQUIRES: no dimension is negative.
absl::optional<int64_t> CheckedBytes(absl::Span<const int64_t> dims, int element_bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_INFO_H_
