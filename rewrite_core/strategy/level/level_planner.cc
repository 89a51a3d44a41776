#include "rewrite_core/strategy/level/level_planner.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "rewrite_core/base/polled_sort.h"

namespace spillway::core {
namespace {

constexpr char kLevelTriggersWhat[] = "triggers";
constexpr char kLevelTriggersRemedy[] = "give a larger swapout_threshold or filters";
// The search steps charged for a synchronization edge: it takes memory, in the plan and in the
// graph. An op with 100,000 inputs, half of which are swapped in, would have billions.
constexpr int64_t kStepsPerEdge = 16;

// The search steps charged for finding a gate, which examines thousands of slots, one number each.
constexpr int64_t kStepsPerGate = 256;

absl::Span<const int32_t> RanksOf(const LevelPacing* pacing) {
  return pacing == nullptr ? absl::Span<const int32_t>() : pacing->ranks();
}

// May do neither if stopped.
void SortUnique(std::vector<int32_t>* values, const StopToken& stop) {
  StopPoller poll(stop);
  if (!PolledSort(values->begin(), values->end(), std::less<>(), &poll)) return;
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

}  // namespace

LevelPlanner::LevelPlanner(const StepFacts& facts, const LevelFilters& filters,
                           const LevelOrder& levels, const LevelCandidates& candidates,
                           const WantedGpu& gpu, SearchBudget* budget, const LevelPacing* pacing)
    : soundness_(facts, RanksOf(pacing)),
      graph_(facts.graph()),
      filters_(filters),
      candidates_(candidates),
      budget_(budget),
      pacing_(pacing),
      gpu_(gpu.index),
      triggers_(facts, filters, levels, budget, RanksOf(pacing)) {
  for (const LevelCandidate& candidate : candidates.tensors()) {
    if (gpu.devices[graph_.device_id(candidate.tensor.node)]) tensors_.push_back(candidate);
  }
}

absl::StatusOr<std::vector<PlannedSwap>> LevelPlanner::Plan(const LevelSetting& setting) {
  if (distances_.empty()) {
    for (const LevelCandidate& candidate : tensors_) {
      for (const LateReader& reader : candidates_.readers(candidate)) {
        if (budget_->Spend()) return budget_->status(kLevelTriggersWhat, kLevelTriggersRemedy);
        distances_[{reader.position.node, reader.position.index}] = reader.level - candidate.level;
      }
    }
  }
  std::vector<PlannedSwap> swaps;
  for (const LevelCandidate& candidate : tensors_) {
    const absl::Span<const LateReader> readers =
        candidates_.ReadersBehind(candidate, setting.threshold);
    if (!readers.empty()) swaps.push_back(PlanSwap(candidate, readers, setting));
    if (budget_->Spend()) return budget_->status(kLevelTriggersWhat, kLevelTriggersRemedy);
  }
  return swaps;
}

std::vector<int32_t> LevelPlanner::Thresholds() const {
  // One below each distance that occurs: the largest of the thresholds that choose the same edges.
  std::vector<int32_t> values;
  for (const LevelCandidate& candidate : tensors_) {
    for (const LateReader& reader : candidates_.readers(candidate)) {
      values.push_back(reader.level - candidate.level - 1);
    }
  }
  SortUnique(&values, budget_->stop());
  return values;
}

std::vector<int32_t> LevelPlanner::Aheads() const {
  int32_t longest = 0;
  for (const LevelCandidate& candidate : tensors_) {
    longest = std::max(longest, candidates_.readers(candidate).back().level - candidate.level);
  }
  // A trigger is on a level between producer and consumer; the last value leaves none.
  std::vector<int32_t> values(std::max(longest - 1, 1));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

std::vector<int32_t> LevelPlanner::Groupbys() const {
  std::vector<int32_t> values = {0};
  for (const LevelCandidate& candidate : tensors_) {
    const absl::Span<const LateReader> readers = candidates_.readers(candidate);
    for (size_t i = 1; i < readers.size(); ++i) {
      if (readers[i].position.node == readers[i - 1].position.node) continue;
      values.push_back(std::max(readers[i].level - readers[i - 1].level, 1));
    }
  }
  SortUnique(&values, budget_->stop());
  return values;
}

PlannedSwap LevelPlanner::PlanSwap(const LevelCandidate& candidate,
                                   absl::Span<const LateReader> readers,
                                   const LevelSetting& setting) {
  PlannedSwap swap;
  swap.tensor = candidate.tensor;
  swap.dtype = candidate.dtype;
  swap.size_bytes = candidate.size_bytes;
  // Split where two neighbours are too far apart; with groupby 0, between any two consumers.
  for (size_t begin = 0, end; begin < readers.size(); begin = end) {
    const auto joins = [&](size_t i) {
      return setting.groupby == 0 ? readers[i].position.node == readers[i - 1].position.node
                                  : readers[i].level - readers[i - 1].level <= setting.groupby;
    };
    for (end = begin + 1; end < readers.size() && joins(end); ++end) {
    }
    swap.swap_ins.push_back(PlanSwapIn(candidate, readers.subspan(begin, end - begin), setting));
  }
  if (setting.syncs_swap_outs()) swap.deadlines = Waiting(candidate, setting.threshold);
  return swap;
}

PlannedSwapIn LevelPlanner::PlanSwapIn(const LevelCandidate& candidate,
                                       absl::Span<const LateReader> group,
                                       const LevelSetting& setting) {
  PlannedSwapIn swap_in = PlanUnpaced(candidate, group, setting);
  if (pacing_ == nullptr) return swap_in;
  pacing_->LeaveOutIdle(&swap_in);
  if (swap_in.triggers.empty() || budget_->Spend(kStepsPerGate)) return swap_in;
  swap_in.paces = pacing_->Gate(gpu_, candidate.tensor.node, swap_in);
  budget_->Spend(kStepsPerEdge * static_cast<int64_t>(swap_in.paces.size()) + 1);
  return swap_in;
}

PlannedSwapIn LevelPlanner::PlanUnpaced(const LevelCandidate& candidate,
                                        absl::Span<const LateReader> group,
                                        const LevelSetting& setting) {
  PlannedSwapIn swap_in;
  for (const LateReader& reader : group) swap_in.consumers.push_back(reader.position);
  if (!setting.syncs_swap_ins()) {
    const NodeId trigger = triggers_.Find(candidate.level, group, setting.ahead);
    if (trigger != kNoNode) {
      swap_in.triggers.push_back(trigger);
      return swap_in;
    }
  }
  const NodeId first = group.front().position.node;
  const bool is_alone = std::all_of(group.begin(), group.end(), [&](const LateReader& reader) {
    return reader.position.node == first;
  });
  if (is_alone) swap_in.triggers = SyncProducers(first, setting.threshold);
  return swap_in;
}

absl::InlinedVector<NodeId, 1> LevelPlanner::SyncProducers(NodeId consumer, int32_t threshold) {
  absl::InlinedVector<NodeId, 1> nodes;
  const absl::Span<const Tensor> inputs = graph_.inputs(consumer);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (budget_->Spend()) break;
    const NodeId node = inputs[i].node;
    if (!inputs[i].is_control() &&
        (filters_.IsOnCpu(node) || ReadsSwapIn({consumer, static_cast<int32_t>(i)}, threshold))) {
      continue;
    }
    if (!soundness_.MayWait(node, consumer)) continue;
    nodes.push_back(node);
    if (budget_->Spend(kStepsPerEdge)) break;
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::vector<NodeId> LevelPlanner::Waiting(const LevelCandidate& candidate, int32_t threshold) {
  std::vector<NodeId> nodes;
  const NodeId producer = candidate.tensor.node;
  const Graph::Readers readers = graph_.readers(producer);
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (budget_->Spend()) break;
    const auto [reader, index, port] = readers[i];
    if (port != kControl && (filters_.IsOnCpu(reader) || filters_.is_inactive(reader) ||
                             ReadsSwapIn({reader, index}, threshold))) {
      continue;
    }
    if (soundness_.WaitForSwapOut(producer, reader) != EdgeFault::kNone) continue;
    nodes.push_back(reader);
    if (budget_->Spend(kStepsPerEdge)) break;
  }
  StopPoller poll(budget_->stop());
  if (!PolledSort(nodes.begin(), nodes.end(), std::less<>(), &poll)) return nodes;
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool LevelPlanner::ReadsSwapIn(InputPosition position, int32_t threshold) const {
  const auto it = distances_.find(std::make_pair(position.node, position.index));
  return it != distances_.end() && it->second > threshold;
}

}  // namespace spillway::core
