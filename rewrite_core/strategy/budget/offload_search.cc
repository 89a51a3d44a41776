#include "rewrite_core/strategy/budget/offload_search.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/simulate/step_subject.h"

namespace spillway::core {
namespace {

// Shares of the state that are planned, at most: each takes as long as a rewrite.
constexpr size_t kMaxTries = 4;
// If the least share fits, the next one is 1/kNextPart of the way to all of the state: state moved
// beyond the least leaves memory to activations, which may be worth more than its copies. If only a
// larger one fits, or the step takes more than kTightTimes its full speed, memory is tight: then
// all, and half of the way. (1.56 billion parameters, batch 1, P100: 0.87 of full speed with the
// least, 0.75 with all; in 2 GiB 0.32 with 0.93 of the state, 0.46 with all. 6.65 billion, A100 of
// 40 GB: 0.32 with 0.76 of the state, 0.25 with all.)
constexpr size_t kNextPart = 4;
constexpr int64_t kTightTimes = 2;

// When the kernel of each node starts in a step of the unmoved graph, or kNeverRun.
std::vector<int64_t> StartsOf(const StepResult& step, int32_t num_nodes) {
  std::vector<int64_t> start_ns(num_nodes, OpTimes::kNeverRun);
  const std::vector<OpTimes>& of_ops = step.launch_ahead.times;
  for (size_t op = 0; op < of_ops.size(); ++op) {
    const NodeId node = step.ops[op].node;
    if (node == kNoNode || node >= num_nodes || !RunsNode(step.ops[op])) continue;
    start_ns[node] = of_ops[op].start_ns;
  }
  return start_ns;
}

class OffloadSearch {
 public:
  OffloadSearch(const StrategyInput& input, const BudgetRun& unmoved, PlanGraph plan_graph,
                SearchBudget* steps)
      : input_(input),
        unmoved_(unmoved),
        plan_graph_(plan_graph),
        steps_(*steps),
        poll_(input.stop) {}

  absl::StatusOr<StrategyResult> Run(absl::StatusOr<StrategyResult> plain) {
    auto groups = StateGroups::Find(input_.facts, input_.stop);
    if (!groups.ok()) return groups.status();
    groups_.emplace(*std::move(groups));
    if (absl::Status s = RankGroups(); !s.ok()) return s;
    if (plain.ok()) return Faster(*std::move(plain));
    fits_ = unmoved_.fits();
    if (ranked_.empty()) {
      return WithMoreText(plain.status(), absl::StrCat("; no variable can be moved to the host",
                                                       Why(), " (budget.offload)"));
    }
    absl::Status last = plain.status();
    const size_t most = ranked_.size();
    std::vector<size_t> counts = {LeastCount()};
    bool is_tight = false;
    for (size_t i = 0; i < counts.size() && i < kMaxTries; ++i) {
      auto plan = Try(counts[i]);
      const bool fits = plan.ok();
      if (!fits && GetErrorReason(plan.status()) != v1::ERROR_REASON_DOES_NOT_FIT) {
        if (best_) break;  // The search ended early.
        return plan.status();
      }
      const size_t left = most - counts[i];
      if (!fits && !best_) {
        last = plan.status();
        if (left > 0) counts.push_back(i + 2 == kMaxTries ? most : most - left / 2);
        continue;
      }
      const bool is_first = !best_;
      if (fits && (is_first || TimeOf(*plan) < TimeOf(*best_))) {
        best_ = *std::move(plan);
      } else if (!is_tight) {
        break;
      }
      if (left == 0) continue;
      if (is_first) {
        is_tight = i > 0 || TimeOf(*best_) / kTightTimes > unmoved_.request().full_speed_ns;
        if (is_tight) {
          counts.push_back(most);
          if (left > 1) counts.push_back(most - left / 2);
        }
      }
      if (!is_tight) counts.push_back(most - left + std::max<size_t>(1, left / kNextPart));
    }
    if (best_) return *std::move(best_);
    return WithMoreText(last,
                        absl::StrCat("; ", BytesText(moved_bytes_), " of ", BytesText(state_bytes_),
                                     " of state were moved to the host (budget.offload)"));
  }

