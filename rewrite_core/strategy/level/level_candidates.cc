#include "rewrite_core/strategy/level/level_candidates.h"

#include <algorithm>
#include <tuple>

#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/plan/readers.h"

namespace spillway::core {
namespace {

// Tensors of lower rank are not swapped: biases, statistics, counters.
constexpr size_t kMinRank = 2;

class Finder {
 public:
  Finder(const StepFacts& facts, const Eligibility& eligibility, const LevelFilters& filters,
         const LevelOrder& levels, int32_t least_threshold)
      : facts_(facts),
        graph_(facts.graph()),
        readers_(facts, eligibility),
        filters_(filters),
        levels_(levels),
        least_threshold_(least_threshold) {}

  // Decides on the tensor whose readers are those from `begin` to `end`, and leaves the readers
  // that may read a swap-in in `readers()`. Decides anything if stopped.
  v1::Reason ReasonFor(Tensor tensor, const Graph::Readers& readers, uint32_t begin, uint32_t end,
                       StopPoller* poll) {
    late_.clear();
    if (filters_.producer(tensor.node) != v1::REASON_SWAPPED) {
      return filters_.producer(tensor.node);
    }
    const int32_t level = levels_.level(tensor.node);
    if (level == kNoLevel) return v1::REASON_NO_ORDER;
    for (uint32_t i = begin; i < end; ++i) {
      if (poll->Tick()) return v1::REASON_NO_LATE_CONSUMER;
      const auto [reader, index, port] = readers[i];
      if (levels_.level(reader) - level <= least_threshold_ || !filters_.MayConsume(reader)) {
        continue;
      }
      if (!readers_.Runs(reader)) continue;
      late_.push_back({{reader, index}, levels_.level(reader)});
    }
    if (late_.empty()) return v1::REASON_NO_LATE_CONSUMER;
    const ShapeView shape = facts_.shapes().shape(tensor);
    if (!shape.known_rank || shape.dims.size() < kMinRank) return v1::REASON_LOW_RANK;
    const v1::Reason verdict = readers_.Keep(
        tensor, &late_, [](const LateReader& reader) { return reader.position.node; });
    if (verdict != v1::REASON_SWAPPED) return verdict;
    const auto less = [](const LateReader& a, const LateReader& b) {
      return std::tie(a.level, a.position.node, a.position.index) <
             std::tie(b.level, b.position.node, b.position.index);
    };
    return PolledSort(late_.begin(), late_.end(), less, poll) ? verdict
                                                              : v1::REASON_NO_LATE_CONSUMER;
  }

  const std::vector<LateReader>& readers() const { return late_; }

 private:
  const StepFacts& facts_;
  const Graph& graph_;
  const SwapInReaders readers_;
  const LevelFilters& filters_;
  const LevelOrder& levels_;
  const int32_t least_threshold_;
  std::vector<LateReader> late_;
};

}  // namespace

absl::StatusOr<LevelCandidates> LevelCandidates::Find(
    const StepFacts& facts, const Eligibility& eligibility, const LevelFilters& filters,
    const LevelOrder& levels, int32_t least_threshold, v1::DecisionDetail detail,
    const StopToken& stop) {
  const bool explain = detail != v1::DECISION_DETAIL_NONE;
  const Graph& graph = facts.graph();
  LevelCandidates result;
  Finder finder(facts, eligibility, filters, levels, least_threshold);
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strategy");
    if (!explain && filters.producer(id) != v1::REASON_SWAPPED) continue;
    // In order of ports, control edges first.
    const Graph::Readers readers = graph.readers(id);
    uint32_t end = 0;
    while (end < readers.size() && readers[end].port == kControl) ++end;
    while (end < readers.size()) {
      const uint32_t begin = end;
      const Tensor tensor{id, readers[begin].port};
      for (; end < readers.size() && readers[end].port == tensor.port; ++end) {
        if (poll.Tick()) return stop.status("strategy");
      }
      const v1::Reason reason = finder.ReasonFor(tensor, readers, begin, end, &poll);
      const int64_t size_bytes = facts.shapes().size_bytes(tensor);
      if (explain) {
        result.decisions_.push_back(
            {tensor, reason, size_bytes, facts.shapes().why_unknown(tensor)});
      }
      if (reason != v1::REASON_SWAPPED) continue;
      const uint32_t first = static_cast<uint32_t>(result.readers_.size());
      result.readers_.insert(result.readers_.end(), finder.readers().begin(),
                             finder.readers().end());
      result.tensors_.push_back({tensor, facts.shapes().type(tensor).dtype, size_bytes,
                                 levels.level(id), first,
                                 static_cast<uint32_t>(result.readers_.size())});
    }
  }
  if (absl::Status s = stop.status("strategy"); !s.ok()) return s;
  return result;
}

absl::Span<const LateReader> LevelCandidates::ReadersBehind(const LevelCandidate& candidate,
                                                            int32_t threshold) const {
  const absl::Span<const LateReader> all = readers(candidate);
  const auto first = std::partition_point(all.begin(), all.end(), [&](const LateReader& reader) {
    return reader.level - candidate.level <= threshold;
  });
  return all.subspan(first - all.begin());
}

}  // namespace spillway::core
