#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/format/anonymize.h"

namespace spillway::cli {
namespace {

struct AnonymizeFlags {
  InputPath input;
  absl::optional<format::GraphFormat> format;
  OutputPath output;
  OutputPath mapping;
  bool quiet = false;
};

absl::StatusOr<ExitCode> Run(const AnonymizeFlags& flags, const Session& session) {
  absl::Status status = CheckOutputs(flags.input, {flags.output, flags.mapping});
  if (!status.ok()) return status;
  const auto file = ReadGraphFile(flags.input, flags.format, session.cancellation);
  if (!file.ok()) return file.status();
  if (!format::IsText(file->format())) {
    status = CheckNotBinaryOnTerminal(flags.output);
    if (!status.ok()) return status;
  }
  const auto outputs = CreateOutputs({flags.output, flags.mapping}, session.cancellation);
  if (!outputs.ok()) return outputs.status();
  absl::StatusOr<format::Anonymized> result = format::Anonymize(*file);
  if (!result.ok()) return WithInputName(result.status(), flags.input);
  std::vector<std::string> contents = {std::move(result->bytes)};
  if (flags.mapping.given()) contents.push_back(std::move(result->mapping_json));
  if (status = WriteOutputs(*outputs, contents); !status.ok()) return status;
  if (!flags.quiet) {
    std::cerr << "spillway: names and constants were replaced; op types of TensorFlow, shapes, and "
                 "numbers in\n  attributes were kept: look at it before you send it"
              << (flags.mapping.given() ? ", and keep the mapping" : "") << "\n";
  }
  return ExitCode::kDone;
}

}  // namespace

void AddAnonymizeCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "anonymize",
      "Makes a graph fit for a bug report. Renames nodes, scopes, functions, custom ops, jobs and "
      "strings, and drops the values of constants (but for integers of at most 16 elements: "
      "shapes are made of them). Structure, op types of TensorFlow, types, shapes and numbers in "
      "attributes stay, so that a rewrite does the same. Of a MetaGraphDef or SavedModel only the "
      "graphs are kept. Always in this process.");
  auto flags = std::make_shared<AnonymizeFlags>();
  AddGraphArgument(command, "IN", absl::StrCat("The graph: ", kGraphFileHelp), &flags->input)
      ->required();
  AddFormatFlag(command, &flags->format);
  AddOutputFlag(command, "-o,--output",
                "The file for the graph, in the format of IN. - is standard output.",
                &flags->output)
      ->required();
  AddOutputFlag(command, "--mapping",
                "The file for the mapping from old to new names, as JSON, to understand an answer. "
                "Do not send it.",
                &flags->mapping);
  command->add_flag("--quiet", flags->quiet, "Prints nothing but errors on standard error.")
      ->group("What to write");
  command->footer(
      "Example:\n  spillway anonymize graph.pb -o for_the_report.pb --mapping mine.json");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
