#include "client_lib/cli/diff_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "client_lib/cli/diff_text.h"
#include "client_lib/cli/input_file.h"
#include "client_lib/cli/json.h"
#include "rewrite_core/graph/error.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph_diff.h"
#include "rewrite_core/rewriter.h"

namespace spillway::cli {
namespace {

struct Flags {
  std::string a;
  std::string b;
  bool json = false;
};

absl::StatusOr<ExitCode> Run(const Flags& flags, const Session& session) {
  if (flags.a == "-" && flags.b == "-") {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "A and B are both standard input; give one of them as a file",
                              {{"flag", "B"}});
  }
  const absl::StatusOr<std::string> bytes_a = ReadInput(flags.a, session.cancellation);
  if (!bytes_a.ok()) return bytes_a.status();
  const absl::StatusOr<std::string> bytes_b = ReadInput(flags.b, session.cancellation);
  if (!bytes_b.ok()) return bytes_b.status();
  const core::StopToken stop(absl::InfiniteFuture(), session.cancellation.flag());
  const auto graph_a = core::Graph::Parse(*bytes_a, core::DefaultLimits(), stop);
  if (!graph_a.ok()) return WithInputName(graph_a.status(), flags.a);
  const auto graph_b = core::Graph::Parse(*bytes_b, core::DefaultLimits(), stop);
  if (!graph_b.ok()) return WithInputName(graph_b.status(), flags.b);
  const absl::StatusOr<v1::GraphDiff> diff = core::DiffGraphs(*graph_a, *graph_b, stop);
  if (!diff.ok()) return diff.status();
  std::cout << (flags.json ? ToJson(*diff, /*with_zeros=*/true) : FormatGraphDiff(*diff));
  return diff->same_graph() ? ExitCode::kDone : ExitCode::kDifferent;
}

}  // namespace

void AddDiffCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "diff",
      "Tells what a rewrite did, in words. Compares two graphs, whoever rewrote them (Spillway, "
      "TFLMS, Grappler, a person): which tensors are swapped, and every other difference. The exit "
      "code is 0 if the graphs are the same, 1 if they differ. Always in this process.");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("A", flags->a, "The graph before: a serialized GraphDef. - is standard input.")
      ->required()
      ->type_name("");
  command->add_option("B", flags->b, "The graph after. - is standard input.")
      ->required()
      ->type_name("");
  command->add_flag("--json", flags->json, "JSON (GraphDiff in diff.proto).")
      ->group("What to write");
  command->footer(
      "Examples:\n"
      "  spillway diff graph.pb out.pb\n"
      "  spillway diff graph.pb out.pb --json | jq '.swaps | length'");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
