#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/text/diff_text.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

struct DiffFlags {
  explicit DiffFlags(CLI::App* command) : connection(command, ConnectionFlags::Kind::kCall) {}

  InputPath a;
  InputPath b;
  absl::optional<format::GraphFormat> format;
  bool json = false;
  const ConnectionFlags connection;
};

constexpr char kIdenticalGraphs[] = "the graphs are identical; only the files around them differ\n";

// Returns the error for the graphs number `i`, prefixed with the name of the file that it concerns.
absl::Status WithGraphName(const absl::Status& status, const DiffFlags& flags,
                           const format::GraphFile& a, const format::GraphFile& b, size_t i) {
  const auto info = ErrorInfoOf(status);
  const auto graph = info.metadata().find("graph");
  if (graph == info.metadata().end()) return status;
  return graph->second == "B" ? WithInputName(b.WithName(i, status), flags.b)
                              : WithInputName(a.WithName(i, status), flags.a);
}

absl::StatusOr<ExitCode> Run(const DiffFlags& flags, const Session& session) {
  absl::StatusOr<CallOptions> call = flags.connection.MakeCall(session);
  if (!call.ok()) return call.status();
  if (flags.a.is_standard_input() && flags.b.is_standard_input()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "A and B are both standard input; give one of them as a file",
                              {{"flag", "B"}});
  }
  const auto a = ReadGraphFile(flags.a, flags.format, session.cancellation);
  if (!a.ok()) return a.status();
  const auto b = ReadGraphFile(flags.b, flags.format, session.cancellation);
  if (!b.ok()) return b.status();
  if (a->num_graphs() != b->num_graphs()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("A has ", text::FormatCount(a->num_graphs(), "MetaGraph"), " and B has ",
                     b->num_graphs(), "; compare files with the same number"),
        {{"flag", "B"}});
  }
  ProgressLine progress(Verbosity::kNormal, "comparing");
  call->on_progress = progress.callback();
  const Client client = flags.connection.Connect();
  const absl::Time deadline = core::SteadyNow() + call->timeout;
  const text::Style style = StyleOf(STDOUT_FILENO);
  bool same = true;
  std::string text;
  std::vector<MetaGraphJson> entries;
  for (size_t i = 0; i < a->num_graphs(); ++i) {
    const absl::StatusOr<v1::GraphDiff> diff =
        client.Diff(a->graph(i), b->graph(i), Until(deadline, *call));
    if (!diff.ok()) return WithGraphName(diff.status(), flags, *a, *b, i);
    same &= diff->same_graph();
    entries.push_back({b->tags(i), "diff", ToJson(*diff)});
    if (!b->NameOf(i).empty())
      absl::StrAppend(&text, i > 0 ? "\n" : "", style.Heading(b->NameOf(i)), "\n");
    // The graphs may be identical although the files around them differ.
    const bool only_graph = diff->identical() && a->bytes() != b->bytes();
    absl::StrAppend(&text, only_graph ? kIdenticalGraphs : text::FormatGraphDiff(*diff, style));
  }
  progress.End();
  if (flags.json) {
    text = format::IsSavedModel(b->format()) ? MetaGraphsJson(entries) : entries[0].json;
  }
  std::cout << text;
  return same ? ExitCode::kDone : ExitCode::kDifferent;
}

}  // namespace

void AddDiffCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "diff",
      "Compares two graphs, to show what a rewrite did. Lists the tensors that are swapped and "
      "every other difference, no matter who made it (Spillway, TFLMS, Grappler, a person). The "
      "exit code is 0 if the graphs are the same, and 1 if they differ.");
  auto flags = std::make_shared<DiffFlags>(command);
  AddGraphArgument(command, "A", absl::StrCat("The graph before: ", kGraphFileHelp), &flags->a)
      ->required();
  AddGraphArgument(command, "B", "The graph after. - is standard input.", &flags->b)->required();
  AddFormatFlag(command, &flags->format);
  command
      ->add_flag("--json", flags->json,
                 "Prints JSON: GraphDiff in diff.proto; for a SavedModel, one per MetaGraph.")
      ->group("What to write");
  command->footer(
      "Examples:\n"
      "  spillway diff graph.pb out.pb\n"
      "  spillway diff graph.pb out.pb --server host:7070\n"
      "  spillway diff graph.pb out.pb --json | jq '.swaps | length'");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
