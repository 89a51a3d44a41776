// Where logs go: one line each to stderr, as text or as a JSON object. All of the server's own
// lines come through Log, and gRPC's messages at level debug.
//
// What a line holds may come from a stranger (names in error messages, a request id): it cannot end
// the line or forge another field, since whatever is not plain is escaped.
//
// Thread-safe but for InitLogging.
#ifndef SPILLWAY_SERVER_LOGGING_H_
#define SPILLWAY_SERVER_LOGGING_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::server {

enum class LogLevel { kDebug, kInfo, kWarn };

// An object: what belongs to a message, by name, in the order of the line.
using LogFields = nlohmann::ordered_json;

// Writes one line, `message key=value key="a value"...` or
// `{"time":...,"level":...,"message":...,"key":value,...}`.
void Log(LogLevel level, absl::string_view message, const LogFields& fields = LogFields::object());

// For main() only: this sets the process's logger. Before, lines are text on stdout.
// `level`: trace, debug, info, warn, error or off. `format`: text or json.
void InitLogging(const std::string& level, const std::string& format);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LOGGING_H_
