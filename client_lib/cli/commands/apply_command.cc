#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/graph_run.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/field_flag.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/option_table.h"
#include "client_lib/cli/rewrite/saved_plans.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kApplyFooter[] =
    "Example:\n"
    "  spillway rewrite graph.pb --save-plan plan.json\n"
    "  spillway apply plan.json graph.pb -o out.pb";

// Options that all strategies share and that a plan already determines.
constexpr absl::string_view kSettled[] = {"cpu_device", "min_tensor_bytes", "inline_calls"};

// The order is that of --help.
struct ApplyFlags {
  explicit ApplyFlags(CLI::App* command)
      : plan_option(command->add_option_function<std::string>(
            "PLAN", [this](const std::string& name) { plan = InputPath(name); },
            "The plan: JSON, as written by rewrite --save-plan. - is standard input.")),
        files(command, {/*patch=*/true, /*plan=*/false, /*trace=*/false}),
        connection(command, ConnectionFlags::Kind::kRewrite) {
    plan_option->required()->type_name("");
    for (const OptionRow& row : CommonOptions()) {
      if (std::count(std::begin(kSettled), std::end(kSettled), row.field->name()) > 0) continue;
      options.emplace_back(&row, AddFieldFlag(command, row, "How to apply it"));
    }
  }

  absl::StatusOr<v1::RewriteOptions> BuildOptions() const {
    v1::RewriteOptions built;
    for (const auto& [row, option] : options) {
      if (absl::Status s = SetFromFlag(*row, option, &built); !s.ok()) return s;
    }
    return built;
  }

  InputPath plan;
  CLI::Option* const plan_option;
  const FileFlags files;
  std::vector<std::pair<const OptionRow*, CLI::Option*>> options;
  const ConnectionFlags connection;
};

absl::StatusOr<ExitCode> RunApply(const ApplyFlags& flags, const Session& session) {
  const GraphFiles& files = flags.files.files();
  if (flags.plan.is_standard_input() && files.input.is_standard_input()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "PLAN and IN are both standard input; give one of them as a file",
                              {{"flag", "PLAN"}});
  }
  absl::StatusOr<v1::RewriteOptions> options = flags.BuildOptions();
  if (!options.ok()) return options.status();
  if (absl::Status s = CheckFiles(files, options->dry_run()); !s.ok()) return s;
  if (absl::Status s = CheckOutputs(flags.plan, files.Outputs()); !s.ok()) return s;
  absl::StatusOr<std::string> json =
      ReadBytes(flags.plan, FileKind::kPlan,
                "give a plan that spillway rewrite --save-plan has written", session.cancellation);
  if (!json.ok()) return json.status();
  absl::StatusOr<SavedPlans> plans = SavedPlans::FromJson(*json);
  if (!plans.ok()) return plans.status();
  *json = std::string();
  return RunOnGraph(files, *std::move(options), flags.connection, session, &*plans);
}

}  // namespace

void AddApplyCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "apply",
      "Applies a plan that rewrite --save-plan has saved to its graph, without planning. The "
      "result "
      "is the graph of that rewrite, byte for byte. A plan for another graph is refused; a graph "
      "whose attributes TensorFlow has written in another order is the same graph. The plan need "
      "not be trusted: all of it is checked.");
  auto flags = std::make_shared<ApplyFlags>(command);
  command->footer(kApplyFooter);
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return RunApply(*flags, *session); }; });
}

}  // namespace spillway::cli
