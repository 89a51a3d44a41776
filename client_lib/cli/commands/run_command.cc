#include "client_lib/cli/commands/run_command.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/flag_names.h"
#include "client_lib/cli/flags/option_flags.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/cli/run/run_exec.h"
#include "client_lib/cli/run/run_metrics.h"
#include "client_lib/cli/run/run_prepare.h"
#include "client_lib/cli/run/run_text.h"
#include "client_lib/cli/run/scheduler_names.h"
#include "client_lib/internal/tensorflow_settings.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// A million nodes take two seconds; five attempts at an unreachable server take ten at most. This
// leaves a margin, and is still short compared with a job.
constexpr absl::Duration kDefaultTimeout = absl::Seconds(60);

// For the metrics file once the deadline has passed: two small files.
constexpr absl::Duration kMetricsTime = absl::Seconds(1);

constexpr char kGraphVariable[] = "SPILLWAY_GRAPH";
constexpr char kOriginalVariable[] = "SPILLWAY_ORIGINAL_GRAPH";
constexpr char kReportVariable[] = "SPILLWAY_REPORT";
// Another of Advice.environment is internal::kWorkspaceLimit.
constexpr char kHostMemoryLimit[] = "TF_GPU_HOST_MEM_LIMIT_IN_MB";

constexpr char kRunFooter[] =
    "The command gets, in its environment:\n"
    "  SPILLWAY_GRAPH           the graph to load: the rewritten one, or after a failure\n"
    "                           the original\n"
    "  SPILLWAY_ORIGINAL_GRAPH  the graph that was given\n"
    "  SPILLWAY_REPORT          the report as JSON; not set after a failure\n"
    "  TF_GPU_HOST_MEM_LIMIT_IN_MB, TF_CUDNN_WORKSPACE_LIMIT_IN_MB  as the report advises,\n"
    "                           unless they are already set; with the second,\n"
    "                           SPILLWAY_WORKSPACE_LIMIT_IN_MB, which allows the plug-in\n"
    "                           and the Python package to lower the limit\n"
    "Standard input and output, signals and the exit code are the command's own.\n"
    "\n"
    "Flags that are not given are taken from SPILLWAY_SERVER, SPILLWAY_CACHE_DIR,\n"
    "SPILLWAY_METRICS_TEXTFILE and SPILLWAY_GPU_MEMORY_BYTES, and the names of the job\n"
    "from SPILLWAY_JOB, SPILLWAY_USER, SPILLWAY_QUEUE and SPILLWAY_MODEL, or else from\n"
    "Slurm's variables; in a pod of Kubernetes the name of the pod is the job.\n"
    "\n"
    "Rewritten graphs are kept in the cache folder and used again; tasks that start at the\n"
    "same time share one rewrite. Entries unused for 30 days are deleted.\n"
    "\n"
    "Example:\n"
    "  spillway run --graph graph.pb -- python train.py\n"
    "where train.py opens os.environ[\"SPILLWAY_GRAPH\"]. In a Slurm job, with a server, and\n"
    "without running the command after a failure:\n"
    "  srun spillway run --graph graph.pb --server host:7070 --fail-closed -- python train.py";

// The flags specific to `run`.
struct RunFlags {
  explicit RunFlags(CLI::App* command) {
    const auto add = [command](const char* flag, std::string* value, const char* help) {
      return command->add_option(flag, *value, help)->group("The run");
    };
    const auto add_flag = [command](const char* flag, bool* value, const char* help) {
      return command->add_flag(flag, *value, help)->group("The run");
    };
    add("--graph", &graph,
        "The graph: a file in any format that spillway rewrite reads, but not the folder of a "
        "SavedModel. It is not changed.")
        ->required()
        ->type_name("FILE");
    AddFormatFlag(command, &format);
    CLI::Option* open =
        add_flag("--fail-open", &fail_open,
                 "After a failure, also that of a wrong or unknown flag, prints one warning and "
                 "runs the command with the original graph. [default]");
    add_flag("--fail-closed", &fail_closed,
             "After a failure, does not run the command; the exit code says why.")
        ->excludes(open);
    add("--cache-dir", &cache_dir,
        "The folder in which rewritten graphs are kept. It must belong to you alone, and is "
        "created "
        "if it is missing. [default: spillway-UID in $SLURM_TMPDIR, $TMPDIR or /tmp]")
        ->type_name("DIR")
        ->envname("SPILLWAY_CACHE_DIR");
    add("--report", &report, "The file for a copy of the report, as JSON.")->type_name("FILE");
    add("--metrics-textfile", &metrics,
        "The file in which the run is counted, for node exporter's textfile collector (NAME.prom).")
        ->type_name("FILE")
        ->envname("SPILLWAY_METRICS_TEXTFILE");
    add_flag("--no-advice-env", &no_advice,
             "Does not set TF_GPU_HOST_MEM_LIMIT_IN_MB and TF_CUDNN_WORKSPACE_LIMIT_IN_MB.");
    AddStoredProfileFlag(command, &without_stored_profile);
    add_flag("--quiet", &quiet, "Prints no summary on standard error, only warnings.");
  }

