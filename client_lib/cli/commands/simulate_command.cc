#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/execution_flag.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/plot/chrome_trace.h"
#include "client_lib/text/forecast_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

struct SimulateFlags {
  explicit SimulateFlags(CLI::App* command)
      : step(command), connection(command, ConnectionFlags::Kind::kCall) {
    AddStoredProfileFlag(command, &without_stored_profile);
  }

  InputPath input;
  absl::optional<format::GraphFormat> format;
  const StepFlags step;
  const ConnectionFlags connection;
  OutputPath trace;
  const CLI::Option* execution = nullptr;
  bool json = false;
  bool verbose = false;
  bool require_fit = false;
  bool without_stored_profile = false;
};

// The file is opened before the simulation and written after it.
absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateTrace(const SimulateFlags& flags,
                                                                     const Session& session) {
  if (!flags.trace.given() && flags.execution->count() > 0) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "--execution needs --trace: the printed figures cover both models; "
                              "add --trace, or leave --execution out",
                              {{"flag", kExecutionFlag}});
  }
  if (flags.trace.is_standard_output()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "--trace - and the printed figures both go to standard output; give "
                              "--trace FILE",
                              {{"flag", "--trace"}});
  }
  absl::Status status = CheckOutputs(flags.input, {flags.trace});
  if (!status.ok()) return status;
  return CreateOutputs({flags.trace}, session.cancellation);
}

absl::StatusOr<ExitCode> Run(const SimulateFlags& flags, const Session& session) {
  absl::StatusOr<v1::Step> step = flags.step.Build();
  if (!step.ok()) return step.status();
  v1::SimulateOptions options;
  *options.mutable_step() = *std::move(step);
  options.set_no_budget(flags.step.no_budget());
  const bool traces = flags.trace.given();
  options.set_trace(traces);
  options.set_memory(traces);
  if (absl::Status s = SetExecution(flags.execution, &options); !s.ok()) return s;
  const auto trace_file = CreateTrace(flags, session);
  if (!trace_file.ok()) return trace_file.status();
  const auto filled = FillHardware(kNvidiaSmiTime, &options);
  if (!filled.ok()) return filled.status();
  PrintNote(*filled);
  const StoredProfiles profiles =
      flags.without_stored_profile ? StoredProfiles() : StoredProfiles::Beside(flags.input);
  // The worst of several graphs: "does not fit" outranks "unknown".
  ExitCode worst = ExitCode::kDone;
  plot::ChromeTrace trace;
  int graphs = 0;
  const PerGraphRun run{flags.input,     flags.format, flags.json,
                        "simulation",    "simulating", /*as_it_arrives=*/false,
                        flags.connection};
  const auto format = flags.verbose ? text::FormatSimulationDetails : text::FormatSimulation;
  const absl::StatusOr<ExitCode> printed =
      PrintPerGraph(run, session,
                    [&](absl::string_view graph, const Client& client, const CallOptions& call,
                        text::Style style, std::ostream& out) {
                      v1::SimulateOptions with_profile = options;
                      PrintNote(profiles.AddTo(graph, with_profile.mutable_step()));
                      const auto report = client.Simulate(graph, with_profile, call);
                      if (!report.ok()) return report.status();
                      const v1::Fit fit = report->forecast().fit();
                      if (fit == v1::FIT_DOES_NOT_FIT) worst = ExitCode::kDoesNotFit;
                      if (fit == v1::FIT_UNKNOWN && worst == ExitCode::kDone)
                        worst = ExitCode::kFitUnknown;
                      if (traces) {
                        trace.Add(*report, graphs > 0 ? absl::StrCat("MetaGraph ", graphs) : "");
                      }
                      ++graphs;
                      out << (flags.json ? ToJson(*report) : format(*report, style));
                      return absl::OkStatus();
                    });
  if (printed.ok() && traces) {
    if (absl::Status s = WriteOutputs(*trace_file, {trace.Json()}); !s.ok()) return s;
  }
  if (!printed.ok() || !flags.require_fit) return printed;
  return worst;
}

}  // namespace

void AddSimulateCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "simulate",
      "Simulates one training step of a graph on a machine. Prints whether it fits, the peak "
      "memory of each GPU, the time of a step, its waits, and the bound that no plan of swaps can "
      "beat. The graph may be an original, or rewritten by any program.");
  auto flags = std::make_shared<SimulateFlags>(command);
  AddGraphArgument(command, "GRAPH", absl::StrCat("The graph: ", kGraphFileHelp), &flags->input)
      ->required();
  AddFormatFlag(command, &flags->format);
  command->add_flag("--json", flags->json, "Prints JSON: SimulateReport in simulate.proto.")
      ->group("What to write");
  command
      ->add_flag("--verbose", flags->verbose,
                 "Prints all figures: copies and shares of the step's time for each GPU, and the "
                 "time without launching ahead.")
      ->group("What to write")
      ->excludes("--json");
  AddOutputFlag(
      command, "--trace",
      "The file for a trace of the step, with a row for each engine and the memory, in the "
      "Trace Event format that ui.perfetto.dev and chrome://tracing open. With --json, the "
      "report includes the trace, too.",
      &flags->trace);
  flags->execution = AddExecutionFlag(command, "What to write");
  command
      ->add_flag("--require-fit,--check", flags->require_fit,
                 "Ends with exit code 8 if the step does not fit, and with 9 if that is unknown: a "
                 "gate for "
                 "job scripts.")
      ->group("What to write");
  command->footer(
      "Times are estimates from each node's operations and bytes and the machine's\n"
      "numbers. A profile of a real run replaces them.\n"
      "\n"
      "Examples:\n"
      "  spillway simulate graph.pb --hardware v100_nvlink2 --batch-size 128\n"
      "  spillway simulate out.pb --require-fit && python3 train.py\n"
      "  spillway simulate out.pb --trace step.json\n"
      "  spillway simulate graph.pb --server host:7070 --timeout 30s\n"
      "  spillway simulate rewritten.pb --gpu-memory-bytes 12GiB --json | jq -r .forecast.fit");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
