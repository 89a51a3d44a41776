#include "rewrite_core/strategy/level/level_pacing.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/memory/memory.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/strategy/budget/order_edges.h"
#include "rewrite_core/strategy/budget/pace_gate.h"

namespace spillway::core {
namespace {

// A gate stands so many slots behind its trigger, as in the first plans of the strategy budget.
constexpr Slot kSlotsBehindTrigger = 1;

absl::StatusOr<StepResult> SimulateFreely(const SwapPlan& plan, PlanSimulator* simulator,
                                          const StopToken& stop) {
  StepTerms terms;
  terms.record_operations = true;
  return simulator->Simulate(plan, terms, stop);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LevelPacing>> LevelPacing::Create(
    const StepFacts& facts, const SwapPlan& base, const std::vector<int32_t>& gpus, bool serializes,
    PlanSimulator* simulator, const StopToken& stop) {
  auto needs = Needs::Find(facts.graph(), facts.topology(), stop);
  if (!needs.ok()) return needs.status();
  auto pacing = absl::WrapUnique(new LevelPacing(facts, *std::move(needs)));
  auto unswapped = SimulateFreely(base, simulator, stop);
  if (!unswapped.ok()) return unswapped.status();
  pacing->unswapped_ = *std::move(unswapped);
  SwapPlan ordered = base;
  StepResult step = pacing->unswapped_;
  if (!serializes) {
    absl::Status s = pacing->FindOrderEdgesOf(base, gpus, simulator, stop);
    if (!s.ok()) return s;
  }
  if (!pacing->order_edges_.empty()) {
    ordered.controls.insert(ordered.controls.end(), pacing->order_edges_.begin(),
                            pacing->order_edges_.end());
    auto simulated = SimulateFreely(ordered, simulator, stop);
    if (!simulated.ok()) return simulated.status();
    const auto peak = [&gpus](const StepResult& result) {
      int64_t bytes = 0;
      for (int32_t gpu : gpus) bytes += result.peak_bytes(gpu);
      return bytes;
    };
    absl::Status s = pacing->Rank(*simulated, pacing->order_edges_, stop);
    if (!s.ok()) return s;
    if (!pacing->ranks_.empty() && peak(*simulated) < peak(pacing->unswapped_)) {
      step = *std::move(simulated);
    } else {
      pacing->order_edges_.clear();
    }
  }
  if (!serializes && pacing->order_edges_.empty()) {
    if (absl::Status s = pacing->Rank(step, {}, stop); !s.ok()) return s;
  }
  for (int32_t gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu, step, stop);
    if (!order.ok()) return order.status();
    pacing->orders_.emplace(gpu, *std::move(order));
  }
  pacing->soundness_ = std::make_unique<Soundness>(facts, pacing->ranks_);
  return pacing;
}

absl::Status LevelPacing::FindOrderEdgesOf(const SwapPlan& base, const std::vector<int32_t>& gpus,
                                           PlanSimulator* simulator, const StopToken& stop) {
  for (int32_t gpu : gpus) {
    auto order = StepOrder::Create(facts_, gpu, unswapped_, stop);
    if (!order.ok()) return order.status();
    auto edges = FindOrderEdges(facts_, *order, stop);
    if (!edges.ok()) return edges.status();
    order_edges_.insert(order_edges_.end(), edges->begin(), edges->end());
  }
  return absl::OkStatus();
}

// What waits for nothing comes first; of kernels, the one that is launched first.
absl::Status LevelPacing::Rank(const StepResult& step, absl::Span<const ControlEdge> added,
                               const StopToken& stop) {
  const Graph& graph = facts_.graph();
  const NodeId n = graph.num_nodes();
  StopPoller poll(stop);
  std::vector<int32_t> launched(n, -1);
  for (size_t i = 0; i < step.launch_ahead.order.size(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& op = step.ops[step.launch_ahead.order[i]];
    if (op.kind == OpKind::kCompute) launched[op.node] = static_cast<int32_t>(i);
  }
  std::vector<ControlEdge> sorted(added.begin(), added.end());
  const auto from_less = [](const ControlEdge& a, const ControlEdge& b) { return a.from < b.from; };
  std::stable_sort(sorted.begin(), sorted.end(), from_less);
  std::vector<int32_t> waiting(n, 0);
  for (const ControlEdge& edge : sorted) ++waiting[edge.to];
  using Ready = std::pair<int32_t, NodeId>;  // By launch, then id.
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (NodeId id = 0; id < n; ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      waiting[id] += !IsBackEdge(graph, input.node, id);
    }
    if (waiting[id] == 0) ready.emplace(launched[id], id);
  }
  ranks_.assign(n, 0);
  int32_t rank = 0;
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    ranks_[id] = rank++;
    const auto done = [&](NodeId waiter) {
      if (--waiting[waiter] == 0) ready.emplace(launched[waiter], waiter);
    };
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      if (!IsBackEdge(graph, id, readers[i].node)) done(readers[i].node);
    }
    auto it = std::lower_bound(sorted.begin(), sorted.end(), ControlEdge{id, kNoNode}, from_less);
    for (; it != sorted.end() && it->from == id; ++it) done(it->to);
  }
  if (rank < n) ranks_.clear();
  return absl::OkStatus();
}

bool LevelPacing::Runs(const PlannedSwapIn& swap_in) const {
  return std::any_of(
      swap_in.consumers.begin(), swap_in.consumers.end(),
      [&](const InputPosition& consumer) { return facts_.active_nodes().flags[consumer.node]; });
}

void LevelPacing::LeaveOutIdle(PlannedSwapIn* swap_in) const {
  if (!Runs(*swap_in)) return;
  auto& triggers = swap_in->triggers;
  triggers.erase(
      std::remove_if(triggers.begin(), triggers.end(),
                     [&](NodeId trigger) { return !facts_.active_nodes().flags[trigger]; }),
      triggers.end());
}

std::vector<NodeId> LevelPacing::Gate(int32_t gpu, NodeId producer,
                                      const PlannedSwapIn& swap_in) const {
  const auto order = orders_.find(gpu);
  if (order == orders_.end()) return {};
  if (!Runs(swap_in)) return {};  // Nor is it to run for who would wait.
  Slot last = kNoSlot;
  for (NodeId trigger : swap_in.triggers) last = std::max(last, order->second.slot(trigger));
  if (last == kNoSlot) return {};
  return PaceGate(order->second, needs_, *soundness_, PaceGate::Cycles::kLevels)
      .Find(producer, swap_in.triggers, last + 1 + kSlotsBehindTrigger, swap_in.consumers);
}

}  // namespace spillway::core
