// Which nodes on a GPU may read a tensor in host memory late, through a swap-in
// (plan/late_reads.h).
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HOST_READS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HOST_READS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// Whether placeholders count. Their feeds are a small part of the memory, but read first and last:
// if a plan is found without them, plans with them are hardly faster, for half more of search.
enum class FedInputs { kStay, kMayComeLate };

class HostReads {
 public:
  // For the GPU of `order`. Guards go along `ranks`, like all edges of plans. Errors: those of
  // `stop`.
  static absl::StatusOr<HostReads> Find(const StepFacts& facts, const Eligibility& eligibility,
                                        const Needs& needs, const StepOrder& order,
                                        absl::Span<const int32_t> ranks, FedInputs inputs,
                                        const StopToken& stop);

  bool MayReadLate(Tensor tensor, NodeId reader) const {
    return guarded_.contains({tensor.node, tensor.port, reader});
  }
  // Returns the guards that a plan with these swaps needs, each once; none once `stop` has fired.
  std::vector<ControlEdge> GuardsOf(const std::vector<PlannedSwap>& swaps,
                                    const StopToken& stop = StopToken()) const;

 private:
  using Read = std::tuple<NodeId, int32_t, NodeId>;  // Of a tensor, by a node.

  // By read that may come late: the updates that get a guard.
  absl::flat_hash_map<Read, std::vector<NodeId>> guarded_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HOST_READS_H_
