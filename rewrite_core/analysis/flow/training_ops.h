// Which ops write to a variable, and which only compute gradients, by the names of TensorFlow's op
// types.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_TRAINING_OPS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_TRAINING_OPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace spillway::core {

enum class Write : uint8_t {
  kNone,
  kOptimizer,    // Only optimizers use it.
  kAccumulator,  // As kOptimizer, but to a sum of gradients over workers, which is not a variable.
  kPlain,        // Optimizers, initializers, counters, moving averages, ...
};

// The kind of write that ops of type `op` perform.
Write WriteOf(absl::string_view op);

// Whether ops of this type only compute gradients. BackpropInput does not count: it is also the
// transposed convolution of a forward pass.
bool IsGradientOpType(absl::string_view op);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_TRAINING_OPS_H_