  // The time of a planned step, on its slowest GPU.
  static int64_t TimeOf(const StrategyResult& plan) {
    int64_t time_ns = 0;
    for (const v1::DeviceFit& fit : plan.report.fits()) {
      time_ns = std::max(time_ns, fit.step_time_ns());
    }
    return time_ns;
  }

 private:
  // `plain`, which is slow, or a plan with all state on the host.
  absl::StatusOr<StrategyResult> Faster(StrategyResult plain) {
    if (ranked_.empty()) return plain;
    fits_.assign(plain.report.fits().begin(), plain.report.fits().end());
    auto moved = Try(ranked_.size());
    if (moved.ok() && TimeOf(*moved) < TimeOf(plain)) return moved;
    const v1::ErrorReason reason = GetErrorReason(moved.status());
    if (reason == v1::ERROR_REASON_STOPPED) return moved;
    return plain;
  }

  // Groups that may move, those first whose copies and update hide best: the gradient comes early,
  // or the weights are read late.
  absl::Status RankGroups() {
    const Graph& graph = input_.facts.graph();
    const StepResult& step = unmoved_.request().unswapped;
    const std::vector<int64_t> starts = StartsOf(step, graph.num_nodes());
    std::vector<std::pair<int64_t, size_t>> ranked;
    for (size_t i = 0; i < groups_->groups().size(); ++i) {
      const StateGroup& group = groups_->groups()[i];
      state_bytes_ = SaturatingAdd(state_bytes_, group.bytes);
      if (group.kept != v1::STATE_KEPT_UNSPECIFIED) continue;
      int64_t read_ns = step.step_time_ns(), ready_ns = 0;
      for (NodeId update : group.updates) {
        if (poll_.Tick()) return input_.stop.status("strategy");
        ready_ns = std::max(ready_ns, starts[update]);
      }
      for (NodeId holder : group.holders) {
        const Graph::Readers readers = graph.readers(holder);
        for (uint32_t k = 0; k < readers.size(); ++k) {
          if (poll_.Tick()) return input_.stop.status("strategy");
          const int64_t start_ns = starts[readers[k].node];
          if (readers[k].port != kControl && start_ns != OpTimes::kNeverRun) {
            read_ns = std::min(read_ns, start_ns);
          }
        }
      }
      ranked.emplace_back(ready_ns - read_ns, i);
    }
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [slack, i] : ranked) ranked_.push_back(i);
    return absl::OkStatus();
  }

  // The least number of groups whose bytes cover the step's lower bound above the budget, on each
  // GPU.
  size_t LeastCount() const {
    std::vector<int64_t> missing(input_.facts.placement().devices().size(), 0);
    for (size_t i : unmoved_.lacking()) {
      const GpuIndex gpu = unmoved_.gpus()[i].index;
      missing[gpu] = unmoved_.plans().bounds()[gpu].memory_bytes - input_.facts.BudgetOf(gpu);
    }
    const auto is_covered = [&] {
      return std::all_of(missing.begin(), missing.end(), [](int64_t bytes) { return bytes <= 0; });
    };
    size_t count = 1;
    for (; count <= ranked_.size(); ++count) {
      const StateGroup& group = groups_->groups()[ranked_[count - 1]];
      missing[group.gpu] -= group.bytes;
      if (is_covered()) return count;
    }
    return ranked_.size();
  }

