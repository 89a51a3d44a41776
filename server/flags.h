// The command line of spillwayd: flags bind into the fields of Options.
#ifndef SPILLWAY_SERVER_FLAGS_H_
#define SPILLWAY_SERVER_FLAGS_H_

#include <optional>
#include <string>

#include "server/base/options.h"

namespace spillway::server {

// Exit codes of the program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // An address or a file cannot be used.
inline constexpr int kExitBadFlags = 2;  // As in many Unix programs.
inline constexpr int kExitForced = 3;    // A second signal arrived during the drain.
inline constexpr int kExitStuck = 4;     // A request did not end when it was cancelled.

// The action that a command line requests. With `options`: to serve; with `only_check`, to check
// whether that would work (Server::Check) and to print `text`, a line for each setting. Without
// `options`: to print `text` (to stdout if exit_code is kExitOk, to stderr otherwise) and exit.
struct ParsedFlags {
  std::optional<Options> options;
  bool only_check = false;
  int exit_code = kExitOk;
  std::string text;
};

// Parses and checks flags; the options are valid for Server::BuildAndStart. An error is one
// sentence that names the flags involved and says what to do.
ParsedFlags ParseFlags(int argc, const char* const* argv);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_FLAGS_H_
