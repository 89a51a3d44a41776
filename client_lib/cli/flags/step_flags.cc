#include "client_lib/cli/flags/step_flags.h"

#include "client_lib/cli/flags/field_flag.h"
#include "client_lib/cli/flags/option_value.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {
namespace {

bool IsOfShapes(absl::string_view field) { return field == "feeds" || field == "batch_size"; }

}  // namespace

StepFlags::StepFlags(CLI::App* command, absl::string_view without) {
  const auto add = [command, without](const std::vector<OptionRow>& rows, const char* group,
                                      Options* options) {
    for (const OptionRow& row : rows) {
      if (row.field->name() == without) continue;
      (*options)[row.flag] = AddFieldFlag(command, row, group);
    }
  };
  add(StepOptions(), kStepGroup, &step_);
  add(HardwareOptions(), kHardwareGroup, &hardware_);
  const OptionRow row = RowOf(v1::SimulateOptions::descriptor(), "no_budget");
  command->add_flag(row.flag, no_budget_, row.help)->group(kHardwareGroup);
}

absl::StatusOr<v1::Step> StepFlags::Build(FeedSizes sizes) const {
  v1::Step step;
  for (const OptionRow& row : StepOptions()) {
    const auto given = step_.find(row.flag);
    if (given == step_.end()) continue;
    if (row.field->name() == "feeds") {
      for (const std::string& text : given->second->results()) {
        absl::Status status = AddFeed(row.flag, text, sizes, step.add_feeds());
        if (!status.ok()) return status;
      }
      continue;
    }
    if (absl::Status s = SetFromFlag(row, given->second, &step); !s.ok()) return s;
  }
  for (const OptionRow& row : HardwareOptions()) {
    const CLI::Option* given = hardware_.at(row.flag);
    if (given->count() == 0) continue;
    if (absl::Status s = SetFromFlag(row, given, step.mutable_hardware()); !s.ok()) return s;
  }
  return step;
}

std::string StepFlags::FirstBeyondShapes() const {
  for (const OptionRow& row : StepOptions()) {
    const auto given = step_.find(row.flag);
    if (given == step_.end() || IsOfShapes(row.field->name())) continue;
    if (given->second->count() > 0) return row.flag;
  }
  for (const auto& [flag, option] : hardware_) {
    if (option->count() > 0) return flag;
  }
  return no_budget_ ? "--no-budget" : "";
}

void AddStoredProfileFlag(CLI::App* command, bool* without) {
  command
      ->add_flag("--no-stored-profile", *without,
                 "Ignores the profiles that spillway check --save-profile has stored beside the "
                 "graph.")
      ->group(kStepGroup);
}

}  // namespace spillway::cli
