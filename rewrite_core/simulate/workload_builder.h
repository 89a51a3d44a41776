// Builds the Workload that the simulator runs from a graph and, optionally, a plan for it: the work
// of TensorFlow's partitions of the graph in one step.
//
// - Each node that runs is one operation: kCompute on its GPU, or kHost.
// - A tensor that is read in another memory than its own is copied there once for all its readers
//   there (a _Send/_Recv pair); between GPUs it goes through host memory, out and in. Small tensors
//   are copied too: a copy has a latency. Handles and tensors that already are in host memory are
//   not copied.
// - Control edges are waits, across devices too, without a copy.
// - A plan's swap nodes are treated as nodes of the graph: the workload of a graph with a plan is,
//   up to numbering, that of the graph into which the plan was written.
// - Nodes that a conditional (conditionals.h) makes dead are left out: a Merge waits for its live
//   inputs, and for those nodes behind its dead inputs that do run (NodeLinker::WaitBeyond). If
//   nothing decides which side is taken, both run.
// - The back edge of a loop is cut: each body runs as one iteration, whose operations last as long
//   as all iterations together (analysis/flow/loops.h says how many), while their outputs take the
//   memory of one. Tensors in a loop's lists are live from their first writer on, for all
//   iterations. The nodes after a loop wait for the end of its body. An unknown number of
//   iterations counts as 1.
// - Variables are resident on their GPU whether their nodes run or not; constants if they run.
// - A buffer of unknown size counts as 0 bytes, and in unknown_buffers.
// - Host buffers are kept only if they are copied.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/memory/unknown_memory.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// The warnings for forecasts from the workload.
struct WorkloadNotes {
  int32_t unknown_buffers = 0;  // Buffers on GPUs whose size is unknown.
  int32_t unknown_costs = 0;    // Nodes that launch a kernel of unknown cost.
  int32_t loops = 0;            // Back edges cut in loops with an unknown number of iterations.
  int32_t merges = 0;           // Merges of conditionals whose sides both run.
  UnknownMemory unknown;        // The part of it that leaves open whether the step fits.
};

// REQUIRES: the facts kCosts and kActiveNodes. `plan` and `notes` may be null. The graph with the
// plan must be acyclic, and the plan must not make any node dead that was not. Errors: those of
// `stop`.
absl::StatusOr<Workload> BuildWorkload(const StepFacts& facts, const SwapPlan* plan,
                                       WorkloadNotes* notes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_BUILDER_H_
