#include "client_lib/cli/graph_run.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_lib/cli/input_file.h"
#include "client_lib/cli/output_file.h"
#include "client_lib/cli/progress_line.h"
#include "client_lib/cli/rewrite_graph_file.h"
#include "client_lib/cli/summary.h"

namespace spillway::cli {
namespace {

void SetOutputs(const GraphFiles& files, v1::RewriteOptions* options) {
  if (!files.output.empty()) options->add_outputs(v1::OUTPUT_GRAPH);
  if (!files.patch.empty()) options->add_outputs(v1::OUTPUT_PATCH);
  if (!files.report.empty() || !files.quiet) options->add_outputs(v1::OUTPUT_REPORT);
}

void PrintSummary(const RewrittenFile& file) {
  for (const RewrittenGraph& graph : file.graphs) {
    if (!graph.kept_because.ok()) {
      std::cerr << FormatKept(graph.name, graph.kept_because.message());
    } else {
      std::cerr << FormatSummary(graph.response.report(), graph.name);
    }
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunOnGraph(const GraphFiles& files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session) {
  // Everything that can be wrong is found as early as it can be: the rewrite is the long part.
  if (absl::Status status = CheckFiles(files); !status.ok()) return status;
  absl::StatusOr<CallOptions> call = connection.MakeCall(session);
  if (!call.ok()) return call.status();
  absl::StatusOr<std::string> bytes = ReadInput(files.input, session.cancellation);
  if (!bytes.ok()) return bytes.status();
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
  absl::StatusOr<RewrittenFile> result = RewriteGraphFile(*std::move(bytes), files.format, options,
                                                          connection.Connect(files.quiet), *call);
  progress.End();
  if (!result.ok()) return WithInputName(result.status(), files.input);

  std::vector<std::string> contents;  // In the order of `outputs`.
  if (!files.output.empty()) contents.push_back(std::move(result->bytes));
  if (!files.report.empty()) contents.push_back(result->ReportJson());
  if (!files.patch.empty()) contents.push_back(result->PatchJson());
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
  if (!files.quiet) PrintSummary(*result);
  return ExitCode::kDone;
}

}  // namespace spillway::cli
