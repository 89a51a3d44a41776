// Synthetic training graphs of any size: a residual convolution net with its backward pass,
// momentum optimizer and initializers, as TensorFlow's tf.train API would write it. For benchmarks
// and scale tests.
#ifndef SPILLWAY_TESTS_TESTING_TRAINING_GRAPH_H_
#define SPILLWAY_TESTS_TESTING_TRAINING_GRAPH_H_

#include <cstdint>
#include <string>

namespace spillway::testing {

struct TrainingGraphOptions {
  // The exact number of nodes. At least kMinTrainingGraphNodes.
  int64_t nodes = 10000;
  // `_output_shapes` on every node.
  bool shapes = true;
  int64_t batch = 64;
  // Name scopes of the gradients and of the optimizer. Every op of the backward part is in one of
  // them, and no other op is.
  std::string gradients_scope = "gradients";
  std::string optimizer_scope = "train";
};

inline constexpr int64_t kMinTrainingGraphNodes = 150;

// Returns a serialized GraphDef; the same bytes for the same options. Nodes are written once, as
// they are made, so it only takes the memory of the result.
//
// Forward: `images` -> blocks of x + relu(conv(relu(conv(x)))) -> mean -> matmul -> cross entropy.
// Each forward tensor is read by the next op and by a gradient op at the mirrored position. The
// remaining `nodes` are a chain of scalar ops under `schedule/`.
std::string MakeTrainingGraph(const TrainingGraphOptions& options);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_TRAINING_GRAPH_H_
