#include "client_lib/cli/commands/graph_run.h"

#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/rewrite_graph_file.h"
#include "client_lib/plot/chrome_trace.h"
#include "client_lib/text/summary.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

void SetOutputs(const GraphFiles& files, bool keep_best, v1::RewriteOptions* options) {
  if (files.output.given() || files.trace.given()) options->add_outputs(v1::OUTPUT_GRAPH);
  if (files.patch.given()) options->add_outputs(v1::OUTPUT_PATCH);
  if (files.plan.given()) options->add_outputs(v1::OUTPUT_PLAN);
  // The report says whether a search was ended.
  if (files.report.given() || !files.quiet || keep_best) options->add_outputs(v1::OUTPUT_REPORT);
}

void PrintSummary(const RewrittenFile& file, bool verbose, text::RecomputeChoice recompute) {
  const text::Style style = StyleOf(STDERR_FILENO);
  for (const RewrittenGraph& graph : file.graphs) {
    if (!graph.kept_because.ok()) {
      std::cerr << text::FormatKept(graph.name, graph.kept_because.message(), style);
    } else {
      const v1::RewriteReport& report = graph.response.report();
      std::cerr << (verbose ? text::FormatDetails(report, graph.name, style)
                            : text::FormatSummary(report, graph.name, style, recompute));
    }
  }
  if (!verbose) std::cerr << "  (--verbose prints the details)\n";
}

void ShowPlans(int64_t tried, int64_t best_ns) {
  ShowProgress(absl::StrCat(
      "rewriting: ", text::FormatCount(tried, "plan"), " tried",
      best_ns > 0
          ? absl::StrCat(", best step so far ", core::DurationText(absl::Nanoseconds(best_ns)))
          : ", none fits so far"));
}

// Writes the step of each graph in a file, before the rewrite, in the Trace Event format.
absl::StatusOr<std::string> TraceOf(const RewrittenFile& file, const v1::Step& step,
                                    const StoredProfiles* profiles, const Client& client,
                                    const CallOptions& call) {
  auto graphs = format::GraphFile::Read(file.bytes, file.format);
  if (!graphs.ok()) return graphs.status();
  v1::SimulateOptions options;
  *options.mutable_step() = step;
  options.set_memory(true);
  options.set_trace(true);
  plot::ChromeTrace trace;
  const absl::Time deadline = core::SteadyNow() + call.timeout;
  for (size_t i = 0; i < graphs->num_graphs(); ++i) {
    // A MetaGraph that was kept has another purpose, and may have no such step.
    if (!file.graphs[i].kept_because.ok()) continue;
    v1::SimulateOptions with_profile = options;
    // The rewrite reports that a profile was found.
    if (profiles != nullptr) profiles->AddTo(graphs->graph(i), with_profile.mutable_step());
    const auto report = client.Simulate(graphs->graph(i), with_profile, Until(deadline, call));
    if (!report.ok()) return graphs->WithName(i, report.status());
    trace.Add(*report, graphs->NameOf(i));
  }
  return trace.Json();
}

// Whether the file was planned for a budget but may not fit it.
bool IsFitUnknown(const RewrittenFile& file) {
  for (const RewrittenGraph& graph : file.graphs) {
    for (const v1::DeviceFit& fit : graph.response.report().fits()) {
      if (fit.fit() == v1::FIT_UNKNOWN) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<ExitCode> RunOnGraph(GraphFiles files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session,
                                    const SavedPlans* plans, const StoredProfiles* profiles,
                                    bool keep_best) {
  // All checks that can be made early come first: the rewrite takes the longest.
  if (absl::Status status = CheckFiles(files, options.dry_run()); !status.ok()) return status;
  if (options.dry_run()) files.output = OutputPath();
  absl::StatusOr<CallOptions> call = connection.MakeCall(session);
  if (!call.ok()) return call.status();
  absl::StatusOr<std::string> bytes = ReadInput(files.input, session.cancellation);
  if (!bytes.ok()) return bytes.status();
  // An invalid graph is reported later, when it is read.
  const auto format = files.format.has_value() ? absl::StatusOr<format::GraphFormat>(*files.format)
                                               : format::RecogniseFormat(*bytes);
  if (format.ok() && !format::IsText(*format)) {
    absl::Status status = CheckNotBinaryOnTerminal(files.output);
    if (!status.ok()) return status;
  }
  // A cancelled search must still write its best plan.
  const auto outputs =
      CreateOutputs(files.Outputs(), keep_best ? CancellationToken() : session.cancellation);
  if (!outputs.ok()) return outputs.status();

  SetOutputs(files, keep_best, &options);
  call->keep_best = keep_best;
  const Verbosity verbosity = files.quiet ? Verbosity::kQuiet : Verbosity::kNormal;
  ProgressLine progress(verbosity);
  call->on_progress = progress.callback();
  // Plans are reported only beside a progress line; applying a saved plan involves no search.
  if (call->on_progress) call->on_plan = ShowPlans;
  const Client client = connection.Connect(verbosity);
  const absl::Time deadline = core::SteadyNow() + call->timeout;
  absl::StatusOr<RewrittenFile> result =
      RewriteGraphFile(*std::move(bytes), files.format, options, client, *call, plans, profiles);
  absl::StatusOr<std::string> trace;
  if (result.ok() && files.trace.given()) {
    trace = TraceOf(*result, options.step(), profiles, client, Until(deadline, *call));
    if (!trace.ok()) result = trace.status();
  }
  progress.End();
  if (!result.ok()) return WithInputName(result.status(), files.input);
  for (const RewrittenGraph& graph : result->graphs) {
    if (!files.quiet) PrintNote(graph.profile_note);
  }

  std::vector<std::string> contents;  // In the order of `outputs`.
  if (files.output.given()) contents.push_back(std::move(result->bytes));
  if (files.report.given()) contents.push_back(result->ReportJson());
  if (files.patch.given()) contents.push_back(result->PatchJson());
  if (files.plan.given()) {
    absl::StatusOr<std::string> plan = result->PlanJson();
    if (!plan.ok()) return plan.status();
    contents.push_back(*std::move(plan));
  }
  if (files.trace.given()) contents.push_back(*std::move(trace));
  if (absl::Status status = WriteOutputs(*outputs, contents); !status.ok()) return status;
  if (!files.quiet) {
    PrintSummary(*result, files.verbose, text::ChoiceOf(options.budget().recompute()));
  }
  for (const RewrittenGraph& graph : result->graphs) {
    if (graph.response.report().stopped_early()) return ExitCode::kStoppedEarly;
  }
  // An applied plan was judged when it was made.
  return plans == nullptr && IsFitUnknown(*result) ? ExitCode::kFitUnknown : ExitCode::kDone;
}

}  // namespace spillway::cli
