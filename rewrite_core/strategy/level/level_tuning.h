// Auto-tuning of the strategy `level` for one GPU: of the settings that fit, the one with the least
// predicted step time.
//
// Settings are simulated; those whose plans are the same, once. If there are few enough, all are.
// Otherwise a search: for a coarse grid of the other parameters, as far as it helps, the largest
// threshold that fits (a larger one swaps less, so it is faster and takes more memory, nearly
// always), from that of the best so far on; then steps from the best in every direction for as long
// as that helps.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TUNING_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TUNING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// What is tuned: makes the swaps of a setting, and says which settings differ.
class TunedPlanner {
 public:
  virtual ~TunedPlanner() = default;
  // The values worth trying, ascending; thresholds above the last swap nothing.
  virtual std::vector<int32_t> Thresholds() const = 0;
  virtual std::vector<int32_t> Aheads() const = 0;
  virtual std::vector<int32_t> Groupbys() const = 0;
  virtual absl::StatusOr<std::vector<PlannedSwap>> Plan(const LevelSetting& setting) = 0;
};

struct TunedLevel {
  LevelSetting setting;  // Means nothing if no swapping is needed.
  std::vector<PlannedSwap> swaps;
  v1::LevelTuning report;
  v1::DeviceFit fit;
};

// At most this many plans are simulated for one GPU, whatever the graph.
inline constexpr int kMaxSimulations = 160;

// What a setting is, for the report.
void ReportSetting(const LevelSetting& setting, v1::LevelDevice* device);

// `wanted`: kAuto for what is to be tuned, sync_mode the least that is tried. `base`: the control
// edges and the CPU device that every plan has. `gpu`: an index into Placement::devices().
// `budget_bytes`: what that GPU may use; the hardware's budget, or less. REQUIRES: the facts
// kPlacement and kHardware. FAILED_PRECONDITION (DOES_NOT_FIT) if no setting fits, saying what does
// not and which budget would do.
absl::StatusOr<TunedLevel> TuneLevel(const LevelSetting& wanted, const SwapPlan& base, int32_t gpu,
                                     int64_t budget_bytes, const StepFacts& facts,
                                     TunedPlanner* planner, PlanSimulator* simulator,
                                     const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TUNING_H_
