// Where logs go: one line each to stderr, as text or as a JSON object. All of the server's own
// lines come through Log, and gRPC's messages at level debug.
//
// What a line holds may come from a stranger (names in error messages, a request id): it cannot end
// the line or forge another field, since whatever is not plain is escaped.
//
// Nobody waits for who reads the log. Lines go through a queue to a thread of their own; if they
// are not read, the oldest are dropped and counted.
//
// Thread-safe but for InitLogging.
#ifndef SPILLWAY_SERVER_LOGGING_H_
#define SPILLWAY_SERVER_LOGGING_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace spillway::server {

enum class LogLevel { kDebug, kInfo, kWarn };

// An object: what belongs to a message, by name, in the order of the line.
using LogFields = nlohmann::ordered_json;

// Writes one line, `message key=value key="a value"...` or
// `{"time":...,"level":...,"message":...,"key":value,...}`.
void Log(LogLevel level, absl::string_view message, const LogFields& fields = LogFields::object());

// Lines that were dropped since InitLogging.
int64_t DroppedLogLines();

// For main(), at its end: waits until all lines are out, or for `most` if nobody reads them.
void FlushLog(absl::Duration most);

// For main() only: this sets the process's logger. Before, lines are text on stdout, and nobody
// drops any.
// `level`: trace, debug, info, warn, error or off. `format`: text or json.
void InitLogging(const std::string& level, const std::string& format);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LOGGING_H_
