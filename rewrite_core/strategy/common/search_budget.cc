#include "rewrite_core/strategy/common/search_budget.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {

absl::Status SearchBudget::status(absl::string_view search, absl::string_view remedy) const {
  if (ended_early_) {
    return Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_SEARCH_TOO_LONG,
                 absl::StrCat("the search for ", search, " ended before it found one"), {});
  }
  if (steps_ <= max_steps_) return stop_.status("strategy");
  return Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_SEARCH_TOO_LONG,
               absl::StrCat("the search for ", search, " took more than ", max_steps_,
                            " steps (limit max_search_steps); ", remedy),
               {{"limit", "max_search_steps"}, {"value", absl::StrCat(max_steps_)}});
}

}  // namespace spillway::core
