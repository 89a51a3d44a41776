// The part of a name by which TFLMS, v1 and v2, recognizes the branches of a conditional. Kept,
// since it decides which nodes may be triggers in plans that must match theirs.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COND_SCOPE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COND_SCOPE_H_

namespace spillway::core {

inline constexpr char kCondScope[] = "/cond/";

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COND_SCOPE_H_
