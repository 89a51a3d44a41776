// A command that asks about a graph file and prints the answer: the same for every graph in it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/cli/exit_code.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/print/style.h"
#include "client_lib/cli/session.h"
#include "client_lib/format/graph_file.h"
#include "spillway/client.h"

namespace spillway::cli {

// Asks `client` about one serialized GraphDef, and writes to `out` what there is to print, in JSON
// or as text, with a line end.
using GraphPrinter =
    std::function<absl::Status(absl::string_view graph_def, const Client& client,
                               const CallOptions& call, Style style, std::ostream& out)>;

// What such a command was asked for.
struct PerGraphRun {
  const std::string& input;
  absl::optional<format::GraphFormat> format;
  bool json = false;
  const char* key;    // Of the value, in the JSON of a SavedModel.
  const char* doing;  // What the core does, for the progress line: `simulating`.
  // What is printed as text is printed as it comes, and not only if all goes well.
  bool as_it_comes = false;
  const ConnectionFlags& connection;
  // What is printed as it comes goes by PrintBesideProgress.
  bool tells_progress = false;
};

// Prints what `print` says of each graph of the file on standard output: as text, each under its
// name if there are several; as JSON the value alone, or for a SavedModel a list with the value
// under the key. --timeout holds for all of them. Errors have the file's name, and the graph's, in
// front.
absl::StatusOr<ExitCode> PrintPerGraph(const PerGraphRun& run, const Session& session,
                                       const GraphPrinter& print);

// `call` with what is left of its time at `deadline`: for a file of several graphs.
CallOptions Until(absl::Time deadline, const CallOptions& call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PER_GRAPH_H_
