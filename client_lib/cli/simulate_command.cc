#include "client_lib/cli/simulate_command.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/file_flags.h"
#include "client_lib/cli/forecast_text.h"
#include "client_lib/cli/gpu_memory.h"
#include "client_lib/cli/input_file.h"
#include "client_lib/cli/json.h"
#include "client_lib/cli/per_graph.h"
#include "client_lib/cli/step_flags.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"

namespace spillway::cli {
namespace {

struct Flags {
  explicit Flags(CLI::App* command) : step(command) {}

  std::string input;
  absl::optional<format::GraphFormat> format;
  const StepFlags step;
  bool json = false;
};

absl::StatusOr<ExitCode> Run(const Flags& flags, const Session& session) {
  absl::StatusOr<v1::Step> step = flags.step.Build();
  if (!step.ok()) return step.status();
  v1::SimulateOptions options;
  *options.mutable_step() = *std::move(step);
  options.set_no_budget(flags.step.no_budget());
  TellGpuMemory(FillGpuMemory(kNvidiaSmiTime, options.no_budget(), options.mutable_step()));
  return PrintPerGraph(flags.input, flags.format, flags.json, "simulation", session,
                       [&](absl::string_view graph, const core::StopToken& stop,
                           Style style) -> absl::StatusOr<std::string> {
                         auto report =
                             core::SimulateGraph(graph, options, core::DefaultLimits(), stop);
                         if (!report.ok()) return report.status();
                         if (flags.json) return ToJson(*report, /*with_zeros=*/true);
                         return FormatSimulation(*report, style);
                       });
}

}  // namespace

void AddSimulateCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "simulate",
      "Plays one training step of a graph on a machine. Says whether it fits, the peak of each "
      "GPU's memory, the time of a step, what it waits for, and what no plan of swaps can beat. "
      "For graphs as they come and for rewritten ones, by whomever. Always in this process.");
  auto flags = std::make_shared<Flags>(command);
  command->add_option("GRAPH", flags->input, absl::StrCat("The graph: ", kGraphFileHelp))
      ->required()
      ->type_name("");
  AddFormatFlag(command, &flags->format);
  command->add_flag("--json", flags->json, "JSON (SimulateReport in simulate.proto).")
      ->group("What to write");
  command->footer(
      "Times are estimates: operations and bytes of each node on the machine's numbers. A profile\n"
      "of a real run replaces them.\n"
      "\n"
      "Examples:\n"
      "  spillway simulate graph.pb --hardware v100_nvlink2 --batch-size 128\n"
      "  spillway simulate rewritten.pb --gpu-memory-bytes 12GiB --json | jq -r .forecast.fit");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
