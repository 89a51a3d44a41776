// What a strategy asks a simulator: one plan, on some terms, one result. StepSimulator
// (step_simulator.h) answers; tests of strategies answer with fakes.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/unknown_memory.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/ready_order.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// How a run may differ from the one that is simulated first, which the machine is as free to make:
// see SimulationOptions, of the same names.
struct StepVariation {
  ReadyOrder ready_order = ReadyOrder::kFirstReady;
  uint32_t seed = 0;  // Of kMixed.
  int32_t copy_percent = 100;
  uint32_t initializer_seed = 0;

  bool is_none() const {
    return ready_order == ReadyOrder::kFirstReady && copy_percent == 100 && initializer_seed == 0;
  }
};

// What to simulate a plan with. As it is made: unlimited memory, both modes.
struct StepTerms {
  enum class Budgets : uint8_t {
    kNone,     // Unlimited memory, on the host too.
    kOneGpu,   // `gpu` has `budget_bytes` and its share of the host's memory; the others, no limit.
    kAllGpus,  // Each GPU has its own of `gpu_budgets`; the host's memory is the hardware's.
  };
  static StepTerms OneGpu(int32_t gpu, int64_t budget_bytes) {
    StepTerms terms;
    terms.budgets = Budgets::kOneGpu;
    terms.gpu = gpu;
    terms.budget_bytes = budget_bytes;
    return terms;
  }
  // By GPU (Placement::devices()).
  static StepTerms AllGpus(std::vector<int64_t> gpu_budgets) {
    StepTerms terms;
    terms.budgets = Budgets::kAllGpus;
    terms.gpu_budgets = std::move(gpu_budgets);
    return terms;
  }
  static StepTerms AllGpus(int64_t budget_bytes) {
    StepTerms terms = AllGpus(std::vector<int64_t>());
    terms.budget_bytes = budget_bytes;
    return terms;
  }

  Budgets budgets = Budgets::kNone;
  int32_t gpu = 0;                    // An index into Placement::devices().
  int64_t budget_bytes = kUnlimited;  // kUnlimited: only the host's memory is limited.
  std::vector<int64_t> gpu_budgets;   // Of kAllGpus; empty: each GPU has budget_bytes.
  // Whether memory is placed (simulator.h) where the sum of bytes suffices. A step that takes at
  // most a quarter of the budgets is taken to find its places.
  bool place = true;
  // Memory is placed at once, however small the step is, and never counted: for searches, which so
  // simulate a plan but once or twice. Whoever does not fit may then not do so by the sum of bytes
  // either. `place` is not looked at; the cutoff is one for what is placed.
  bool placed_alone = false;
  StepVariation variation;
  // A plan that takes longer than this, launched ahead, is not simulated synchronously, nor placed.
  int64_t cutoff_ns = kUnlimited;
  // The synchronous step is simulated even where launching ahead does not fit.
  bool always_synchronous = false;
  // Fill in StepResult::unlimited where the step does not fit.
  bool unlimited_if_unfit = false;
  // What to record, in both modes. The order of operations, and when each of them began and ended;
  bool record_operations = false;
  // and the memory in use over time, with what is there at the peak.
  bool record_memory = false;
  // Where memory is placed and the step does not fit: fill in StepResult::pieces, piece_bytes.
  bool record_pieces = false;
};

struct StepResult {
  // Launched ahead and synchronously.
  bool fits = false;
  // Launched ahead it fits, but is slower than the cutoff: the rest was not simulated.
  bool is_partial = false;
  // Its memory was placed; otherwise it was only counted.
  bool is_placed = false;
  // Nobody waited for memory: with unlimited memory it would be the same.
  bool is_unlimited = false;

  // What of the step is not known, and not in these figures. The simulator's; null: nothing.
  const UnknownMemory* unknown = nullptr;

  SimulationResult launch_ahead;
  SimulationResult synchronous;  // Without devices where it was not simulated.
  bool has_synchronous = false;
  // What it takes with unlimited memory, if that was asked for and it does not fit.
  absl::optional<BothModes> unlimited;

  // If it does not fit: of the two modes the first that does not.
  const OutOfMemory* failure() const {
    if (!launch_ahead.fits()) return &*launch_ahead.out_of_memory;
    return has_synchronous && !synchronous.fits() ? &*synchronous.out_of_memory : nullptr;
  }
  // Of a step that ended; 0 of one that did not, or was not simulated.
  int64_t step_time_ns() const { return launch_ahead.fits() ? launch_ahead.step_time_ns : 0; }
  int64_t synchronous_step_time_ns() const {
    return has_synchronous && synchronous.fits() ? synchronous.step_time_ns : 0;
  }
  // If asked for: what lies where on the GPU on which the step ran out, by address: the parts that
  // are free (no node), and those that have a buffer which is not resident, by a tensor of it.
  struct Piece {
    int64_t address = 0;
    int64_t bytes = 0;
    Tensor tensor{kNoNode, 0};
  };
  std::vector<Piece> pieces;
  int64_t piece_bytes = 0;  // The piece that could not be placed.

  // In the worse of the two modes.
  int64_t peak_bytes(int32_t gpu) const {
    if (launch_ahead.devices.empty()) return 0;
    const int64_t ahead = launch_ahead.devices[gpu].peak_bytes;
    return has_synchronous ? std::max(ahead, synchronous.devices[gpu].peak_bytes) : ahead;
  }
  int64_t resident_bytes(int32_t gpu) const {
    return launch_ahead.devices.empty() ? 0 : launch_ahead.devices[gpu].resident_bytes;
  }

  // What the ids of operations and buffers in the results stand for (workload.h: node, tensor,
  // swap, swap_in), if anything was recorded.
  std::vector<WorkloadOp> ops;
  std::vector<WorkloadBuffer> buffers;
};

class PlanSimulator {
 public:
  virtual ~PlanSimulator() = default;

  // The step with `plan`, which the graph must stay acyclic with. Errors: those of simulator.h.
  virtual absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                              const StopToken& stop) = 0;
  // Of the step as the graph is, by GPU, at the hardware's budgets, if its compute operations ran
  // in `order` (lower_bounds.h): ids of the workload of that step, which are those of the results
  // of the empty plan. Empty: in the order in which they are launched with unlimited memory.
  virtual absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<OpId>& order,
                                                                const StopToken& stop) = 0;
};

// The need of `plan`: the smallest budget known, from `from_bytes` on (the peak with memory without
// end), with which it runs, placed; 0 if none is found up to four times that. `terms` say whose
// budget; their budget_bytes is not looked at.
absl::StatusOr<int64_t> FindNeed(PlanSimulator* simulator, const SwapPlan& plan, StepTerms terms,
                                 int64_t from_bytes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_
