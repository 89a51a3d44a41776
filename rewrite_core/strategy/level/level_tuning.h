// Auto-tuning of the strategy `level` for one GPU: finds the setting that fits and has the shortest
// simulated step time.
//
// Settings are simulated; those with the same plan, once. If there are few enough, all are.
// Otherwise there is a search: for a coarse grid of the other parameters, as long as it helps, the
// largest threshold that fits (a larger one swaps less, so it is nearly always faster and takes
// more memory), starting at that of the best so far; then steps from the best in every direction as
// long as that helps.
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

// The planner that is tuned: plans the swaps of a setting, and lists the values worth trying.
class TunedPlanner {
 public:
  virtual ~TunedPlanner() = default;
  // Returns the values worth trying, ascending; thresholds above the last swap nothing.
  virtual std::vector<int32_t> Thresholds() const = 0;
  virtual std::vector<int32_t> Aheads() const = 0;
  virtual std::vector<int32_t> Groupbys() const = 0;
  virtual absl::StatusOr<std::vector<PlannedSwap>> Plan(const LevelSetting& setting) = 0;
};

struct TunedLevel {
  LevelSetting setting;  // Meaningless if no swapping is needed.
  std::vector<PlannedSwap> swaps;
  v1::LevelTuning report;
  v1::DeviceFit fit;
};

// At most this many plans are simulated for one GPU of any graph. More found no faster plan, half
// as many lost up to 1.5 % (tests/benchmarks/README.md, "Constants of the tuner").
inline constexpr int kMaxSimulations = 160;

// Writes the setting to the report.
void ReportSetting(const LevelSetting& setting, v1::LevelDevice* device);

// `wanted`: kAuto for values to tune; sync_mode is the lowest that is tried. `base`: the control
// edges and the CPU device that every plan has. `budget_bytes`: the budget of `gpu`; the
// hardware's, or less. REQUIRES: the facts kPlacement and kHardware. FAILED_PRECONDITION
// (DOES_NOT_FIT) if no setting fits, naming the failed allocation and a sufficient budget.
absl::StatusOr<TunedLevel> TuneLevel(const LevelSetting& wanted, const SwapPlan& base, GpuIndex gpu,
                                     int64_t budget_bytes, const StepFacts& facts,
                                     TunedPlanner* planner, PlanSimulator* simulator,
                                     const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TUNING_H_
