#include "client_lib/cli/step_flags.h"

#include "absl/strings/str_cat.h"
#include "client_lib/cli/field_flag.h"
#include "client_lib/cli/option_value.h"

namespace spillway::cli {
namespace {

constexpr char kStepGroup[] = "The step";

bool IsOfShapes(absl::string_view field) { return field == "feeds" || field == "batch_size"; }

}  // namespace

StepFlags::StepFlags(CLI::App* command, absl::string_view without) {
  const auto add = [command, without](absl::Span<const OptionRow> rows,
                                      const google::protobuf::Descriptor* message,
                                      const char* group, Options* options) {
    for (const OptionRow& row : rows) {
      const auto* field = message->FindFieldByName(std::string(row.field));
      if (field == nullptr || row.field == without) continue;  // Null: of the rewrite alone.
      (*options)[std::string(row.field)] =
          AddFieldFlag(command, FlagOf(row), HelpOf(row.help, row.default_text), field, group);
    }
  };
  add(CommonOptions(), v1::SimulateOptions::descriptor(), kStepGroup, &step_);
  add(HardwareOptions(), v1::Hardware::descriptor(), kHardwareGroup, &hardware_);
  command
      ->add_flag("--no-budget", no_budget_,
                 "Memory without end: what the step would take. [default: the machine's]")
      ->group(kHardwareGroup);
}

absl::StatusOr<v1::SimulateOptions> StepFlags::Build(bool feeds_with_size) const {
  v1::SimulateOptions options;
  options.set_no_budget(no_budget_);
  for (const OptionRow& row : CommonOptions()) {
    const auto given = step_.find(std::string(row.field));
    if (given == step_.end()) continue;
    if (row.field == "feeds") {
      for (const std::string& text : given->second->results()) {
        absl::Status status = AddFeed(FlagOf(row), text, feeds_with_size, options.add_feeds());
        if (!status.ok()) return status;
      }
      continue;
    }
    absl::Status status = SetFromFlag(FlagOf(row), given->second, row.field, &options);
    if (!status.ok()) return status;
  }
  for (const OptionRow& row : HardwareOptions()) {
    const CLI::Option* given = hardware_.at(std::string(row.field));
    if (given->count() == 0) continue;
    absl::Status status = SetFromFlag(FlagOf(row), given, row.field, options.mutable_hardware());
    if (!status.ok()) return status;
  }
  return options;
}

std::string StepFlags::FirstBeyondShapes() const {
  for (const OptionRow& row : CommonOptions()) {
    const auto given = step_.find(std::string(row.field));
    if (given == step_.end() || IsOfShapes(row.field)) continue;
    if (given->second->count() > 0) return FlagOf(row);
  }
  for (const OptionRow& row : HardwareOptions()) {
    if (hardware_.at(std::string(row.field))->count() > 0) return FlagOf(row);
  }
  return no_budget_ ? "--no-budget" : "";
}

}  // namespace spillway::cli
