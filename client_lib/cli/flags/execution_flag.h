// The flag --execution: the execution model that is shown.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "client_lib/cli/flags/field_flag.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

inline constexpr char kExecutionFlag[] = "--execution";

// `shown`: the subject of the help text, e.g. `The memory`.
inline CLI::Option* AddExecutionFlag(CLI::App* command, const std::string& shown,
                                     const std::string& group) {
  return AddFieldFlag(
      command, kExecutionFlag,
      shown +
          " of which way of running the step: launched_ahead, as TensorFlow does it (kernels take "
          "their memory when they are launched, long before they run), or synchronous (when they "
          "run). [default: launched_ahead]",
      v1::SimulateOptions::descriptor()->FindFieldByName("execution"), group);
}

inline absl::Status SetExecution(const CLI::Option* option, v1::SimulateOptions* options) {
  return SetFromFlag(kExecutionFlag, option, "execution", options);
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_EXECUTION_FLAG_H_
