#include "client_lib/cli/flags/step_flags.h"

#include "absl/strings/str_cat.h"
#include "client_lib/cli/flags/field_flag.h"
#include "client_lib/cli/flags/option_value.h"

namespace spillway::cli {
namespace {

bool IsOfShapes(absl::string_view field) { return field == "feeds" || field == "batch_size"; }

}  // namespace

StepFlags::StepFlags(CLI::App* command, absl::string_view without) {
  const auto add = [command, without](absl::Span<const OptionRow> rows,
                                      const google::protobuf::Descriptor* message,
                                      const char* group, Options* options) {
    for (const OptionRow& row : rows) {
      const auto* field = message->FindFieldByName(std::string(row.field));
      if (row.field == without) continue;
      (*options)[std::string(row.field)] =
          AddFieldFlag(command, FlagOf(row), HelpOf(row.help, row.default_text), field, group);
    }
  };
  add(StepOptions(), v1::Step::descriptor(), kStepGroup, &step_);
  add(HardwareOptions(), v1::Hardware::descriptor(), kHardwareGroup, &hardware_);
  command
      ->add_flag("--no-budget", no_budget_,
                 "Unlimited memory: what the step would take. [default: the machine's]")
      ->group(kHardwareGroup);
}

absl::StatusOr<v1::Step> StepFlags::Build(FeedSizes sizes) const {
  v1::Step step;
  for (const OptionRow& row : StepOptions()) {
    const auto given = step_.find(std::string(row.field));
    if (given == step_.end()) continue;
    if (row.field == "feeds") {
      for (const std::string& text : given->second->results()) {
        absl::Status status = AddFeed(FlagOf(row), text, sizes, step.add_feeds());
        if (!status.ok()) return status;
      }
      continue;
    }
    absl::Status status = SetFromFlag(FlagOf(row), given->second, row.field, &step);
    if (!status.ok()) return status;
  }
  for (const OptionRow& row : HardwareOptions()) {
    const CLI::Option* given = hardware_.at(std::string(row.field));
    if (given->count() == 0) continue;
    absl::Status status = SetFromFlag(FlagOf(row), given, row.field, step.mutable_hardware());
    if (!status.ok()) return status;
  }
  return step;
}

std::string StepFlags::FirstBeyondShapes() const {
  for (const OptionRow& row : StepOptions()) {
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