  // The plan with the first `count` groups moved.
  absl::StatusOr<StrategyResult> Try(size_t count) {
    OffloadPlan offload;
    moved_bytes_ = 0;
    std::vector<size_t> chosen(ranked_.begin(), ranked_.begin() + count);
    std::sort(chosen.begin(), chosen.end());
    for (size_t i : chosen) {
      offload.groups.push_back(groups_->groups()[i]);
      moved_bytes_ = SaturatingAdd(moved_bytes_, offload.groups.back().bytes);
    }
    for (const StateGroup& group : groups_->groups()) {
      if (group.kept != v1::STATE_KEPT_UNSPECIFIED) offload.kept.push_back(group);
    }
    offload.state_bytes = state_bytes_;
    auto nodes = groups_->NodesOf(chosen, input_.stop);
    if (!nodes.ok()) return nodes.status();
    offload.nodes = *std::move(nodes);
    // What moves takes of the host's memory for swaps.
    const int64_t host_bytes = input_.facts.hardware().host_memory_bytes - moved_bytes_;
    if (host_bytes < 0) return HostTooSmall();
    v1::Step step = input_.facts.step();
    step.mutable_hardware()->set_host_memory_bytes(host_bytes);
    auto subject = StepSubject::WithMoves(input_.facts.graph(), offload.nodes, step, input_.limits,
                                          input_.stop);
    if (!subject.ok()) return subject.status();
    auto eligibility = Eligibility::Create((*subject)->facts(), input_.options, input_.stop);
    if (!eligibility.ok()) return eligibility.status();
    auto simulator = (*subject)->Simulator(input_.stop);
    if (!simulator.ok()) return simulator.status();
    const StrategyInput moved = {(*subject)->facts(), *eligibility, input_.options,
                                 input_.limits,       *simulator,   input_.stop,
                                 /*only_plan=*/true};
    auto plan = plan_graph_(moved, unmoved_.request().full_speed_ns, &steps_);
    if (!plan.ok()) return plan;
    plan->offload = std::move(offload);
    plan->why_nothing.clear();
    CompareWithUnmoved(&plan->report);
    return plan;
  }

  // The report's figures of the unswapped step are those of the graph given.
  void CompareWithUnmoved(v1::RewriteReport* report) const {
    for (v1::DeviceFit& fit : *report->mutable_fits()) {
      for (const v1::DeviceFit& before : fits_) {
        if (before.device() != fit.device()) continue;
        fit.set_unswapped_peak_bytes(before.unswapped_peak_bytes());
        fit.set_full_speed_step_time_ns(before.full_speed_step_time_ns());
      }
    }
  }

  absl::Status HostTooSmall() const {
    return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                 absl::StrCat("the host has ", BytesText(input_.facts.hardware().host_memory_bytes),
                              " for state and swaps (host_memory_bytes), and the state that must "
                              "leave the GPU takes ",
                              BytesText(moved_bytes_)),
                 {{"option", "host_memory_bytes"}});
  }

  // Why the largest group stays.
  std::string Why() const {
    const StateGroup* largest = nullptr;
    for (const StateGroup& group : groups_->groups()) {
      if (largest == nullptr || group.bytes > largest->bytes) largest = &group;
    }
    if (largest == nullptr) return "";
    const Graph& graph = input_.facts.graph();
    return absl::StrCat(": ", Quoted(graph.name(largest->variables[0])), ", ",
                        BytesText(largest->bytes), " with its slots, stays because of ",
                        Quoted(graph.name(largest->in_the_way)), " (", StateKeptName(largest->kept),
                        ")");
  }

  const StrategyInput& input_;
  const BudgetRun& unmoved_;
  const PlanGraph plan_graph_;
  SearchBudget& steps_;
  StopPoller poll_;
  absl::optional<StateGroups> groups_;
  std::vector<v1::DeviceFit> fits_;  // Of the unmoved graph.
  std::vector<size_t> ranked_;       // Indices of the groups that may move.
  int64_t state_bytes_ = 0;
  int64_t moved_bytes_ = 0;  // Of the last try.
  absl::optional<StrategyResult> best_;
};

}  // namespace

absl::StatusOr<StrategyResult> PlanOffloaded(const StrategyInput& input, const BudgetRun& unmoved,
                                             absl::StatusOr<StrategyResult> plain,
                                             PlanGraph plan_graph, SearchBudget* steps) {
  return OffloadSearch(input, unmoved, plan_graph, steps).Run(std::move(plain));
}

bool IsWorthOffloading(const StrategyResult& plain, const BudgetRun& unmoved) {
  return OffloadSearch::TimeOf(plain) / kTightTimes > unmoved.request().full_speed_ns;
}

}  // namespace spillway::core
