// The check of flags whose empty value would mean something weaker than what was asked for:
// `--tls-ca "$CA"` with a variable that is not set must not turn the authority off.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_

#include <string>

namespace spillway::cli {

// For CLI::Option::check: an error message, or "" where `text` is right.
inline std::string NotEmpty(const std::string& text) {
  return text.empty() ? "the value is empty; give one, or leave the flag out" : "";
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_
