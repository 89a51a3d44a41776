#include "client_lib/cli/diff_command.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/diff_text.h"
#include "client_lib/cli/file_flags.h"
#include "client_lib/cli/input_file.h"
#include "client_lib/cli/json.h"
#include "client_lib/cli/text_table.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/rewriter.h"

namespace spillway::cli {
namespace {

struct Flags {
  std::string a;
  std::string b;
  absl::optional<format::GraphFormat> format;
  bool json = false;
};

constexpr char kIdenticalGraphs[] =
    "the graphs are identical; what differs is in the files around them\n";

// What tells the graphs number `i` apart.
absl::StatusOr<v1::GraphDiff> DiffGraph(const Flags& flags, const format::GraphFile& a,
                                        const format::GraphFile& b, size_t i,
                                        const core::StopToken& stop) {
  const auto graph_a = core::Graph::Parse(a.graph(i), core::DefaultLimits(), stop);
  if (!graph_a.ok()) return WithInputName(a.WithName(i, graph_a.status()), flags.a);
  const auto graph_b = core::Graph::Parse(b.graph(i), core::DefaultLimits(), stop);
  if (!graph_b.ok()) return WithInputName(b.WithName(i, graph_b.status()), flags.b);
  return core::DiffGraphs(*graph_a, *graph_b, stop);
}

absl::StatusOr<ExitCode> Run(const Flags& flags, const Session& session) {
  if (flags.a == "-" && flags.b == "-") {
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
        absl::StrCat("A has ", FormatCount(a->num_graphs(), "MetaGraph"), " and B has ",
                     b->num_graphs(), "; compare files with the same number"),
        {{"flag", "B"}});
  }
  const core::StopToken stop(absl::InfiniteFuture(), session.cancellation.flag());
  const Style style = StyleOf(STDOUT_FILENO);
  bool same = true;
  std::string text;
  std::vector<MetaGraphJson> entries;
  for (size_t i = 0; i < a->num_graphs(); ++i) {
    const absl::StatusOr<v1::GraphDiff> diff = DiffGraph(flags, *a, *b, i, stop);
    if (!diff.ok()) return diff.status();
    same &= diff->same_graph();
    entries.push_back({b->tags(i), "diff", ToJson(*diff, /*with_zeros=*/true)});
    if (!b->NameOf(i).empty())
      absl::StrAppend(&text, i > 0 ? "\n" : "", style.Heading(b->NameOf(i)), "\n");
    // The graphs may be, while the files around them are not.
    const bool only_graph = diff->identical() && a->bytes() != b->bytes();
    absl::StrAppend(&text, only_graph ? kIdenticalGraphs : FormatGraphDiff(*diff, style));
  }
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
      "Tells what a rewrite did, in words. Compares two graphs, whoever rewrote them (Spillway, "
      "TFLMS, Grappler, a person): which tensors are swapped, and every other difference. The exit "
      "code is 0 if the graphs are the same, 1 if they differ. Always in this process.");
  auto flags = std::make_shared<Flags>();
  command->add_option("A", flags->a, absl::StrCat("The graph before: ", kGraphFileHelp))
      ->required()
      ->type_name("");
  command->add_option("B", flags->b, "The graph after. - is standard input.")
      ->required()
      ->type_name("");
  AddFormatFlag(command, &flags->format);
  command
      ->add_flag("--json", flags->json,
                 "JSON (GraphDiff in diff.proto; for a SavedModel, one per MetaGraph).")
      ->group("What to write");
  command->footer(
      "Examples:\n"
      "  spillway diff graph.pb out.pb\n"
      "  spillway diff graph.pb out.pb --json | jq '.swaps | length'");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
