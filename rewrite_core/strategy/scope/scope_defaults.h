// The defaults of the strategy `scope`: those of TFLMS v1 (documented in options.proto).
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_DEFAULTS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_DEFAULTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

inline constexpr int32_t kDefaultNTensors = -1;  // All.
inline constexpr int32_t kDefaultLb = 1;
inline constexpr int32_t kDefaultUb = 10000;
inline constexpr int32_t kDefaultDebugLevel = 1;

// Op types whose outputs are never swapped by this strategy.
inline constexpr absl::string_view kExcludedTypes[] = {
    "Const",      "Mul",     "Add",   "Identity", "Assign",
    "VariableV2", "Reshape", "Shape", "ShapeN",   "Placeholder"};

// The parameters, with defaults other than zero filled in.
struct ScopeDefaults {
  explicit ScopeDefaults(const v1::ScopeStrategy& options)
      : n_tensors(options.has_n_tensors() ? options.n_tensors() : kDefaultNTensors),
        lb(options.has_lb() ? options.lb() : kDefaultLb),
        ub(options.has_ub() ? options.ub() : kDefaultUb),
        debug_level(!options.debug()            ? 0
                    : options.has_debug_level() ? options.debug_level()
                                                : kDefaultDebugLevel),
        direct_order(options.ctrld_strategy() == v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER) {}

  int32_t n_tensors, lb, ub;
  int32_t debug_level;  // 0: nothing is listed.
  bool direct_order;    // Otherwise the chain rule.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_DEFAULTS_H_
