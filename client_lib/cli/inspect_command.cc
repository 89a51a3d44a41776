#include "client_lib/cli/inspect_command.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/file_flags.h"
#include "client_lib/cli/input_file.h"
#include "client_lib/cli/inspect_text.h"
#include "client_lib/cli/json.h"
#include "client_lib/cli/option_value.h"
#include "rewrite_core/graph/error.h"
#include "rewrite_core/inspect.h"
#include "rewrite_core/rewriter.h"

namespace spillway::cli {
namespace {

constexpr char kDefaultTop[] = "10";

struct Flags {
  std::string input;
  std::vector<std::string> feeds;
  std::vector<std::string> batch_size;
  std::vector<std::string> top;
  absl::optional<format::GraphFormat> format;
  bool json = false;
};

// Sets the option of that name from what was given for its flag.
absl::Status Set(const char* flag, const std::vector<std::string>& texts, const char* field,
                 v1::InspectOptions* options) {
  if (texts.empty()) return absl::OkStatus();
  return SetField(flag, texts, v1::InspectOptions::descriptor()->FindFieldByName(field), options);
}

absl::StatusOr<v1::InspectOptions> OptionsOf(const Flags& flags) {
  v1::InspectOptions options;
  for (const absl::Status& status :
       {Set("--feed", flags.feeds, "feeds", &options),
        Set("--batch-size", flags.batch_size, "batch_size", &options),
        Set("--top", flags.top.empty() ? std::vector<std::string>{kDefaultTop} : flags.top,
            "largest_tensor_count", &options)}) {
    if (!status.ok()) return status;
  }
  // The core would name its own option.
  if (options.largest_tensor_count() < 0) {
    const std::string value = absl::StrCat(options.largest_tensor_count());
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("--top is ", value, "; give 0 or more"),
                              {{"option", "--top"}, {"value", value}});
  }
  return options;
}

absl::StatusOr<ExitCode> Run(const Flags& flags, const Session& session) {
  const absl::StatusOr<v1::InspectOptions> options = OptionsOf(flags);
  if (!options.ok()) return options.status();
  const absl::StatusOr<format::GraphFile> file =
      ReadGraphFile(flags.input, flags.format, session.cancellation);
  if (!file.ok()) return file.status();
  const core::StopToken stop(absl::InfiniteFuture(), session.cancellation.flag());
  const Style style = StyleOf(STDOUT_FILENO);
  std::string text;
  std::vector<MetaGraphJson> entries;
  for (size_t i = 0; i < file->num_graphs(); ++i) {
    const absl::StatusOr<v1::GraphSummary> summary =
        core::Inspect(file->graph(i), *options, core::DefaultLimits(), stop);
    if (!summary.ok()) return WithInputName(file->WithName(i, summary.status()), flags.input);
    if (flags.json) {
      entries.push_back({file->tags(i), "graph", ToJson(*summary, /*with_zeros=*/true)});
      continue;
    }
    if (!file->NameOf(i).empty()) {
      absl::StrAppend(&text, i > 0 ? "\n" : "", style.Heading(file->NameOf(i)), "\n");
    }
    absl::StrAppend(&text, FormatGraphSummary(*summary, options->largest_tensor_count(), style));
  }
  if (flags.json) {
    text = format::IsSavedModel(file->format()) ? MetaGraphsJson(entries) : entries[0].json;
  }
  std::cout << text;
  return ExitCode::kDone;
}

}  // namespace

void AddInspectCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "inspect",
      "Prints what a graph is made of. Nodes, op types, devices, name scopes (which help to name "
      "optimizer scopes), loops, placeholders, variables, the largest tensors, and whether it was "
      "rewritten already. Always in this process.");
  auto flags = std::make_shared<Flags>();
  command->add_option("GRAPH", flags->input, absl::StrCat("The graph: ", kGraphFileHelp))
      ->required()
      ->type_name("");
  AddFormatFlag(command, &flags->format);
  const auto add = [command](const char* flag, std::vector<std::string>* texts, const char* help,
                             const char* type, const char* group) {
    command->add_option(flag, *texts, help)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name(type)
        ->group(group);
  };
  add("--feed", &flags->feeds,
      "Shape of what a step feeds, for tensor sizes: --feed images=128,224,224,3. Give the flag "
      "once for each name. [default: none]",
      "NAME=N,N,...", "What is known");
  add("--batch-size", &flags->batch_size,
      "Examples in the batch of one step; replaces an unknown first dimension. 1 to 2^31 - 1. "
      "[default: not set, such a size is unknown]",
      "N", "What is known");
  add("--top", &flags->top,
      "Rows of each table; with --json, how many of the largest tensors are listed (the other "
      "lists are complete). 0 and up. [default: 10]",
      "N", "What to write");
  command
      ->add_flag("--json", flags->json,
                 "JSON (GraphSummary in inspect.proto; for a SavedModel, one per MetaGraph).")

      ->group("What to write");
  command->footer(
      "Examples:\n"
      "  spillway inspect graph.pb --batch-size 128 --top 20\n"
      "  spillway inspect graph.pb --json | jq '.scopes[] | .name'");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
