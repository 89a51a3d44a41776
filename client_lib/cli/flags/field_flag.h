// A flag for a field of a message.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "client_lib/cli/flags/option_table.h"
#include "google/protobuf/message.h"

namespace spillway::cli {

// Adds the flag of `row` to `command`, with the syntax of its field, in that group of --help.
CLI::Option* AddFieldFlag(CLI::App* command, const OptionRow& row, const std::string& group);

// Sets the field of `row` in `message` if `option`, its flag, was given. Errors are those of
// SetField.
absl::Status SetFromFlag(const OptionRow& row, const CLI::Option* option,
                         google::protobuf::Message* message);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_
