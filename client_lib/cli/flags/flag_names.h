// Translates messages about options into the terms of the command line.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// Returns `text` with fields replaced by their flags: `--gpu-memory-bytes` for
// `hardware.gpu_memory_bytes`, `--already-rewritten replan` for `already_rewritten = REPLAN`.
// Quoted text is the user's and stays. A field whose name is an ordinary word, such as `lb`, is
// replaced only if it is one of `options`.
std::string InFlags(absl::string_view text, const std::vector<std::string>& options = {});

// Does the same with the message of an error.
std::string MessageInFlags(const absl::Status& status);

// Formats an error as one line: `MESSAGE [REASON]`.
std::string ErrorText(const absl::Status& status);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_
