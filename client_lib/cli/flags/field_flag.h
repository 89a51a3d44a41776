// A flag for a field of a message.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/flags/option_table.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace spillway::cli {

// Adds `flag` to `command`, with the syntax of `field`, in that group of --help.
CLI::Option* AddFieldFlag(CLI::App* command, const std::string& flag, const std::string& help,
                          const google::protobuf::FieldDescriptor* field, const std::string& group);

// Returns the help of a row followed by its default.
std::string HelpOf(absl::string_view help, absl::string_view default_text);

// Sets the field of that name in `message` if `option` was given. Errors are those of SetField.
absl::Status SetFromFlag(const std::string& flag, const CLI::Option* option,
                         absl::string_view field, google::protobuf::Message* message);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FIELD_FLAG_H_
