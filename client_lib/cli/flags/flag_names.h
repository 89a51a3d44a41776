// What the core and servers say of options, in the words of the command line.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// `text` with flags in place of the fields that they stand for: `--gpu-memory-bytes` for
// `hardware.gpu_memory_bytes`, `--already-rewritten replan` for `already_rewritten = REPLAN`. What
// is quoted stays: it is the user's. A field whose name is a word of everyday, such as `lb`, counts
// if it is one of `options`.
std::string InFlags(absl::string_view text, const std::vector<std::string>& options = {});

// The message of an error so.
std::string MessageInFlags(const absl::Status& status);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FLAG_NAMES_H_
