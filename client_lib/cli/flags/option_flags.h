// Adds the flags of the option table to a command, and builds v1::RewriteOptions from them.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "client_lib/cli/flags/option_table.h"
#include "google/protobuf/message.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {

// Must live as long as the App. Not thread-safe.
class OptionFlags {
 public:
  // Adds --strategy, the common flags and those of every strategy, grouped, to `command`. Only
  // tests pass `strategies`.
  explicit OptionFlags(CLI::App* command,
                       const std::vector<StrategyTable>& strategies = Strategies());

  // Returns the given options. Errors: UNKNOWN_OPTION for a strategy that does not exist,
  // CONFLICTING_OPTIONS for a flag of another strategy, BAD_OPTION for a value that cannot be
  // parsed. Without --strategy and any strategy's flags, the strategy is left unset, for the core
  // to choose.
  absl::StatusOr<v1::RewriteOptions> Build() const;

 private:
  void Add(const OptionRow& row, const std::string& group);
  absl::StatusOr<const StrategyTable*> ChosenStrategy() const;
  absl::Status CheckNoOtherFlags(const StrategyTable& chosen) const;
  // Sets the field of `row` in `message` if its flag was given.
  absl::Status Set(const OptionRow& row, google::protobuf::Message* message) const;

  CLI::App* const command_;
  const std::vector<StrategyTable>& strategies_;
  CLI::Option* strategy_ = nullptr;
  std::map<std::string, CLI::Option*> flags_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_FLAGS_H_
