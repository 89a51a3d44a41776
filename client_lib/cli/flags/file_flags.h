// The flags that name input and output files.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_format.h"

namespace spillway::cli {

// Paths; "-" is standard input or output, empty means not requested.
struct GraphFiles {
  std::string input;
  std::string output;  // The graph.
  std::string report;  // JSON.
  std::string patch;   // JSON.
  std::string plan;    // JSON.
  bool quiet = false;  // No summary on standard error.
  // The format of input and output; absent: recognised.
  absl::optional<format::GraphFormat> format = absl::nullopt;
  std::string trace = "";  // JSON, of a step of the graph after the rewrite.
};

// Adds --format to `command`, which sets `*format`. An unknown name is a CLI::ValidationError.
void AddFormatFlag(CLI::App* command, absl::optional<format::GraphFormat>* format);

// The formats of IN, for --help.
extern const char kGraphFileHelp[];

// Must live as long as the App.
class FileFlags {
 public:
  // The outputs of a command besides graph and report.
  struct Also {
    bool patch, plan, trace;
  };

  // Adds IN, -o, --report, --json, --format and --quiet to `command`, and depending on `also`,
  // --patch, --save-plan and --trace.
  FileFlags(CLI::App* command, Also also);

  const GraphFiles& files() const { return files_; }

 private:
  GraphFiles files_;
};

// An output path and its flag.
struct NamedPath {
  absl::string_view flag;
  const std::string& path;
};

// Returns CONFLICTING_OPTIONS if an output would overwrite the input, or two outputs have the same
// path. Ignores empty paths.
absl::Status CheckOutputs(const std::string& input, const std::vector<NamedPath>& outputs);

// Returns the outputs of `files`.
std::vector<NamedPath> OutputsOf(const GraphFiles& files);

// The same for `files`; also CONFLICTING_OPTIONS if there is no output at all.
absl::Status CheckFiles(const GraphFiles& files);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_
