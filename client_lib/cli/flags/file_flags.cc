#include "client_lib/cli/flags/file_flags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

absl::Status Conflict(absl::string_view message, absl::string_view flag) {
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS, message, {{"flag", flag}});
}

}  // namespace

const char kGraphFileHelp[] =
    "a GraphDef, MetaGraphDef or SavedModel, binary or text, or the folder of a SavedModel. - is "
    "standard input.";

CLI::Option* AddGraphArgument(CLI::App* command, const char* name, const std::string& help,
                              InputPath* input) {
  return command
      ->add_option_function<std::string>(
          name, [input](const std::string& text) { *input = InputPath::Graph(text); }, help)
      ->type_name("");
}

CLI::Option* AddOutputFlag(CLI::App* command, const std::string& flag, const std::string& help,
                           OutputPath* output) {
  const std::string shown = flag.substr(0, flag.find(','));
  return command
      ->add_option_function<std::string>(
          flag, [output, shown](const std::string& text) { *output = OutputPath(text, shown); },
          help)
      ->type_name("FILE")
      ->check(NotEmpty)
      ->group("What to write");
}

void AddFormatFlag(CLI::App* command, absl::optional<format::GraphFormat>* format) {
  command
      ->add_option_function<std::string>(
          "--format",
          [format](const std::string& name) {
            if (name == "auto") return;
            const auto parsed = format::ParseFormatName(name);
            if (!parsed.ok()) throw CLI::ValidationError(std::string(parsed.status().message()));
            *format = *parsed;
          },
          absl::StrCat("The format of the file: auto, ", format::kFormatNames,
                       ". A graph is written in the format in which it was read. [default: auto, "
                       "by its content]"))
      ->type_name("NAME")
      ->group("What to read");
}

FileFlags::FileFlags(CLI::App* command, Also also) {
  AddGraphArgument(command, "IN", absl::StrCat("The graph: ", kGraphFileHelp), &files_.input)
      ->required();
  AddFormatFlag(command, &files_.format);
  AddOutputFlag(command, "-o,--output",
                "The file for the graph, in the format of IN; everything around the graph is kept "
                "byte for byte. For a SavedModel, only its saved_model.pb is written. - is "
                "standard output. Can be left out if a report is asked for.",
                &files_.output);
  CLI::Option* report = AddOutputFlag(
      command, "--report",
      "The file for the report: the changes and their reasons, as JSON. - is standard output.",
      &files_.report);
  command
      ->add_flag_callback(
          "--json", [this] { files_.report = OutputPath("-", "--report"); },
          "The same as --report -.")
      ->excludes(report)
      ->group("What to write");
  if (also.patch) {
    AddOutputFlag(command, "--patch",
                  "The file for the rewrite as a list of edits, as JSON. - is standard output.",
                  &files_.patch);
  }
  if (also.plan) {
    AddOutputFlag(command, "--save-plan",
                  "The file for the plan, as JSON: to be reviewed, kept, and applied again without "
                  "planning by spillway apply. - is standard output.",
                  &files_.plan);
  }
  if (also.trace) {
    AddOutputFlag(
        command, "--trace",
        "The file for a trace of a step of the new graph. The step is simulated, launched "
        "ahead as TensorFlow runs it; the format is the Trace Event format, which "
        "ui.perfetto.dev and chrome://tracing open. - is standard output.",
        &files_.trace);
  }
  command->add_flag("--quiet", files_.quiet, "Prints no summary on standard error.")
      ->group("What to write");
  command
      ->add_flag("--verbose", files_.verbose,
                 "Prints the whole report in readable form: the search, the bounds, copies and "
                 "shares of the step's time for each GPU.")
      ->group("What to write")
      ->excludes("--quiet");
}

absl::Status CheckOutputs(const InputPath& input, const std::vector<OutputPath>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath& output = outputs[i];
    if (!output.given()) continue;
    const std::string name = core::Quoted(output.name());
    if (SameFile(output, input.path())) {
      return Conflict(
          absl::StrCat(output.flag(), " ", name, " would overwrite the input; give another name"),
          output.flag());
    }
    for (size_t j = 0; j < i; ++j) {
      const bool both_stdout = output.is_standard_output() && outputs[j].is_standard_output();
      if (!outputs[j].given() || (!both_stdout && !SameFile(output, outputs[j]))) {
        continue;
      }
      return Conflict(
          absl::StrCat(outputs[j].flag(), " and ", output.flag(), " both write to ",
                       both_stdout ? "standard output" : name, "; give them different names"),
          output.flag());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const GraphFiles& files, bool dry_run) {
  const std::vector<OutputPath> outputs = files.Outputs();
  if (!dry_run &&
      std::none_of(outputs.begin(), outputs.end(), [](const OutputPath& o) { return o.given(); })) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        "nothing to write; give -o FILE, or --report FILE for the report alone", {{"flag", "-o"}});
  }
  return CheckOutputs(files.input, outputs);
}

}  // namespace spillway::cli
