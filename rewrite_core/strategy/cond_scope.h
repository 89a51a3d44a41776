// How TFLMS, v1 and v2, tells the branches of a conditional: by a part of the name. Kept, since it
// decides what is a trigger in plans that are to be theirs.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COND_SCOPE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COND_SCOPE_H_

namespace spillway::core {

inline constexpr char kCondScope[] = "/cond/";

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COND_SCOPE_H_