  std::string graph;
  absl::optional<format::GraphFormat> format;
  std::string cache_dir;
  std::string report;
  std::string metrics;
  bool fail_open = false;  // The default: only --fail-closed changes anything.
  bool fail_closed = false;
  bool no_advice = false;
  bool quiet = false;
  bool without_stored_profile = false;
};

// The order is that of --help.
struct RunCommandFlags : RunFlags {
  explicit RunCommandFlags(CLI::App* command)
      : RunFlags(command),
        options(command),
        first_of_connection(command->get_options().size()),
        connection(command, ConnectionFlags::Kind::kRewrite),
        end_of_connection(command->get_options().size()),
        app(command),
        server(command->get_option("--server")->envname("SPILLWAY_SERVER")) {
    command->get_option("--gpu-memory-bytes")->envname("SPILLWAY_GPU_MEMORY_BYTES");
    command->get_option("--timeout")
        ->description(absl::StrCat(
            "The longest time until the command starts, even if files hang. [default: ",
            absl::FormatDuration(kDefaultTimeout), "]"));
  }

  std::string ServerName() const {
    return server->count() > 0 ? server->as<std::string>() : std::string();
  }

  // The connection's flags as given, including TLS files. Job names are left out: they cannot
  // change a failure.
  std::string ConnectionText() const {
    std::string text;
    const std::vector<const CLI::Option*> all = app->get_options();
    constexpr absl::string_view kNames[] = {"--request-id", "--job", "--user", "--queue",
                                            "--model"};
    for (size_t i = first_of_connection; i < end_of_connection; ++i) {
      if (absl::c_linear_search(kNames, all[i]->get_name())) continue;
      for (const std::string& word : all[i]->results()) {
        absl::StrAppend(&text, all[i]->get_name(), "=", word, "\n");
      }
    }
    return text;
  }

  const OptionFlags options;
  const size_t first_of_connection;  // An index into the options of the command.
  const ConnectionFlags connection;
  const size_t end_of_connection;
  const CLI::App* const app;
  const CLI::Option* const server;
};

absl::Status UsageError(absl::string_view flag, absl::string_view message) {
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS, message, {{"flag", flag}});
}

// Without these there is nothing to run.
absl::Status CheckCommandAndGraph(const RunCommandFlags& flags, const Session& session) {
  if (session.command.empty()) {
    return UsageError("--",
                      "there is no command; give it after --, as in: spillway run --graph "
                      "graph.pb -- python train.py");
  }
  if (flags.graph.empty() || flags.graph == "-") {
    return UsageError("--graph", "--graph takes a file: standard input is the command's");
  }
  return absl::OkStatus();
}

// The command may change the working directory before it opens the graph.
std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

// Compares names only: looking at the files may block forever, so a child does that
// (run_prepare.h).
bool SamePath(const std::string& a, const std::string& b) {
  const auto normal = [](const std::string& path) {
    return std::filesystem::path(AbsolutePath(path)).lexically_normal();
  };
  return !a.empty() && !b.empty() && normal(a) == normal(b);
}

absl::Status CheckPaths(const RunCommandFlags& flags) {
  if (flags.report == "-") {
    return UsageError("--report", "--report takes a file: standard output is the command's");
  }
  for (const auto& [flag, path] :
       {std::pair<absl::string_view, std::string>("--report", flags.report),
        {"--metrics-textfile", flags.metrics}}) {
    if (SamePath(path, flags.graph)) return OverwritesError(flag, path, "--graph");
  }
  if (SamePath(flags.metrics, flags.report)) {
    return OverwritesError("--metrics-textfile", flags.metrics, "--report");
  }
  return absl::OkStatus();
}

// In a child: some flags name files, which may hang or have no end.
absl::StatusOr<v1::RewriteOptions> BuildOptions(const RunCommandFlags& flags,
                                                const internal::Deadline& deadline) {
  const auto bytes = RunInChild(deadline, [&](ChildStage& stage) -> absl::StatusOr<std::string> {
    stage = "reading the files of the options";
    const absl::StatusOr<v1::RewriteOptions> options = flags.options.Build();
    if (!options.ok()) return options.status();
    return options->SerializeAsString();
  });
  if (!bytes.ok()) return bytes.status();
  v1::RewriteOptions options;
  options.ParseFromString(*bytes);
  return options;
}

