// The file of a plan, as `rewrite --save-plan` writes it and `apply` reads it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_SAVED_PLANS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_SAVED_PLANS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// Serialized v1::Plans. Whether they can be applied is the core's business.
class SavedPlans {
 public:
  // Of JSON: a Plan (plan.proto), or {"meta_graphs": [{"index": 0, "plan": PLAN}, ...]} of a
  // SavedModel. INVALID_ARGUMENT (BAD_PLAN) for what is neither.
  static absl::StatusOr<SavedPlans> FromJson(absl::string_view json);

  // That of the graph at `index` of a file; null: there is none. A single Plan is that of all: the
  // core says which graph it is for.
  const std::string* Of(size_t index) const;

 private:
  explicit SavedPlans(std::string single) : single_(std::move(single)) {}
  explicit SavedPlans(std::map<size_t, std::string> of_meta_graphs)
      : of_meta_graphs_(std::move(of_meta_graphs)), is_single_(false) {}

  std::string single_;
  std::map<size_t, std::string> of_meta_graphs_;
  bool is_single_ = true;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_SAVED_PLANS_H_
