// Every tensor of a graph, in messages of bounded size: the second part of Inspect.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_

#include <functional>

#include "absl/status/status.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inspect.pb.h"

namespace spillway::core {

// A list ends with the tensor that makes it reach this size (inspect.proto).
inline constexpr size_t kTensorListBytes = size_t{256} << 10;

// Lists every output of every node, in file order, with full names and shapes. Passes each list to
// `sink` as soon as it is full, and ends early once that returns false. Only one list is in memory
// at a time. The only error is that of `stop`.
absl::Status ListTensors(const Graph& graph, const Shapes& shapes, const StopToken& stop,
                         const std::function<bool(v1::TensorList&&)>& sink);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_TENSOR_LIST_H_
