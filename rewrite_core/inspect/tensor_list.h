// Every tensor of a graph, in messages of bounded size: the second part of Inspect.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_

#include <functional>

#include "absl/status/status.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inspect.pb.h"

namespace spillway::core {

// A list ends with the tensor with which it reaches this (inspect.proto).
inline constexpr size_t kTensorListBytes = size_t{256} << 10;

// Every output of every node, in file order; neither names nor shapes are cut. Gives each list to
// `sink` as soon as it is full, and ends early once that returns false. One list is in memory at a
// time. The only error is that of `stop`.
absl::Status ListTensors(const Graph& graph, const Shapes& shapes, const StopToken& stop,
                         const std::function<bool(v1::TensorList&&)>& sink);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_
