// Names of strategies and stages for people and metrics: `level`, `parse`. They are the enum names
// in report.proto in lower case, without the prefix, so no other list exists.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_NAMES_H_
#define SPILLWAY_REWRITE_CORE_BASE_NAMES_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::core {

// `level`, `scope`, ...; empty for a value that this build does not know.
std::string StrategyName(v1::Strategy strategy);

// `parse`, `analysis`, ...; empty for a value that this build does not know.
std::string StageName(v1::Stage stage);
// `low`; empty for a value that this build does not know.
std::string PlanningEffortName(v1::PlanningEffort effort);
std::string PlanningObjectiveName(v1::PlanningObjective objective);
std::string RecomputeName(v1::Recompute recompute);
std::string OffloadName(v1::Offload offload);
std::string StateKeptName(v1::StateKept kept);

// All except the unspecified one, by number: strategies in the order of their fields, stages in the
// order run.
std::vector<v1::Strategy> AllStrategies();
std::vector<v1::Stage> AllStages();

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_NAMES_H_
