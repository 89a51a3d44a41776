#include "client_lib/cli/rewrite/rewrite_graph_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/print/json.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

using format::GraphFile;
using Json = nlohmann::ordered_json;

// Whether the options do not fit this graph. That is not an error if they fit another graph of the
// file: a file may hold a MetaGraph for serving beside the one for training.
bool OptionsAreForAnother(const absl::Status& status) {
  switch (core::GetErrorReason(status)) {
    case v1::ERROR_REASON_NO_BACKWARD_PART:
    case v1::ERROR_REASON_NAME_MATCHES_NOTHING:
    case v1::ERROR_REASON_NO_STARTING_OP:
    case v1::ERROR_REASON_EMPTY_GRAPH:
    case v1::ERROR_REASON_OTHER_GRAPH:
      return true;
    default:
      return false;
  }
}

bool WantsGraph(const v1::RewriteOptions& options) {
  return options.outputs().empty() ||
         std::count(options.outputs().begin(), options.outputs().end(), v1::OUTPUT_GRAPH) > 0;
}

absl::StatusOr<v1::RewriteResponse> RewriteWithProfile(const StoredProfiles& profiles,
                                                       absl::string_view graph,
                                                       v1::RewriteOptions options,
                                                       const Client& client,
                                                       const CallOptions& call, std::string* note) {
  *note = profiles.AddTo(graph, options.mutable_step());
  return client.Rewrite(graph, options, call);
}

absl::StatusOr<v1::RewriteResponse> Apply(const SavedPlans& plans, size_t index,
                                          absl::string_view graph, v1::RewriteOptions options,
                                          const Client& client, const CallOptions& call) {
  const std::string* const plan = plans.Of(index);
  if (plan == nullptr) {
    return core::InvalidError(
        v1::ERROR_REASON_OTHER_GRAPH,
        absl::StrCat("there is no saved plan for graph ", index,
                     " of the file; give the file of plans that was saved with it"),
        {{"index", absl::StrCat(index)}});
  }
  options.mutable_apply()->set_plan(*plan);
  return client.Rewrite(graph, options, call);
}

// A part of every graph's answer, as JSON, under its own name.
template <typename PartJson>
std::string PerGraphJson(const RewrittenFile& file, const char* name, PartJson json_of) {
  if (!format::IsSavedModel(file.format)) return json_of(file.graphs[0].response);
  std::vector<MetaGraphJson> entries;
  for (const RewrittenGraph& graph : file.graphs) {
    if (graph.kept_because.ok()) {
      entries.push_back({graph.tags, name, json_of(graph.response)});
      continue;
    }
    const Json why = {{"reason", core::GetErrorInfo(graph.kept_because).reason()},
                      {"message", std::string(graph.kept_because.message())}};
    entries.push_back(
        {graph.tags, "kept_because", why.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }
  return MetaGraphsJson(entries);
}

}  // namespace

std::string RewrittenFile::ReportJson() const {
  return PerGraphJson(*this, "report", [](const v1::RewriteResponse& response) {
    return ToJson(response.report());
  });
}

std::string RewrittenFile::PatchJson() const {
  return PerGraphJson(*this, "patch",
                      [](const v1::RewriteResponse& response) { return ToJson(response.patch()); });
}

absl::StatusOr<std::string> RewrittenFile::PlanJson() const {
  const absl::Status none = core::InvalidError(
      v1::ERROR_REASON_CONFLICTING_OPTIONS,
      "there is no plan to save, since the graph was rewritten before and is kept as it is; give "
      "--already-rewritten replan, or leave --save-plan out",
      {{"flag", "--save-plan"}});
  RewrittenFile with_plans;  // Without the large parts.
  with_plans.format = format;
  bool any = false;
  for (const RewrittenGraph& graph : graphs) {
    RewrittenGraph& copy = with_plans.graphs.emplace_back();
    copy.tags = graph.tags;
    copy.kept_because = graph.response.has_plan() ? absl::OkStatus()
                        : graph.kept_because.ok() ? none
                                                  : graph.kept_because;
    *copy.response.mutable_plan() = graph.response.plan();
    any = any || graph.response.has_plan();
  }
  if (!any) return none;
  // An earlier program refuses a field that it does not know, even an empty one.
  return PerGraphJson(with_plans, "plan", [](const v1::RewriteResponse& response) {
    return ToJsonWithoutZeros(response.plan());
  });
}

absl::StatusOr<RewrittenFile> RewriteGraphFile(std::string bytes,
                                               absl::optional<format::GraphFormat> format,
                                               const v1::RewriteOptions& options,
                                               const Client& client, const CallOptions& call,
                                               const SavedPlans* plans,
                                               const StoredProfiles* profiles) {
  absl::StatusOr<GraphFile> file = GraphFile::Read(std::move(bytes), format);
  if (!file.ok()) return file.status();
  RewrittenFile result;
  result.format = file->format();
  std::vector<absl::optional<std::string>> graphs(file->num_graphs());
  const absl::Time deadline = core::SteadyNow() + call.timeout;
  bool any = false;
  absl::Status first_error;
  for (size_t i = 0; i < file->num_graphs(); ++i) {
    RewrittenGraph& graph = result.graphs.emplace_back();
    graph.name = file->NameOf(i);
    graph.tags = file->tags(i);
    const CallOptions rest = Until(deadline, call);
    auto response = plans != nullptr      ? Apply(*plans, i, file->graph(i), options, client, rest)
                    : profiles != nullptr ? RewriteWithProfile(*profiles, file->graph(i), options,
                                                               client, rest, &graph.profile_note)
                                          : client.Rewrite(file->graph(i), options, rest);
    if (!response.ok()) {
      if (!OptionsAreForAnother(response.status())) return file->WithName(i, response.status());
      if (first_error.ok()) first_error = file->WithName(i, response.status());
      graph.kept_because = response.status();
      continue;
    }
    any = true;
    if (WantsGraph(options)) graphs[i] = std::move(*response->mutable_graph_def());
    response->clear_graph_def();
    graph.response = *std::move(response);
  }
  if (!any) return first_error;
  if (!WantsGraph(options)) return result;
  auto written = std::move(*file).WithGraphs(std::move(graphs));
  if (!written.ok()) return written.status();
  result.bytes = *std::move(written);
  return result;
}

}  // namespace spillway::cli
