// The flags that name what to read and what to write.
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

// Paths; "-" is standard input or output, empty means not asked for.
struct GraphFiles {
  std::string input;
  std::string output;  // The graph.
  std::string report;  // JSON.
  std::string patch;   // JSON.
  std::string plan;    // JSON.
  bool quiet = false;  // No summary on standard error.
  // Of the input, and so of the output; none: recognised.
  absl::optional<format::GraphFormat> format = absl::nullopt;
  std::string trace = "";  // JSON, of a step of the graph after the rewrite.
};

// Adds --format to `command`, which sets `*format`. A name that is none is a CLI::ValidationError.
void AddFormatFlag(CLI::App* command, absl::optional<format::GraphFormat>* format);

// What every IN may be, for --help.
extern const char kGraphFileHelp[];

// Must live as long as the App.
class FileFlags {
 public:
  // What a command can write besides graph and report.
  struct Also {
    bool patch, plan, trace;
  };

  // Adds IN, -o, --report, --json, --format and --quiet to `command`; as `also` says, --patch,
  // --save-plan and --trace, too.
  FileFlags(CLI::App* command, Also also);

  const GraphFiles& files() const { return files_; }

 private:
  GraphFiles files_;
};

// A path that is written to, and the flag that gave it.
struct NamedPath {
  absl::string_view flag;
  const std::string& path;
};

// OK unless two paths cannot go together: an output over the input, or two outputs in one place
// (CONFLICTING_OPTIONS). Empty paths do not count.
absl::Status CheckOutputs(const std::string& input, const std::vector<NamedPath>& outputs);

// What `files` say is written.
std::vector<NamedPath> OutputsOf(const GraphFiles& files);

// OK unless two of `files` cannot go together: an output over the input, two outputs in one place,
// or no output at all (CONFLICTING_OPTIONS).
absl::Status CheckFiles(const GraphFiles& files);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_
