// Validation of flags whose empty value would weaken the request: `--tls-ca "$CA"` with an unset
// variable must not drop the CA.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_

#include <string>

namespace spillway::cli {

// For CLI::Option::check: returns an error message, or "" if `text` is valid.
inline std::string NotEmpty(const std::string& text) {
  return text.empty() ? "the value is empty; give one, or leave the flag out" : "";
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_NOT_EMPTY_H_