std::string EnvironmentOf(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

void SetEnvironment(const RunCommandFlags& flags, const PreparedGraph* prepared) {
  const std::string input = AbsolutePath(flags.graph);
  // In a nested run, whose input is the result of the outer one, the original stays that of the
  // outer run.
  const bool nested = EnvironmentOf(kGraphVariable) == input;
  if (!nested || EnvironmentOf(kOriginalVariable).empty()) {
    setenv(kOriginalVariable, input.c_str(), 1);
  }
  const bool rewritten = prepared != nullptr && !prepared->graph_path.empty();
  setenv(kGraphVariable, (rewritten ? prepared->graph_path : input).c_str(), 1);
  if (prepared == nullptr) {
    unsetenv(kReportVariable);
    return;
  }
  setenv(kReportVariable, prepared->report_path.c_str(), 1);
  const v1::Advice& advice = prepared->report.advice();
  if (flags.no_advice || prepared->report.outcome() == v1::OUTCOME_DRY_RUN) return;
  std::vector<std::string> variables(advice.environment().begin(), advice.environment().end());
  variables.push_back(advice.host_memory_variable());  // Of a server of the API's release alone.
  for (const std::string& variable : variables) {
    const std::pair<std::string, std::string> set =
        absl::StrSplit(variable, absl::MaxSplits('=', 1));
    // A server sets no other variables of jobs.
    const bool limits_workspaces =
        internal::WorkspaceLimitMib(variable) > 0 && internal::WorkspacesAreOptional();
    if (!limits_workspaces && set.first != kHostMemoryLimit) continue;
    if (limits_workspaces && std::getenv(internal::kWorkspaceLimit) == nullptr) {
      setenv(internal::kLimitOfRun, set.second.c_str(), /*overwrite=*/1);
    }
    setenv(set.first.c_str(), set.second.c_str(), /*overwrite=*/0);
  }
}

// For an error that nothing fits: the smallest budget known to suffice, relative to the budget.
std::optional<double> NeedOf(const absl::Status& error) {
  const auto details = ErrorInfoOf(error).metadata();
  const auto bytes = [&](const char* key) {
    const auto found = details.find(key);
    int64_t value = 0;
    return found != details.end() && absl::SimpleAtoi(found->second, &value) ? value : 0;
  };
  const int64_t smallest = bytes("smallest_budget_bytes"), budget = bytes("budget_bytes");
  if (smallest <= 0 || budget <= 0) return std::nullopt;
  return static_cast<double>(smallest) / static_cast<double>(budget);
}

// Strategies have the numbers of their fields (report.proto).
v1::Strategy AskedStrategy(const v1::RewriteOptions& options) {
  const int field = options.strategy_case();
  return field != 0 && v1::Strategy_IsValid(field) ? static_cast<v1::Strategy>(field)
                                                   : v1::STRATEGY_BUDGET;
}

HookRun CountedRun(const absl::StatusOr<PreparedGraph>& prepared, const PrepareRequest& request,
                   bool fail_closed, const internal::Deadline& deadline) {
  HookRun run;
  run.strategy = AskedStrategy(request.options);
  run.duration = deadline.timeout() - deadline.Remaining();
  if (!prepared.ok()) {
    run.result = fail_closed ? HookRun::Result::kFailedClosed : HookRun::Result::kFailedOpen;
    run.failure = ExitCodeOf(prepared.status());
    if (run.failure == ExitCode::kDoesNotFit) run.need_ratio = NeedOf(prepared.status());
    return run;
  }
  run.result = prepared->cached               ? HookRun::Result::kCached
               : prepared->graph_path.empty() ? HookRun::Result::kUnchanged
                                              : HookRun::Result::kRewritten;
  run.report = prepared->report;
  return run;
}

// Counts the run in the metrics file, if one was requested. Returns a warning rather than an error:
// a job runs even if metrics fail.
std::string WriteMetrics(const RunCommandFlags& flags, const HookRun& run,
                         const internal::Deadline& deadline) {
  if (flags.metrics.empty()) return "";
  const internal::Deadline own_deadline(std::max(deadline.Remaining(), kMetricsTime));
  const absl::StatusOr<std::string> warning =
      RunInChild(own_deadline, [&](ChildStage& stage) -> absl::StatusOr<std::string> {
        stage = "writing the metrics file";
        for (const auto& [flag, path] :
             {std::pair<const char*, std::string>("--graph", flags.graph),
              {"--report", flags.report}}) {
          if (path.empty() || !SameFile(flags.metrics, path)) continue;
          return OverwritesError("--metrics-textfile", flags.metrics, flag);
        }
        return AddToMetricsFile(flags.metrics, run);
      });
  return warning.ok() ? *warning : absl::StrCat("no metrics: ", ErrorText(warning.status()));
}

void PrintOutcome(const RunCommandFlags& flags, const absl::StatusOr<PreparedGraph>& prepared,
                  const std::string& warning) {
  if (!prepared.ok()) {
    PrintNote(
        absl::StrCat("the command runs with the original graph: ", ErrorText(prepared.status()),
                     warning.empty() ? "" : absl::StrCat("; ", warning)));
    return;
  }
  if (!flags.quiet) PrintNote(RunText(flags.graph, *prepared));
  if (!prepared->warning.empty()) PrintNote(prepared->warning);
  for (const std::string& misfit : internal::SettingWarnings()) PrintNote(misfit);
  if (!warning.empty()) PrintNote(warning);
}

// Returns only if the command could not be run.
absl::StatusOr<ExitCode> Run(const RunCommandFlags& flags, const Session& session) {
  if (absl::Status s = CheckCommandAndGraph(flags, session); !s.ok()) return s;
  const std::string& name = session.command[0];
  if (const int error = FindProgram(name); error != 0) return ReportNotRun(name, error);

  // From here on every error is a failure like others: the job runs.
  absl::Status wrong = session.usage;
  wrong.Update(CheckPaths(flags));
  absl::StatusOr<CallOptions> call = flags.connection.MakeCall(session);
  wrong.Update(call.status());
  if (!call.ok()) call.emplace();
  if (!flags.ServerName().empty()) AddSchedulerNames(&*call);
  const internal::Deadline deadline(call->timeout == absl::InfiniteDuration() ? kDefaultTimeout
                                                                              : call->timeout);
  PrepareRequest request;
  if (wrong.ok()) {
    absl::StatusOr<v1::RewriteOptions> options =
        OrOutOfMemory([&] { return BuildOptions(flags, deadline); });
    wrong = options.status();
    if (options.ok()) request.options = *std::move(options);
  }
  request.input = flags.graph;
  request.format = flags.format;
  request.cache_dir = flags.cache_dir;
  request.report = flags.report;
  request.stored_profiles = !flags.without_stored_profile;
  request.server = flags.ServerName();
  request.connection = flags.ConnectionText();
  request.call = *call;
  request.call.cancellation = CancellationToken();  // A signal ends the child.
  request.connect = [&flags] { return flags.connection.Connect(Verbosity::kQuiet); };
  const absl::StatusOr<PreparedGraph> prepared =
      wrong.ok() ? PrepareGraph(request, deadline) : absl::StatusOr<PreparedGraph>(wrong);
  const std::string warning =
      WriteMetrics(flags, CountedRun(prepared, request, flags.fail_closed, deadline), deadline);
  {
    const IgnoredSigpipe ignored;
    if (!prepared.ok() && flags.fail_closed) {
      if (!warning.empty()) PrintNote(warning);
      return prepared.status();
    }
    PrintOutcome(flags, prepared, warning);
  }
  SetEnvironment(flags, prepared.ok() ? &*prepared : nullptr);
  return ReportNotRun(name, ExecCommand(session.command));
}

}  // namespace

void AddRunCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "run",
      "Runs a command with the rewritten graph. Rewrites the graph, sets SPILLWAY_GRAPH to its "
      "path, "
      "and replaces itself by the command, which follows after --. For job scripts and hooks.");
  auto flags = std::make_shared<RunCommandFlags>(command);
  command->footer(kRunFooter);
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

bool IsRunCommand(int argc, char** argv) { return argc > 1 && absl::string_view(argv[1]) == "run"; }

int TakeCommand(int argc, char** argv, Session* session) {
  char** end = argv + argc;
  char** dashes = std::find(argv, end, absl::string_view("--"));
  if (dashes == end) return argc;
  session->command.assign(dashes + 1, end);
  return static_cast<int>(dashes - argv);
}

std::vector<std::string> RestOfCommandLine(const std::vector<std::string>& words,
                                           const Session& session) {
  std::string graph, metrics;  // The last ones count, as in other programs.
  std::vector<std::string> rest = {"run"};
  for (size_t i = 0; i < words.size(); ++i) {
    for (const auto& [flag, value] : {std::pair<const char*, std::string*>("--graph=", &graph),
                                      {"--metrics-textfile=", &metrics}}) {
      absl::string_view word = words[i];
      if (absl::ConsumePrefix(&word, flag)) *value = std::string(word);
      const bool has_next = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "-");
      if (has_next && absl::StrCat(word, "=") == flag) *value = words[i + 1];
    }
    if (absl::StartsWith(words[i], "--fail-closed")) rest.push_back(words[i]);
  }
  if (session.command.empty() || graph.empty()) return {};
  rest.push_back(absl::StrCat("--graph=", graph));
  if (!metrics.empty()) rest.push_back(absl::StrCat("--metrics-textfile=", metrics));
  return rest;
}

}  // namespace spillway::cli
