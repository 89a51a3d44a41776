#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/check_run.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/text/check_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

struct CheckFlags {
  // The profile is the input to check.
  explicit CheckFlags(CLI::App* command)
      : step(command, /*without=*/"profile"), connection(command, ConnectionFlags::Kind::kCall) {}

  std::string input;
  std::string run_metadata;
  std::string original;
  absl::optional<format::GraphFormat> format;
  const StepFlags step;
  const ConnectionFlags connection;
  bool save_profile = false;
  bool json = false;
};

// Returns the graph in the file `path` as a serialized GraphDef.
absl::StatusOr<std::string> ReadOriginal(const std::string& path, const Session& session) {
  const absl::StatusOr<format::GraphFile> file =
      ReadGraphFile(InputPath::Graph(path), /*format=*/absl::nullopt, session.cancellation);
  if (!file.ok()) return file.status();
  if (file->num_graphs() != 1) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("--original ", core::Quoted(path), " holds ",
                                           file->num_graphs(), " graphs; give a file of one"),
                              {{"flag", "--original"}});
  }
  return std::string(file->graph(0));
}

absl::Status CheckStandardInput(const CheckFlags& flags) {
  const int count = (flags.input == "-") + (flags.run_metadata == "-") + (flags.original == "-");
  if (count > 1) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "only one of GRAPH, RUN_METADATA and --original can be standard "
                              "input; give the others as files",
                              {{"flag", "GRAPH"}});
  }
  if (flags.save_profile && flags.input == "-" && flags.original.empty()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "--save-profile writes beside the graph, and GRAPH is standard "
                              "input; give it as a file, or --original",
                              {{"flag", "--save-profile"}});
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run(const CheckFlags& flags, const Session& session) {
  if (absl::Status status = CheckStandardInput(flags); !status.ok()) return status;
  absl::StatusOr<v1::Step> step = flags.step.Build();
  if (!step.ok()) return step.status();
  v1::SimulateOptions options;
  *options.mutable_step() = *std::move(step);
  options.set_no_budget(flags.step.no_budget());
  const auto filled = FillHardware(kNvidiaSmiTime, &options);
  if (!filled.ok()) return filled.status();
  PrintNote(*filled);
  const absl::StatusOr<std::string> run_metadata =
      ReadBytes(flags.run_metadata, FileKind::kProfile, "give a file with a serialized RunMetadata",
                session.cancellation);
  if (!run_metadata.ok()) return run_metadata.status();
  std::string original;
  if (!flags.original.empty()) {
    absl::StatusOr<std::string> read = ReadOriginal(flags.original, session);
    if (!read.ok()) return read.status();
    original = *std::move(read);
  }
  const PerGraphRun run{
      InputPath::Graph(flags.input), flags.format,    flags.json, "check", "checking",
      /*as_it_arrives=*/false,       flags.connection};
  std::string stored;
  absl::StatusOr<ExitCode> result = PrintPerGraph(
      run, session,
      [&](absl::string_view graph, const Client& client, const CallOptions& call, text::Style style,
          std::ostream& out) {
        const absl::StatusOr<CheckedRun> checked =
            CheckRun(client, graph, original, options, *run_metadata, call);
        if (!checked.ok()) return checked.status();
        if (flags.save_profile) {
          const absl::StatusOr<std::string> path =
              StoreProfile(InputPath::Graph(flags.original.empty() ? flags.input : flags.original),
                           checked->original, options.step(), *run_metadata, session.cancellation);
          if (!path.ok()) return path.status();
          stored = *path;
        }
        out << (flags.json ? ToJson(checked->check) : text::FormatCheck(checked->check, style));
        return absl::OkStatus();
      });
  if (result.ok() && !stored.empty()) {
    PrintNote(absl::StrCat("the trace is kept in ", stored,
                           ": rewrite, simulate and run take the times of this graph from it for "
                           "the same feeds, as long as it stays beside the graph"));
  }
  return result;
}

}  // namespace

void AddCheckCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "check",
      "After the run, compares the simulation with a traced step: which swaps ran, the bytes they "
      "copied, the time of a step, and the peak of each GPU's memory.");
  auto flags = std::make_shared<CheckFlags>(command);
  command
      ->add_option("GRAPH", flags->input,
                   absl::StrCat("The graph that ran, rewritten or not: ", kGraphFileHelp))
      ->required()
      ->type_name("");
  command
      ->add_option(
          "RUN_METADATA", flags->run_metadata,
          "A serialized RunMetadata (or StepStats) of one step; of a step that failed, its "
          "error or log, and the answer says whether it ran out of memory. - is standard input.")
      ->required()
      ->type_name("");
  AddFormatFlag(command, &flags->format);
  command
      ->add_option("--original", flags->original,
                   "The graph before the rewrite: for graphs that another program rewrote. "
                   "[default: restored from Spillway's own record in GRAPH]")
      ->check(NotEmpty)
      ->type_name("FILE")
      ->group("What to read");
  command->add_flag("--json", flags->json, "JSON (RunCheck in check.proto).")
      ->group("What to write");
  command
      ->add_flag("--save-profile", flags->save_profile,
                 "Keeps the trace beside the graph, as spillway-profile-HASH.pb: rewrite, simulate "
                 "and run take its times, workspaces and sizes in place of estimates from then on, "
                 "for steps of this graph with the same feeds.")
      ->group("What to write");
  command->footer(
      "Give the same --batch-size, --feed and machine as to the rewrite. In Python, a step is\n"
      "traced and written by\n"
      "  metadata = tf.compat.v1.RunMetadata()\n"
      "  session.run(train_op, options=tf.compat.v1.RunOptions(\n"
      "      trace_level=tf.compat.v1.RunOptions.FULL_TRACE), run_metadata=metadata)\n"
      "  open('step.pb', 'wb').write(metadata.SerializeToString())\n"
      "Not the first step: it includes one-time work. Tracing makes a step slower.\n"
      "\n"
      "Examples:\n"
      "  spillway check out.pb step.pb --batch-size 128\n"
      "  spillway check out.pb step.pb --original graph.pb --save-profile\n"
      "  spillway check out.pb step.pb --json | jq .step_time_ns");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
