// Where logs go: one line each to stderr, gRPC's own messages at level debug. For main() only: this
// sets the process's default logger.
#ifndef SPILLWAY_SERVER_LOGGING_H_
#define SPILLWAY_SERVER_LOGGING_H_

#include <string>

namespace spillway::server {

// `level`: trace, debug, info, warn, error or off.
void InitLogging(const std::string& level);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LOGGING_H_
