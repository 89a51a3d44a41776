#include "client_lib/cli/file_flags.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/output_file.h"
#include "rewrite_core/graph/error.h"

namespace spillway::cli {
namespace {

struct NamedPath {
  absl::string_view flag;
  const std::string& path;
};

absl::Status Conflict(absl::string_view message, absl::string_view flag) {
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS, message, {{"flag", flag}});
}

}  // namespace

FileFlags::FileFlags(CLI::App* command, bool with_report) {
  const auto add = [command](const char* flag, std::string* path, const char* help) {
    return command->add_option(flag, *path, help)->type_name("FILE")->group("What to write");
  };
  command->add_option("IN", files_.input, "The graph: a serialized GraphDef. - is standard input.")
      ->required()
      ->type_name("");
  if (with_report) {
    add("-o,--output", &files_.output,
        "The rewritten graph. - is standard output. May be left out if --report or --patch is "
        "given.");
    add("--report", &files_.report, "What was done and why, as JSON. - is standard output.");
    add("--patch", &files_.patch,
        "The same rewrite as a list of edits, as JSON. - is standard output.");
  } else {
    add("-o,--output", &files_.output, "The graph. - is standard output.")->required();
  }
  command->add_flag("--quiet", files_.quiet, "No summary on standard error.")
      ->group("What to write");
}

absl::Status CheckFiles(const GraphFiles& files) {
  std::vector<NamedPath> outputs;
  for (const NamedPath& output :
       {NamedPath{"-o", files.output}, NamedPath{"--report", files.report},
        NamedPath{"--patch", files.patch}}) {
    if (!output.path.empty()) outputs.push_back(output);
  }
  if (outputs.empty()) {
    return Conflict("nothing to write; give -o FILE, or --report FILE for the report alone", "-o");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    if (SameFile(path, files.input)) {
      return Conflict(absl::StrCat(flag, " ", core::Quoted(path),
                                   " would overwrite the input; give another name"),
                      flag);
    }
    for (size_t j = 0; j < i; ++j) {
      const bool both_stdout = path == "-" && outputs[j].path == "-";
      if (!both_stdout && !SameFile(path, outputs[j].path)) continue;
      return Conflict(absl::StrCat(outputs[j].flag, " and ", flag, " both write to ",
                                   both_stdout ? "standard output" : core::Quoted(path),
                                   "; give them different names"),
                      flag);
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::cli
