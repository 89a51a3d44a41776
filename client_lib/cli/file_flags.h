// The flags that name what to read and what to write.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILE_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILE_FLAGS_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace spillway::cli {

// Paths; "-" is standard input or output, empty means not asked for.
struct GraphFiles {
  std::string input;
  std::string output;  // The graph.
  std::string report;  // JSON.
  std::string patch;   // JSON.
  bool quiet = false;  // No summary on standard error.
};

// Must live as long as the App.
class FileFlags {
 public:
  // Adds IN, -o and --quiet to `command`; with `with_report`, --report and --patch, too.
  FileFlags(CLI::App* command, bool with_report);

  const GraphFiles& files() const { return files_; }

 private:
  GraphFiles files_;
};

// OK unless two of `files` cannot go together: an output over the input, two outputs in one place,
// or no output at all (CONFLICTING_OPTIONS).
absl::Status CheckFiles(const GraphFiles& files);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILE_FLAGS_H_
