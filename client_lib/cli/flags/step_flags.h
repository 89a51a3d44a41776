// The flags of `simulate`, `explore` and `inspect` that define a step and its hardware: the rows of
// the option table for v1::Step and its v1::Hardware.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_STEP_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_STEP_FLAGS_H_

#include <map>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/flags/option_table.h"
#include "client_lib/cli/flags/option_value.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

// Must live as long as the App. Not thread-safe.
class StepFlags {
 public:
  // Adds the flags to `command`, except that of the field `without`.
  explicit StepFlags(CLI::App* command, absl::string_view without = "");

  // Returns the given step. Errors: BAD_OPTION for a value that cannot be parsed, and for an
  // unreadable file.
  absl::StatusOr<v1::Step> Build(FeedSizes sizes = FeedSizes::kFixed) const;

  // Whether --no-budget was given.
  bool no_budget() const { return no_budget_; }

  // Returns the first given flag other than those for shapes (`--feed`, `--batch-size`); empty if
  // none.
  std::string FirstBeyondShapes() const;

 private:
  // Options by flag.
  using Options = std::map<std::string, CLI::Option*>;

  Options step_, hardware_;
  bool no_budget_ = false;
};

// Adds --no-stored-profile to `command`, which sets `*without`.
void AddStoredProfileFlag(CLI::App* command, bool* without);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_STEP_FLAGS_H_
