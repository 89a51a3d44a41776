// Plan files, written by `rewrite --save-plan` and read by `apply`.
#ifndef SPILLWAY_CLIENT_LIB_CLI_REWRITE_SAVED_PLANS_H_
#define SPILLWAY_CLIENT_LIB_CLI_REWRITE_SAVED_PLANS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// Serialized v1::Plans. The core decides whether they can be applied.
class SavedPlans {
 public:
  // Parses JSON: a Plan (plan.proto), or for a SavedModel
  // {"meta_graphs": [{"index": 0, "plan": PLAN}, ...]}. INVALID_ARGUMENT (BAD_PLAN) otherwise.
  static absl::StatusOr<SavedPlans> FromJson(absl::string_view json);

  // Returns the plan for the graph at `index` of a file, or null if none. A single Plan is returned
  // for every graph: the core decides which graph it is for.
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

#endif  // SPILLWAY_CLIENT_LIB_CLI_REWRITE_SAVED_PLANS_H_
