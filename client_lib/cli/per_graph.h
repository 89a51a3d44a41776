// A command that looks at a graph file and prints what it finds: the same for every graph in it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PER_GRAPH_H_
#define SPILLWAY_CLIENT_LIB_CLI_PER_GRAPH_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/cli/exit_code.h"
#include "client_lib/cli/session.h"
#include "client_lib/cli/style.h"
#include "client_lib/format/graph_file.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::cli {

// What to print of one serialized GraphDef, in JSON or as text, with a line end.
using GraphPrinter = std::function<absl::StatusOr<std::string>(
    absl::string_view graph_def, const core::StopToken& stop, Style style)>;

// Prints what `print` says of each graph of the file `input` on standard output: as text, each
// under its name if there are several; as JSON (`json`) the value alone, or for a SavedModel a list
// with the value under `key`. Errors have the file's name, and the graph's, in front.
absl::StatusOr<ExitCode> PrintPerGraph(const std::string& input,
                                       absl::optional<format::GraphFormat> format, bool json,
                                       const char* key, const Session& session,
                                       const GraphPrinter& print);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PER_GRAPH_H_
