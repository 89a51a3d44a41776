#include "client_lib/cli/commands/check_run.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/text/check_run.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

// Rewords the core's errors about a profile: here the profile is the RunMetadata of a run.
absl::Status AsOfRun(const absl::Status& status) {
  constexpr absl::string_view kProfile = "profile ";
  const absl::string_view said = status.message();
  const auto info = ErrorInfoOf(status);
  const auto option = info.metadata().find("option");
  if (option == info.metadata().end() || option->second != "profile" ||
      !absl::StartsWith(said, kProfile)) {
    return status;
  }
  const absl::string_view what = said.substr(kProfile.size(), said.rfind("; ") - kProfile.size());
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("RUN_METADATA ", what,
                                         "; give the RunMetadata of a training step of this graph"),
                            {{"option", "RUN_METADATA"}});
}

// Returns the graph before the rewrite, or `graph_def` itself if Spillway did not rewrite it.
absl::StatusOr<std::string> Original(const Client& client, absl::string_view graph_def,
                                     const CallOptions& call) {
  const absl::StatusOr<v1::RewriteResponse> stripped = client.Strip(graph_def, call);
  if (absl::IsFailedPrecondition(stripped.status())) return std::string(graph_def);
  if (!stripped.ok()) return stripped.status();
  return stripped->graph_def().empty() ? std::string(graph_def) : stripped->graph_def();
}

// As a report has them.
void AddSwaps(const v1::GraphDiff& diff, v1::RewriteReport* report) {
  for (const v1::FoundSwap& found : diff.swaps()) {
    v1::TensorSwap& swap = *report->add_swaps();
    swap.set_tensor(found.tensor());
    if (found.has_size_bytes()) swap.set_size_bytes(found.size_bytes());
    swap.set_swap_out(found.swap_out());
    for (const v1::FoundSwapIn& found_in : found.swap_ins()) {
      v1::SwapIn& swap_in = *swap.add_swap_ins();
      swap_in.set_name(found_in.name());
      *swap_in.mutable_consumers() = found_in.consumers();
    }
  }
}

// Adds sizes of swapped tensors that depend on the step's batch and feeds.
absl::Status AddSizes(const Client& client, absl::string_view graph_def, const v1::Step& step,
                      const CallOptions& call, v1::RewriteReport* report) {
  absl::flat_hash_map<absl::string_view, v1::TensorSwap*> unknown;
  for (v1::TensorSwap& swap : *report->mutable_swaps()) {
    if (!swap.has_size_bytes()) unknown[swap.tensor()] = &swap;
  }
  if (unknown.empty()) return absl::OkStatus();
  v1::InspectOptions options;
  *options.mutable_step()->mutable_feeds() = step.feeds();
  if (step.has_batch_size()) options.mutable_step()->set_batch_size(step.batch_size());
  return client
      .InspectTensors(
          graph_def, options,
          [&unknown](const v1::TensorList& piece) {
            for (const v1::TensorSummary& tensor : piece.tensors()) {
              const auto found = unknown.find(tensor.tensor());
              if (found != unknown.end() && tensor.has_size_bytes()) {
                found->second->set_size_bytes(tensor.size_bytes());
              }
            }
          },
          call)
      .status();
}

}  // namespace

absl::StatusOr<CheckedRun> CheckRun(const Client& client, absl::string_view graph_def,
                                    absl::string_view original, v1::SimulateOptions options,
                                    absl::string_view run_metadata, const CallOptions& call) {
  const absl::Time deadline = core::SteadyNow() + call.timeout;
  const absl::StatusOr<text::CheckTrace> trace = text::ReadCheckTrace(run_metadata);
  if (!trace.ok()) return trace.status();
  CheckedRun run;
  if (original.empty()) {
    absl::StatusOr<std::string> found = Original(client, graph_def, Until(deadline, call));
    if (!found.ok()) return found.status();
    run.original = *std::move(found);
  } else {
    run.original = std::string(original);
  }
  v1::RewriteReport report;
  if (run.original != graph_def) {
    const absl::StatusOr<v1::GraphDiff> diff =
        client.Diff(run.original, graph_def, Until(deadline, call));
    if (!diff.ok()) return diff.status();
    AddSwaps(*diff, &report);
    absl::Status sizes =
        AddSizes(client, graph_def, options.step(), Until(deadline, call), &report);
    if (!sizes.ok()) return sizes;
  }
  absl::StatusOr<v1::SimulateReport> simulated =
      client.Simulate(graph_def, options, Until(deadline, call));
  if (!simulated.ok()) return simulated.status();
  report.mutable_forecast_after()->Swap(simulated->mutable_forecast());
  report.mutable_hardware()->Swap(simulated->mutable_hardware());
  absl::StatusOr<v1::RunCheck> check = text::CheckRun(report, *trace);
  if (!check.ok()) return check.status();
  options.mutable_step()->set_profile(run_metadata.data(), run_metadata.size());
  const absl::StatusOr<v1::SimulateReport> corrected =
      client.Simulate(graph_def, options, Until(deadline, call));
  if (!corrected.ok()) return AsOfRun(corrected.status());
  if (corrected->forecast().has_step_time_ns()) {
    check->set_corrected_step_time_ns(corrected->forecast().step_time_ns());
  }
  run.check = *std::move(check);
  return run;
}

}  // namespace spillway::cli
