// From a graph, and perhaps a plan for it, to the Workload that the simulator runs: what
// TensorFlow's partitions of the graph would do in one step.
//
// - Each node that runs is one operation: kCompute on its GPU, or kHost.
// - A tensor that is read in another memory than its own is copied there once for all who read it
//   there (a _Send/_Recv pair); between GPUs through host memory, out and in. What is small is
//   copied too: a copy has a latency. Handles and what already lies in host memory are not copied.
// - Control edges are waits, across devices too, without a copy.
// - A plan's swap nodes are there as if they were in the graph: the workload of a graph with a plan
//   is that of the graph into which the plan was written, up to numbering.
// - What is dead for a conditional (conditionals.h) is not there: a Merge waits for its live
// inputs,
//   and for what runs of those that the dead ones hang on (NodeLinker::WaitBeyond). Of what no
//   conditional decides, both sides run.
// - The back edge of a loop is cut: each body is one iteration, of operations that last as long as
//   all iterations together (analysis/loops.h says how many), so that what they make is there as in
//   one. What a loop keeps in lists is there from its first writer on, for all iterations. What
//   follows a loop waits for the end of its body. Of loops whose count is unknown it is 1.
// - Variables are resident on their GPU whether their nodes run or not; constants if they run.
// - A buffer of unknown size counts as 0 bytes, and is counted.
// - Of the host's buffers only those that are copied are kept.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/analysis/unknown_memory.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// What a forecast from the workload has to warn of.
struct WorkloadNotes {
  int32_t unknown_buffers = 0;  // Buffers on GPUs whose size is unknown.
  int32_t unknown_costs = 0;    // Nodes that launch a kernel of unknown cost.
  int32_t loops = 0;            // Back edges that were cut of loops whose count is unknown.
  int32_t merges = 0;           // Merges of conditionals of which both sides run.
  UnknownMemory unknown;        // What of that keeps it from being known whether the step fits.
};

// REQUIRES: the facts kCosts and kActiveNodes. `plan` and `notes` may be null. The plan must be one
// that the graph stays acyclic with, and that makes nothing dead that was not. Errors: those of
// `stop`.
absl::StatusOr<Workload> BuildWorkload(const StepFacts& facts, const SwapPlan* plan,
                                       WorkloadNotes* notes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_
