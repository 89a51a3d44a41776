// The error for a plan that is refused.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {

// INVALID_ARGUMENT (BAD_PLAN). `what` is a clause that names the thing.
inline absl::Status BadPlanError(absl::string_view what,
                                 absl::Span<const ErrorDetail> details = {}) {
  return InvalidError(v1::ERROR_REASON_BAD_PLAN,
                      absl::StrCat("the plan cannot be applied: ", what,
                                   "; give it as it was saved, or make another one"),
                      details);
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
