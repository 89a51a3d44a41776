// The command line of spillwayd: flags bind into the fields of Options.
#ifndef SPILLWAY_SERVER_FLAGS_H_
#define SPILLWAY_SERVER_FLAGS_H_

#include <optional>
#include <string>

#include "server/options.h"

namespace spillway::server {

// Exit codes of the program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // An address cannot be listened on, a file not be used.
inline constexpr int kExitBadFlags = 2;  // As of many Unix programs.
inline constexpr int kExitForced = 3;    // A second signal came while the server drained.
inline constexpr int kExitStuck = 4;     // A request did not end when it was told to.

// What a command line asks for: to serve with `options`, with `only_check` to see whether one could
// (Server::Check) and to print `text`, a line for each setting; or, if there are none, to print
// `text` (to stdout if exit_code is kExitOk, to stderr otherwise) and exit.
struct ParsedFlags {
  std::optional<Options> options;
  bool only_check = false;
  int exit_code = kExitOk;
  std::string text;
};

// Parses and checks; what it gives is fit for Server::BuildAndStart. An error is one sentence that
// names the flags involved and says what to do.
ParsedFlags ParseFlags(int argc, const char* const* argv);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_FLAGS_H_
