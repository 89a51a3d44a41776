// The flags that name inputs and outputs.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/format/graph_format.h"

namespace spillway::cli {

// Input and outputs of the commands that rewrite.
struct GraphFiles {
  InputPath input;
  OutputPath output;  // The graph.
  OutputPath report;  // JSON, like all that follow.
  OutputPath patch;
  OutputPath plan;
  OutputPath trace;      // Of a step of the graph after the rewrite.
  bool quiet = false;    // No summary on standard error.
  bool verbose = false;  // With the whole report.
  // The format of input and output; absent: recognised.
  absl::optional<format::GraphFormat> format = absl::nullopt;

  // In this order.
  std::vector<OutputPath> Outputs() const { return {output, report, patch, plan, trace}; }
};

// For CLI::Option::check: returns an error message, or "" if `text` is valid. For flags whose empty
// value would weaken the request: `--tls-ca "$CA"` with an unset variable must not drop the CA.
inline std::string NotEmpty(const std::string& text) {
  return text.empty() ? "the value is empty; give one, or leave the flag out" : "";
}

// Adds --format to `command`, which sets `*format`. An unknown name is a CLI::ValidationError.
void AddFormatFlag(CLI::App* command, absl::optional<format::GraphFormat>* format);

// The formats of a graph, for --help.
extern const char kGraphFileHelp[];

// Adds the argument `name`, which is a graph, to `command`.
CLI::Option* AddGraphArgument(CLI::App* command, const char* name, const std::string& help,
                              InputPath* input);

// Adds a flag that names an output, `-o,--output` or `--trace`, to `command`.
CLI::Option* AddOutputFlag(CLI::App* command, const std::string& flag, const std::string& help,
                           OutputPath* output);

// Must live as long as the App.
class FileFlags {
 public:
  // The outputs of a command besides graph and report.
  struct Also {
    bool patch, plan, trace;
  };

  // Adds IN, -o, --report, --json, --format, --quiet and --verbose to `command`, and depending on
  // `also`,
  // --patch, --save-plan and --trace.
  FileFlags(CLI::App* command, Also also);

  const GraphFiles& files() const { return files_; }

 private:
  GraphFiles files_;
};

// Returns CONFLICTING_OPTIONS if an output would overwrite the input, or two outputs are the same.
absl::Status CheckOutputs(const InputPath& input, const std::vector<OutputPath>& outputs);

// The same for `files`; also BAD_OPTION if there is no output at all, unless in a dry run.
absl::Status CheckFiles(const GraphFiles& files, bool dry_run);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_FILE_FLAGS_H_
