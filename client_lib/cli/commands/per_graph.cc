#include "client_lib/cli/commands/per_graph.h"

#include <unistd.h>

#include <iostream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {

absl::StatusOr<ExitCode> PrintPerGraph(const PerGraphRun& run, const Session& session,
                                       const GraphPrinter& print) {
  absl::StatusOr<CallOptions> call = run.connection.MakeCall(session);
  if (!call.ok()) return call.status();
  const absl::StatusOr<format::GraphFile> file =
      ReadGraphFile(run.input, run.format, session.cancellation);
  if (!file.ok()) return file.status();
  const bool as_it_arrives = run.as_it_arrives && !run.json;
  // A progress line would mix with text on the same terminal, unless the caller handles that.
  ProgressLine progress(as_it_arrives && !run.beside_progress && isatty(STDOUT_FILENO) == 1
                            ? Verbosity::kQuiet
                            : Verbosity::kNormal,
                        run.doing);
  call->on_progress = progress.callback();
  const Client client = run.connection.Connect();
  const absl::Time deadline = core::SteadyNow() + call->timeout;
  const text::Style style = StyleOf(STDOUT_FILENO);
  std::ostringstream collected;
  std::vector<MetaGraphJson> entries;
  for (size_t i = 0; i < file->num_graphs(); ++i) {
    std::ostringstream json;
    std::ostream& text = as_it_arrives ? std::cout : collected;
    if (!run.json && !file->NameOf(i).empty()) {
      text << (i > 0 ? "\n" : "") << style.Heading(file->NameOf(i)) << "\n";
    }
    absl::Status status =
        print(file->graph(i), client, Until(deadline, *call), style, run.json ? json : text);
    if (!status.ok()) return WithInputName(file->WithName(i, status), run.input);
    if (run.json) entries.push_back({file->tags(i), run.key, json.str()});
  }
  progress.End();
  if (run.json) {
    collected << (format::IsSavedModel(file->format()) ? MetaGraphsJson(entries) : entries[0].json);
  }
  std::cout << collected.str();
  return ExitCode::kDone;
}

}  // namespace spillway::cli
