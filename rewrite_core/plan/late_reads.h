// Late reads of tensors in host memory by nodes on a GPU: weights on a CPU, the input of a step.
// TensorFlow copies such a tensor to the GPU as soon as it is made, and keeps the copy there for
// all readers. A swap-in, an Identity on the host, makes a copy of its own for some of them, later;
// the swap-out costs nothing.
//
// A late copy of a variable must not see an update. Values read from resources are safe: an update
// leaves them alone (clone_rules.cc). Of a reference variable, each update has to wait for the late
// reader: some do anyway, since its outputs lead to them; the others need a *guard*, an order edge
// from the reader to the update.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_LATE_READS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_LATE_READS_H_

#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// A late reader of a variable, and an update that it has to come before.
struct LateRead {
  NodeId update, reader;
  friend bool operator<(const LateRead& a, const LateRead& b) {
    return std::tie(a.update, a.reader) < std::tie(b.update, b.reader);
  }
  friend bool operator==(const LateRead& a, const LateRead& b) {
    return a.update == b.update && a.reader == b.reader;
  }
};

// Returns those whose reader does not lead to the update, sorted, each once: they need a guard.
// Errors: those of `stop`. REQUIRES: the fact kTopology.
absl::StatusOr<std::vector<LateRead>> FindUnguarded(const StepFacts& facts,
                                                    std::vector<LateRead> reads,
                                                    const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_LATE_READS_H_
