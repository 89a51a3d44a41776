// Operations that read only a shape, and that TensorFlow makes constants before a step runs:
// Grappler's constant folding, which every session and function runs by default, replaces Shape,
// ShapeN, Size and Rank if it knows the shape (MaterializeShapes in
// tensorflow/core/grappler/optimizers/constant_folding.cc). They then wait for their input's
// producer, and read nothing: so a tensor is not kept, swapped in or recomputed for them. In
// TensorFlow 1 each gradient of a convolution has a ShapeN, which often runs late.
//
// It does not trust shapes of feeds, nor know values from the request alone, such as a batch size.
// (It finds some shapes that depend on these from constants of gradients, which is not repeated
// here: of resnet50_tf1 7 of 53, of a MobileNet 34 of 35.) Linear in the graph.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONSTANT_SHAPES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONSTANT_SHAPES_H_

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// Flags the nodes that become constants: none if step.grappler is AS_IS. Errors: those of `stop`.
absl::StatusOr<NodeFlags> FindConstantShapes(const Graph& graph, const Topology& topology,
                                             const Shapes& shapes, const v1::Step& step,
                                             const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONSTANT_SHAPES_H_
