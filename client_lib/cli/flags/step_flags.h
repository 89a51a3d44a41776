// The flags of `simulate`, `explore` and `inspect` that say what one step is and what it runs on:
// the rows of the option table for v1::Step and its v1::Hardware.
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
  // Adds the flags to `command`, but for that of the field `without`.
  explicit StepFlags(CLI::App* command, absl::string_view without = "");

  // Those given. Errors: BAD_OPTION for a value that cannot be read, and a file that cannot.
  absl::StatusOr<v1::Step> Build(FeedSizes sizes = FeedSizes::kFixed) const;

  // Whether --no-budget was given.
  bool no_budget() const { return no_budget_; }

  // The first flag given of those that stand for something else than shapes (`--feed`,
  // `--batch-size`); empty if none is.
  std::string FirstBeyondShapes() const;

 private:
  // What a table's rows have been given as, by the row's field.
  using Options = std::map<std::string, CLI::Option*>;

  Options step_, hardware_;
  bool no_budget_ = false;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_STEP_FLAGS_H_
