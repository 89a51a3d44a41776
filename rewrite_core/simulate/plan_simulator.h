// The simulator as strategies see it: a plan and terms in, a result out. StepSimulator
// (step_simulator.h) implements it; tests of strategies use fakes.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/memory/unknown_memory.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/ready_order.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// How a run may differ from the one simulated first, on a machine that is free to run either. The
// fields are those of SimulationOptions.
struct StepVariation {
  ReadyOrder ready_order = ReadyOrder::kFirstReady;
  uint32_t seed = 0;  // ready_seed.
  int32_t copy_percent = 100;
  int32_t spread_percent = 100;
  int64_t late_ns = 0;
  uint32_t initializer_seed = 0;
  uint32_t file_seed = 0;

  bool is_none() const {
    return ready_order == ReadyOrder::kFirstReady && copy_percent == 100 && spread_percent == 100 &&
           late_ns == 0 && initializer_seed == 0 && file_seed == 0;
  }
};

// How to simulate a plan. Default: unlimited memory, both modes.
struct StepTerms {
  enum class Budgets : uint8_t {
    kNone,     // Unlimited memory, on the host too.
    kOneGpu,   // `gpu` has `budget_bytes` and its share of the host's memory; the others, no limit.
    kAllGpus,  // Each GPU has its own of `gpu_budgets`; the host's memory is the hardware's.
  };
  static StepTerms OneGpu(GpuIndex gpu, int64_t budget_bytes) {
    StepTerms terms;
    terms.budgets = Budgets::kOneGpu;
    terms.gpu = gpu;
    terms.budget_bytes = budget_bytes;
    return terms;
  }
  // By GpuIndex.
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
  GpuIndex gpu{0};                    // Of kOneGpu.
  int64_t budget_bytes = kUnlimited;  // kUnlimited: only the host's memory is limited.
  std::vector<int64_t> gpu_budgets;   // For kAllGpus; empty: each GPU has budget_bytes.
  // Whether memory is placed (simulator.h) if the sum of bytes fits. A step that takes at most a
  // quarter of the budgets is assumed to be placeable.
  bool place = true;
  // Place memory at once, however small the step, and never only count it: for searches, which
  // then simulate a plan only once or twice. A plan that does not fit may not fit by the sum of
  // bytes either. Ignores `place`; the cutoff applies to the placed run.
  bool placed_alone = false;
  StepVariation variation;
  // A plan that takes longer than this, launched ahead, is neither simulated synchronously nor
  // placed.
  int64_t cutoff_ns = kUnlimited;
  // Simulate the synchronous step even if launching ahead does not fit.
  bool always_synchronous = false;
  // Fill in StepResult::unlimited if the step does not fit.
  bool unlimited_if_unfit = false;
  // Record, in both modes, the order of operations, with the start and end of each;
  bool record_operations = false;
  // and the memory in use over time, with the live buffers at the peak.
  bool record_memory = false;
  // Fill in DeviceUse::slowed_ns, for WorkspaceLimits (analysis/cost.h).
  bool count_slowed = false;
  // Fill in StepResult::pieces and piece_bytes if memory is placed and the step does not fit.
  bool record_pieces = false;
};

struct StepResult {
  // Launched ahead and synchronously.
  bool fits = false;
  // It is slower than the cutoff when launched ahead: the rest was not simulated. With placed_alone
  // it may not fit either, since the run is given up once it is known to be slower.
  bool is_partial = false;
  // Its memory was placed, not only counted.
  bool is_placed = false;
  // No allocation waited: with unlimited memory the run would be the same.
  bool is_unlimited = false;

  // The unknown memory of the step, which these figures leave out. Owned by the simulator; null:
  // none.
  const UnknownMemory* unknown = nullptr;

  SimulationResult launch_ahead;
  SimulationResult synchronous;  // Without devices if it was not simulated.
  bool has_synchronous = false;
  // The run with unlimited memory, if requested and the step does not fit.
  absl::optional<BothModes> unlimited;

  // If it does not fit: the failure of the first mode that does not.
  const OutOfMemory* failure() const {
    if (!launch_ahead.fits()) return &*launch_ahead.out_of_memory;
    return has_synchronous && !synchronous.fits() ? &*synchronous.out_of_memory : nullptr;
  }
  // 0 if the step did not end, or was not simulated.
  int64_t step_time_ns() const { return launch_ahead.fits() ? launch_ahead.step_time_ns : 0; }
  int64_t synchronous_step_time_ns() const {
    return has_synchronous && synchronous.fits() ? synchronous.step_time_ns : 0;
  }
  // On request: the memory map of the GPU that ran out, by address: free pieces (no node), and
  // buffers that are not resident, each by one of its tensors.
  struct Piece {
    int64_t address = 0;
    int64_t bytes = 0;
    Tensor tensor{kNoNode, 0};
  };
  std::vector<Piece> pieces;
  int64_t piece_bytes = 0;  // The piece that could not be placed.

  // In the worse of the two modes.
  int64_t peak_bytes(GpuIndex gpu) const {
    if (launch_ahead.devices.empty()) return 0;
    const int64_t ahead = launch_ahead.devices[gpu].peak_bytes;
    return has_synchronous ? std::max(ahead, synchronous.devices[gpu].peak_bytes) : ahead;
  }
  int64_t resident_bytes(GpuIndex gpu) const {
    return launch_ahead.devices.empty() ? 0 : launch_ahead.devices[gpu].resident_bytes;
  }

  // The operations and buffers behind the ids in the results (workload.h: node, tensor, swap,
  // swap_in), if anything was recorded.
  std::vector<WorkloadOp> ops;
  std::vector<WorkloadBuffer> buffers;
};

class PlanSimulator {
 public:
  virtual ~PlanSimulator() = default;

  // The step with `plan`. REQUIRES: the graph with the plan is acyclic. Errors: those of
  // simulator.h.
  virtual absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                              const StopToken& stop) = 0;
  // Lower bounds of the unswapped step, by GPU, at the hardware's budgets, if the kernels of its
  // nodes run in `order` (lower_bounds.h; LaunchOrder). Empty: the order in which they are launched
  // with unlimited memory. `may_run_again`: by node; empty: none.
  virtual absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(
      const std::vector<NodeId>& order, const std::vector<bool>& may_run_again,
      const StopToken& stop) = 0;
};

// The nodes in the order in which their operations are launched ahead. REQUIRES: operations were
// recorded.
std::vector<NodeId> LaunchOrder(const StepResult& step);

// The need of `plan`: the smallest budget known, from `from_bytes` (the peak with unlimited memory)
// up, with which it runs, placed; 0 if none is found up to four times that. `terms` determine which
// GPUs have the budget; their budget_bytes is ignored.
absl::StatusOr<int64_t> FindNeed(PlanSimulator* simulator, const SwapPlan& plan, StepTerms terms,
                                 int64_t from_bytes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_SIMULATOR_H_
