#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/execution_flag.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/option_value.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/text/forecast_text.h"
#include "client_lib/text/inspect_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kDefaultTop[] = "10";

struct InspectFlags {
  explicit InspectFlags(CLI::App* command)
      : step(command), connection(command, ConnectionFlags::Kind::kCall) {}

  InputPath input;
  const StepFlags step;
  const ConnectionFlags connection;
  std::vector<std::string> top;
  absl::optional<format::GraphFormat> format;
  const CLI::Option* execution = nullptr;
  bool shapes = false;
  bool memory = false;
  bool json = false;
};

absl::StatusOr<int32_t> TopOf(const InspectFlags& flags) {
  v1::InspectOptions options;
  const auto* field = v1::InspectOptions::descriptor()->FindFieldByName("largest_tensor_count");
  absl::Status status =
      SetField("--top", flags.top.empty() ? std::vector<std::string>{kDefaultTop} : flags.top,
               field, &options);
  if (!status.ok()) return status;
  // Without --memory, the core gets the value and rejects it.
  if (flags.memory && options.largest_tensor_count() < 0) {
    const std::string value = absl::StrCat(options.largest_tensor_count());
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("--top is ", value, "; give 0 or more"),
                              {{"option", "--top"}, {"value", value}});
  }
  return options.largest_tensor_count();
}

absl::Status CheckFlags(const InspectFlags& flags) {
  const auto conflict = [](const std::string& a, const std::string& b, const char* remedy) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              absl::StrCat(a, " does not go with ", b, "; ", remedy),
                              {{"flag", a}, {"other", b}});
  };
  if (flags.shapes && flags.memory) {
    return conflict("--shapes", "--memory", "print one after the other");
  }
  if (flags.shapes && flags.json) {
    return conflict("--shapes", "--json", "its table is machine-readable already");
  }
  if (flags.shapes && !flags.top.empty()) {
    return conflict("--shapes", "--top", "its table has every tensor");
  }
  std::string beyond = flags.step.FirstBeyondShapes();
  if (beyond.empty() && flags.execution->count() > 0) beyond = kExecutionFlag;
  if (!flags.memory && !beyond.empty()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              absl::StrCat(beyond, " needs --memory; add that, or leave it out"),
                              {{"flag", beyond}});
  }
  return absl::OkStatus();
}

// One line `node:port TAB dtype TAB shape` for each output of each node, in file order; unknown
// parts are `?`.
absl::Status PrintShapes(absl::string_view graph, const v1::InspectOptions& options,
                         const Client& client, const CallOptions& call, std::ostream& out) {
  static constexpr char kUnknown[] = "?";
  return client
      .InspectTensors(
          graph, options,
          [&out](const v1::TensorList& list) {
            for (const v1::TensorSummary& tensor : list.tensors()) {
              out << absl::CHexEscape(tensor.tensor()) << "\t"
                  << (tensor.dtype().empty() ? kUnknown : tensor.dtype()) << "\t"
                  << (tensor.has_shape() ? tensor.shape() : kUnknown) << "\n";
            }
          },
          call)
      .status();
}

absl::StatusOr<ExitCode> Run(const InspectFlags& flags, const Session& session) {
  if (absl::Status status = CheckFlags(flags); !status.ok()) return status;
  const absl::StatusOr<v1::Step> step = flags.step.Build();
  if (!step.ok()) return step.status();
  const absl::StatusOr<int32_t> top = TopOf(flags);
  if (!top.ok()) return top.status();
  v1::SimulateOptions memory_options;
  *memory_options.mutable_step() = *step;
  memory_options.set_no_budget(flags.step.no_budget());
  memory_options.set_memory(true);
  if (absl::Status s = SetExecution(flags.execution, &memory_options); !s.ok()) return s;
  if (flags.memory) {
    const auto filled = FillHardware(kNvidiaSmiTime, &memory_options);
    if (!filled.ok()) return filled.status();
    PrintNote(*filled);
  }
  v1::InspectOptions options;
  if (!flags.memory) *options.mutable_step() = *step;
  options.set_largest_tensor_count(*top);
  const PerGraphRun run{flags.input,
                        flags.format,
                        flags.json,
                        flags.memory ? "simulation" : "graph",
                        flags.memory ? "simulating" : "inspecting",
                        /*as_it_arrives=*/flags.shapes,
                        flags.connection};
  const auto print = [&](absl::string_view graph, const Client& client, const CallOptions& call,
                         text::Style style, std::ostream& out) {
    if (flags.shapes) return PrintShapes(graph, options, client, call, out);
    if (flags.memory) {
      const auto report = client.Simulate(graph, memory_options, call);
      if (!report.ok()) return report.status();
      out << (flags.json ? ToJson(*report) : text::FormatMemory(*report, *top, style));
      return absl::OkStatus();
    }
    const auto summary = client.Inspect(graph, options, call);
    if (!summary.ok()) return summary.status();
    out << (flags.json ? ToJson(*summary) : text::FormatGraphSummary(*summary, *top, style));
    return absl::OkStatus();
  };
  return PrintPerGraph(run, session, print);
}

}  // namespace

void AddInspectCommand(CLI::App* app, Session* session) {
  CLI::App* command =
      app->add_subcommand("inspect",
                          "Prints the contents of a graph. Its nodes, op types, devices, name "
                          "scopes (to choose optimizer "
                          "scopes from), loops, placeholders, variables and largest tensors, and "
                          "whether it was already "
                          "rewritten; or the shapes of its tensors, or the memory of one step.");
  auto flags = std::make_shared<InspectFlags>(command);
  AddGraphArgument(command, "GRAPH", absl::StrCat("The graph: ", kGraphFileHelp), &flags->input)
      ->required();
  AddFormatFlag(command, &flags->format);
  constexpr char kGroup[] = "What to write";
  command
      ->add_flag(
          "--shapes", flags->shapes,
          "Prints one line for each tensor instead: name, type and shape, separated by tabs; ? "
          "is unknown.")
      ->group(kGroup);
  command
      ->add_flag("--memory", flags->memory,
                 "Prints the memory of each GPU over one step instead: the peak, the tensors live "
                 "then, those always resident, and how far apart producers and consumers are.")
      ->group(kGroup);
  flags->execution = AddExecutionFlag(command, kGroup);
  command
      ->add_option(
          "--top", flags->top,
          "Number of rows of each table; with --json, number of largest tensors (the other "
          "lists are complete). Range: 0 and up. [default: 10]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("N")
      ->group(kGroup);
  command
      ->add_flag("--json", flags->json,
                 "Prints JSON: GraphSummary in inspect.proto, or with --memory, SimulateReport in "
                 "simulate.proto; for a SavedModel, one per MetaGraph.")
      ->group(kGroup);
  command->footer(
      "Of the flags for the step and the machine, all but --feed and --batch-size need --memory.\n"
      "\n"
      "Examples:\n"
      "  spillway inspect graph.pb --batch-size 128 --top 20\n"
      "  spillway inspect graph.pb --server host:7070\n"
      "  spillway inspect graph.pb --shapes --feed images=128,224,224,3 | grep conv1\n"
      "  spillway inspect graph.pb --memory --hardware v100_nvlink2\n"
      "  spillway inspect graph.pb --json | jq '.scopes[] | .name'");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
