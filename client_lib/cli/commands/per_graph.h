// Commands that ask about a graph file and print the answer, for every graph in it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/base/session.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/flags/color_flag.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/format/graph_file.h"
#include "spillway/client.h"

namespace spillway::cli {

// Asks `client` about one serialized GraphDef and writes the answer to `out`, as JSON or text, with
// a final newline.
using GraphPrinter =
    std::function<absl::Status(absl::string_view graph_def, const Client& client,
                               const CallOptions& call, text::Style style, std::ostream& out)>;

// The parameters of such a command.
struct PerGraphRun {
  InputPath input;
  absl::optional<format::GraphFormat> format;
  bool json = false;
  const char* key;    // The key of the value in the JSON of a SavedModel.
  const char* doing;  // The activity of the core for the progress line: `simulating`.
  // Whether text is printed as it arrives, not only if everything succeeds.
  bool as_it_arrives = false;
  const ConnectionFlags& connection;
  // Whether text that is printed as it arrives goes through PrintBesideProgress.
  bool beside_progress = false;
};

// Prints the output of `print` for each graph of the file on standard output: as text, each under
// its name if there are several; as JSON, the value alone, or for a SavedModel a list with the
// value under the key. --timeout covers all of them. Errors are prefixed with the names of file and
// graph.
absl::StatusOr<ExitCode> PrintPerGraph(const PerGraphRun& run, const Session& session,
                                       const GraphPrinter& print);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_
