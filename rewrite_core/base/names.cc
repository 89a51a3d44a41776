#include "rewrite_core/base/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace spillway::core {
namespace {

std::string WithoutPrefix(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

template <typename Enum>
std::vector<Enum> AllValues(const google::protobuf::EnumDescriptor& descriptor) {
  std::vector<Enum> values;
  for (int i = 0; i < descriptor.value_count(); ++i) {
    if (descriptor.value(i)->number() == 0) continue;
    values.push_back(static_cast<Enum>(descriptor.value(i)->number()));
  }
  return values;
}

}  // namespace

std::string StrategyName(v1::Strategy strategy) {
  return WithoutPrefix(v1::Strategy_Name(strategy), "STRATEGY_");
}

std::string StageName(v1::Stage stage) { return WithoutPrefix(v1::Stage_Name(stage), "STAGE_"); }

std::string PlanningEffortName(v1::PlanningEffort effort) {
  return WithoutPrefix(v1::PlanningEffort_Name(effort), "PLANNING_EFFORT_");
}

std::string PlanningObjectiveName(v1::PlanningObjective objective) {
  return WithoutPrefix(v1::PlanningObjective_Name(objective), "PLANNING_OBJECTIVE_");
}

std::string RecomputeName(v1::Recompute recompute) {
  return WithoutPrefix(v1::Recompute_Name(recompute), "RECOMPUTE_");
}

std::string OffloadName(v1::Offload offload) {
  return WithoutPrefix(v1::Offload_Name(offload), "OFFLOAD_");
}

std::string StateKeptName(v1::StateKept kept) {
  return WithoutPrefix(v1::StateKept_Name(kept), "STATE_KEPT_");
}

std::vector<v1::Strategy> AllStrategies() {
  return AllValues<v1::Strategy>(*v1::Strategy_descriptor());
}

std::vector<v1::Stage> AllStages() { return AllValues<v1::Stage>(*v1::Stage_descriptor()); }

}  // namespace spillway::core
