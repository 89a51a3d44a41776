#include "client_lib/cli/graph_run.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_lib/cli/input_file.h"
#include "client_lib/cli/json.h"
#include "client_lib/cli/output_file.h"
#include "client_lib/cli/progress_line.h"
#include "client_lib/cli/summary.h"

namespace spillway::cli {
namespace {

void SetOutputs(const GraphFiles& files, v1::RewriteOptions* options) {
  if (!files.output.empty()) options->add_outputs(v1::OUTPUT_GRAPH);
  if (!files.patch.empty()) options->add_outputs(v1::OUTPUT_PATCH);
  if (!files.report.empty() || !files.quiet) options->add_outputs(v1::OUTPUT_REPORT);
}

}  // namespace

absl::StatusOr<ExitCode> RunOnGraph(const GraphFiles& files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session) {
  // Everything that can be wrong is found as early as it can be: the rewrite is the long part.
  if (absl::Status status = CheckFiles(files); !status.ok()) return status;
  absl::StatusOr<CallOptions> call = connection.MakeCall(session);
  if (!call.ok()) return call.status();
  absl::StatusOr<std::string> graph = ReadInput(files.input, session.cancellation);
  if (!graph.ok()) return graph.status();
  std::vector<std::unique_ptr<OutputFile>> outputs;
  for (const std::string& path : {files.output, files.report, files.patch}) {
    if (path.empty()) continue;
    auto file = OutputFile::Create(path, session.cancellation);
    if (!file.ok()) return file.status();
    outputs.push_back(*std::move(file));
  }

  SetOutputs(files, &options);
  ProgressLine progress(files.quiet);
  call->on_progress = progress.callback();
  absl::StatusOr<v1::RewriteResponse> response =
      connection.Connect(files.quiet).Rewrite(*graph, options, *call);
  progress.End();
  if (!response.ok()) return WithInputName(response.status(), files.input);

  std::vector<std::string> contents;  // In the order of `outputs`.
  if (!files.output.empty()) contents.push_back(std::move(*response->mutable_graph_def()));
  if (!files.report.empty()) contents.push_back(ToJson(response->report(), /*with_zeros=*/true));
  if (!files.patch.empty()) contents.push_back(ToJson(response->patch(), /*with_zeros=*/true));
  // What cannot be taken back comes last, and no file gets its name before all are written.
  for (const bool direct : {false, true}) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]->direct() != direct) continue;
      if (absl::Status status = outputs[i]->Write(contents[i]); !status.ok()) return status;
    }
  }
  for (const auto& output : outputs) {
    if (absl::Status status = output->Commit(); !status.ok()) return status;
  }
  if (!files.quiet) std::cerr << FormatSummary(response->report());
  return ExitCode::kDone;
}

}  // namespace spillway::cli
