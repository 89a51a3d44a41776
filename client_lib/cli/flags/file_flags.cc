#include "client_lib/cli/flags/file_flags.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/cli/flags/not_empty.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

absl::Status Conflict(absl::string_view message, absl::string_view flag) {
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS, message, {{"flag", flag}});
}

}  // namespace

const char kGraphFileHelp[] =
    "a GraphDef, MetaGraphDef or SavedModel, binary or text, or the directory of a SavedModel. - "
    "is "
    "standard input.";

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
          absl::StrCat("What the file is: auto, ", format::kFormatNames,
                       ". A graph that is written has the same. [default: auto, from its content]"))
      ->type_name("NAME")
      ->group("What to read");
}

FileFlags::FileFlags(CLI::App* command, Also also) {
  const auto add = [command](const char* flag, std::string* path, const char* help) {
    return command->add_option(flag, *path, help)
        ->type_name("FILE")
        ->check(NotEmpty)
        ->group("What to write");
  };
  command->add_option("IN", files_.input, absl::StrCat("The graph: ", kGraphFileHelp))
      ->required()
      ->type_name("");
  AddFormatFlag(command, &files_.format);
  add("-o,--output", &files_.output,
      "The graph, in the format of IN; all around it is kept byte for byte. For a SavedModel, its "
      "saved_model.pb alone. - is standard output. May be left out if a report is asked for.");
  CLI::Option* report =
      add("--report", &files_.report, "What was done and why, as JSON. - is standard output.");
  command
      ->add_flag_callback(
          "--json", [this] { files_.report = "-"; }, "The same as --report -.")
      ->excludes(report)
      ->group("What to write");
  if (also.patch) {
    add("--patch", &files_.patch,
        "The same rewrite as a list of edits, as JSON. - is standard output.");
  }
  if (also.plan) {
    add("--save-plan", &files_.plan,
        "What was chosen, as JSON: to be reviewed, kept, and applied without planning: spillway "
        "apply. - is standard output.");
  }
  if (also.trace) {
    add("--trace", &files_.trace,
        "A simulated step of the new graph, for Perfetto: launched ahead as TensorFlow runs it, in "
        "the Trace Event format, which ui.perfetto.dev and chrome://tracing open. - is standard "
        "output.");
  }
  command->add_flag("--quiet", files_.quiet, "No summary on standard error.")
      ->group("What to write");
}

absl::Status CheckOutputs(const std::string& input, const std::vector<NamedPath>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    if (path.empty()) continue;
    if (SameFile(path, ResolveInput(input))) {
      return Conflict(absl::StrCat(flag, " ", core::Quoted(path),
                                   " would overwrite the input; give another name"),
                      flag);
    }
    for (size_t j = 0; j < i; ++j) {
      const bool both_stdout = path == "-" && outputs[j].path == "-";
      if (outputs[j].path.empty() || (!both_stdout && !SameFile(path, outputs[j].path))) continue;
      return Conflict(absl::StrCat(outputs[j].flag, " and ", flag, " both write to ",
                                   both_stdout ? "standard output" : core::Quoted(path),
                                   "; give them different names"),
                      flag);
    }
  }
  return absl::OkStatus();
}

std::vector<NamedPath> OutputsOf(const GraphFiles& files) {
  return {{"-o", files.output},
          {"--report", files.report},
          {"--patch", files.patch},
          {"--save-plan", files.plan},
          {"--trace", files.trace}};
}

absl::Status CheckFiles(const GraphFiles& files) {
  if (files.output.empty() && files.report.empty() && files.patch.empty() && files.plan.empty() &&
      files.trace.empty()) {
    return Conflict("nothing to write; give -o FILE, or --report FILE for the report alone", "-o");
  }
  return CheckOutputs(files.input, OutputsOf(files));
}

}  // namespace spillway::cli
