// Logging to stderr, one line per message, as text or as a JSON object. Log carries all of the
// server's own lines, and gRPC's messages at level debug.
//
// Parts of a line may be untrusted (names in error messages, a request id): they cannot end the
// line or forge another field, because special characters are escaped.
//
// Logging never waits for the reader of the log. Lines go through a queue to a separate thread; if
// they are not read, the oldest are dropped and counted.
//
// Thread-safe except for InitLogging.
#ifndef SPILLWAY_SERVER_BASE_LOGGING_H_
#define SPILLWAY_SERVER_BASE_LOGGING_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace spillway::server {

enum class LogLevel { kDebug, kInfo, kWarn };

// An object: the fields of a message by name, in the order of the line.
using LogFields = nlohmann::ordered_json;

// Writes one line, `message key=value key="a value"...` or
// `{"time":...,"level":...,"message":...,"key":value,...}`.
void Log(LogLevel level, absl::string_view message, const LogFields& fields = LogFields::object());

// Returns the number of lines dropped since InitLogging.
int64_t DroppedLogLines();

// For the end of main(): waits until all lines are written, for at most `most` if they are not
// read.
void FlushLog(absl::Duration timeout);

// For main() only: sets the process's logger. Before this, lines are text on stdout, and none are
// dropped. `level`: trace, debug, info, warn, error or off. `format`: text or json.
void InitLogging(const std::string& level, const std::string& format);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_LOGGING_H_
