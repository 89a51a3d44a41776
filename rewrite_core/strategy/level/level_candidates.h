// The tensors that the strategy `level` may swap, with the readers that may read a swap-in, for all
// settings together. Found once; every setting then chooses among them.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_CANDIDATES_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_CANDIDATES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"

namespace spillway::core {

// A reader with its level.
struct LateReader {
  InputPosition position;
  int32_t level;
};

struct LevelCandidate {
  Tensor tensor;
  DataType dtype;
  int64_t size_bytes;   // Or kUnknownSize.
  int32_t level;        // The producer's.
  uint32_t begin, end;  // The range of its readers.
};

class LevelCandidates {
 public:
  // Finds readers at a distance above `least_threshold`. With `explain`, records decisions. Errors:
  // those of `stop`.
  static absl::StatusOr<LevelCandidates> Find(const StepFacts& facts,
                                              const Eligibility& eligibility,
                                              const LevelFilters& filters, const LevelOrder& levels,
                                              int32_t least_threshold, bool explain,
                                              const StopToken& stop);

  // By producer, then port.
  absl::Span<const LevelCandidate> tensors() const { return tensors_; }
  // Its readers by level, then node, then input.
  absl::Span<const LateReader> readers(const LevelCandidate& candidate) const {
    return absl::MakeSpan(readers_).subspan(candidate.begin, candidate.end - candidate.begin);
  }
  // The readers more than `threshold` levels after it.
  absl::Span<const LateReader> ReadersBehind(const LevelCandidate& candidate,
                                             int32_t threshold) const;
  // The verdict on every tensor that is read; SWAPPED for the candidates.
  const std::vector<TensorDecision>& decisions() const { return decisions_; }

 private:
  std::vector<LevelCandidate> tensors_;
  std::vector<LateReader> readers_;
  std::vector<TensorDecision> decisions_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_CANDIDATES_H_
