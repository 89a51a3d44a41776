// The flag --execution: the way of running a step that is shown.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "client_lib/cli/flags/field_flag.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

inline constexpr char kExecutionFlag[] = "--execution";

inline OptionRow ExecutionRow() { return RowOf(v1::SimulateOptions::descriptor(), "execution"); }

inline CLI::Option* AddExecutionFlag(CLI::App* command, const std::string& group) {
  return AddFieldFlag(command, ExecutionRow(), group);
}

inline absl::Status SetExecution(const CLI::Option* option, v1::SimulateOptions* options) {
  return SetFromFlag(ExecutionRow(), option, options);
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_
