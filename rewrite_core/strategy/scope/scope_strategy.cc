#include "rewrite_core/strategy/scope/scope_strategy.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/graph/near_in_graph.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/scope/scope_defaults.h"
#include "rewrite_core/strategy/scope/scope_order.h"
#include "rewrite_core/strategy/scope/scope_sets.h"
#include "rewrite_core/strategy/scope/trigger_search.h"

namespace spillway::core {
namespace {

constexpr char kTensorsWhat[] = "tensors to swap";
// The maximum length of the report's list: some graphs have hundreds of top-level scopes.
constexpr size_t kMaxBackwardScopes = 20;
constexpr char kTensorsRemedy[] = "narrow it with starting_op_names or incl_scopes";

class ScopePlanner {
 public:
  ScopePlanner(const StrategyInput& input, const ScopeSets& sets, const ScopeOrder& order,
               SearchBudget* budget, StrategyResult* result)
      : graph_(input.facts.graph()),
        facts_(input.facts),
        readers_(input.facts, input.eligibility),
        scope_(input.options.scope()),
        explain_(input.options.decision_detail() != v1::DECISION_DETAIL_NONE),
        parameters_(scope_),
        sets_(sets),
        order_(order),
        budget_(budget),
        triggers_(facts_, order, sets.backward, parameters_, budget),
        result_(result),
        handled_(graph_.num_nodes(), false),
        searched_(graph_.num_nodes(), false) {}

  // Breadth-first from the seeds through consumers outside the backward part.
  absl::Status Run() {
    StopPoller poll(budget_->stop());
    NodeFlags seen(graph_.num_nodes(), false);
    std::vector<NodeId> queue = sets_.seeds;
    for (NodeId seed : queue) seen[seed] = true;
    for (size_t done = 0; done < queue.size(); ++done) {
      const NodeId id = queue[done];
      const int32_t listed_from = done < sets_.seeds.size() ? 1 : 2;
      if (parameters_.debug_level >= listed_from) ListForDebug(id);
      if (absl::Status status = Handle(id); !status.ok()) return status;
      const Graph::Readers readers = graph_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll.Tick()) return budget_->stop().status("strategy");
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl || sets_.backward[reader] || seen[reader]) continue;
        seen[reader] = true;
        queue.push_back(reader);
      }
    }
    return absl::OkStatus();
  }

  // Of the tensors that were not swapped because no op that reads them late has an order.
  int64_t unordered_bytes() const { return unordered_bytes_; }

 private:
  int32_t order(NodeId id) const { return order_.order[id]; }

  void ListForDebug(NodeId id) {
    v1::DebugOp* op = result_->report.mutable_scope()->add_debug_ops();
    op->set_name(std::string(graph_.name(id)));
    op->set_type(std::string(graph_.op(id)));
    if (order(id) != kNoOrder) op->set_order(order(id));
  }

  // Decides on all outputs of one op, and then on ops after consumers that have no order.
  absl::Status Handle(NodeId first) {
    std::vector<NodeId> pending = {first};
    for (size_t done = 0; done < pending.size(); ++done) {
      const NodeId id = pending[done];
      if (handled_[id]) continue;
      handled_[id] = true;
      std::vector<NodeId> unordered;
      if (absl::Status status = HandleOp(id, &unordered); !status.ok()) return status;
      for (NodeId consumer : unordered) {
        if (absl::Status status = SearchBehind(consumer, &pending); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status HandleOp(NodeId id, std::vector<NodeId>* unordered) {
    const Graph::Readers readers = graph_.readers(id);
    uint32_t begin = 0;
    while (begin < readers.size() && readers[begin].port == kControl) ++begin;
    if (begin == readers.size()) return absl::OkStatus();
    const bool barred = sets_.excluded[id] || sets_.not_included[id];
    if (barred && !explain_) return absl::OkStatus();
    std::vector<int32_t> ports;
    std::vector<uint32_t> first_reader;  // By port.
    for (uint32_t i = begin; i < readers.size(); ++i) {
      if (budget_->Spend()) return budget_->status(kTensorsWhat, kTensorsRemedy);
      if (!ports.empty() && ports.back() == readers[i].port) continue;
      ports.push_back(readers[i].port);
      first_reader.push_back(i);
    }
    first_reader.push_back(readers.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      const Tensor tensor{id, ports[i]};
      v1::Reason reason = sets_.excluded[id] ? v1::REASON_EXCLUDED : v1::REASON_NOT_INCLUDED;
      if (!barred) {
        auto decided =
            HandleTensor(tensor, readers, first_reader[i], first_reader[i + 1], unordered);
        if (!decided.ok()) return decided.status();
        reason = *decided;
      }
      if (explain_) {
        result_->decisions.push_back({tensor, reason, facts_.shapes().size_bytes(tensor),
                                      facts_.shapes().why_unknown(tensor)});
      }
    }
    return absl::OkStatus();
  }

  // Decides on one tensor, whose readers are those from `begin` to `end`.
  absl::StatusOr<v1::Reason> HandleTensor(Tensor tensor, const Graph::Readers& readers,
                                          uint32_t begin, uint32_t end,
                                          std::vector<NodeId>* unordered) {
    const std::vector<InputPosition> late = LateConsumers(readers, begin, end);
    if (late.empty()) return v1::REASON_NO_LATE_CONSUMER;
    if (parameters_.n_tensors >= 0 &&
        result_->plan.swaps.size() >= static_cast<size_t>(parameters_.n_tensors)) {
      return v1::REASON_LIMIT_REACHED;
    }
    const bool in_backward = sets_.backward[tensor.node];
    std::vector<InputPosition> ordered;
    for (const InputPosition& consumer : late) {
      if (order(consumer.node) >= 0) {
        ordered.push_back(consumer);
      } else if (!in_backward) {
        unordered->push_back(consumer.node);
      }
    }
    if (ordered.empty()) {
      unordered_bytes_ =
          SaturatingAdd(unordered_bytes_, std::max<int64_t>(facts_.shapes().size_bytes(tensor), 0));
      return v1::REASON_NO_ORDER;
    }
    const v1::Reason verdict =
        readers_.Keep(tensor, &ordered, [](const InputPosition& p) { return p.node; });
    if (verdict != v1::REASON_SWAPPED) return verdict;

    PlannedSwap swap;
    swap.tensor = tensor;
    swap.dtype = facts_.shapes().type(tensor).dtype;
    swap.size_bytes = facts_.shapes().size_bytes(tensor);
    for (const std::vector<InputPosition>& group : Groups(ordered)) {
      auto swap_in = PlanSwapIn(tensor.node, group);
      if (!swap_in.ok()) return swap_in.status();
      swap.swap_ins.push_back(*std::move(swap_in));
    }
    result_->plan.swaps.push_back(std::move(swap));
    return verdict;
  }

  // Returns the positions that should read a swap-in: those of consumers in the backward part and,
  // with swap_branches, of forward consumers far after the first one; only of consumers that have
  // consumers themselves.
  std::vector<InputPosition> LateConsumers(const Graph::Readers& readers, uint32_t begin,
                                           uint32_t end) const {
    int32_t first_forward = std::numeric_limits<int32_t>::max();
    if (scope_.swap_branches()) {
      for (uint32_t i = begin; i < end; ++i) {
        if (sets_.backward[readers[i].node]) continue;
        first_forward = std::min(first_forward, order(readers[i].node));
      }
    }
    std::vector<InputPosition> late;
    for (uint32_t i = begin; i < end; ++i) {
      const Graph::Reader reader = readers[i];
      const bool is_late =
          sets_.backward[reader.node] ||
          (scope_.swap_branches() &&
           int64_t{order(reader.node)} > int64_t{first_forward} + scope_.branch_threshold());
      if (is_late && HasDataReader(graph_, reader.node) && readers_.Runs(reader.node))
        late.push_back({reader.node, reader.index});
    }
    return late;
  }

  // Groups the positions that share a swap-in: those of one consumer; with fuse_swapins, those of
  // all consumers above level 0, if there are at least two.
  std::vector<std::vector<InputPosition>> Groups(const std::vector<InputPosition>& ordered) const {
    std::vector<std::vector<InputPosition>> groups;
    std::vector<InputPosition> fused;
    bool several = false;
    for (const InputPosition& p : ordered) {
      if (!scope_.fuse_swapins() || order(p.node) == 0) continue;
      fused.push_back(p);
      several = several || p.node != fused.front().node;
    }
    if (several) groups.push_back(fused);
    // Positions of one consumer are adjacent: readers are in order of consumer.
    for (const InputPosition& p : ordered) {
      if (several && order(p.node) > 0) continue;
      if (groups.empty() || groups.back().back().node != p.node) groups.emplace_back();
      groups.back().push_back(p);
    }
    return groups;
  }

  absl::StatusOr<PlannedSwapIn> PlanSwapIn(NodeId producer,
                                           const std::vector<InputPosition>& group) {
    std::vector<NodeId> consumers;
    NodeId first = group.front().node;
    for (const InputPosition& p : group) {
      if (consumers.empty() || consumers.back() != p.node) consumers.push_back(p.node);
      if (order(p.node) < order(first)) first = p.node;
    }
    auto trigger = triggers_.Find(producer, first, consumers);
    if (!trigger.ok()) return trigger.status();
    PlannedSwapIn swap_in{group, {}, {}};
    if (*trigger != kNoNode) swap_in.triggers.push_back(*trigger);
    return swap_in;
  }

  // Walks forward from a consumer that has no order and adds to `pending` the ops with a consumer
  // after the start of the backward part; the walk does not go past such consumers.
  absl::Status SearchBehind(NodeId consumer, std::vector<NodeId>* pending) {
    if (searched_[consumer]) return absl::OkStatus();
    searched_[consumer] = true;
    std::vector<NodeId> queue = {consumer};
    for (size_t done = 0; done < queue.size(); ++done) {
      bool found = false;
      const Graph::Readers readers = graph_.readers(queue[done]);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (budget_->Spend()) return budget_->status(kTensorsWhat, kTensorsRemedy);
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl) continue;
        if (order(reader) > order_.backward_start) {
          found = true;
        } else if (!searched_[reader]) {
          searched_[reader] = true;
          queue.push_back(reader);
        }
      }
      if (found) pending->push_back(queue[done]);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const StepFacts& facts_;
  const SwapInReaders readers_;
  const v1::ScopeStrategy& scope_;
  const bool explain_;
  const ScopeDefaults parameters_;
  const ScopeSets& sets_;
  const ScopeOrder& order_;
  SearchBudget* budget_;
  TriggerSearch triggers_;
  StrategyResult* result_;
  NodeFlags handled_;
  NodeFlags searched_;
  int64_t unordered_bytes_ = 0;
};

// Adds the counts, highest first, then by name; none if stopped.
void AddCounts(const absl::flat_hash_map<absl::string_view, int64_t>& counts, size_t at_most,
               StopPoller* poll, google::protobuf::RepeatedPtrField<v1::NameCount>* out) {
  std::vector<std::pair<int64_t, absl::string_view>> sorted;
  for (const auto& [name, count] : counts) sorted.push_back({-count, name});
  if (!PolledSort(sorted.begin(), sorted.end(), std::less<>(), poll)) return;
  if (sorted.size() > at_most) sorted.resize(at_most);
  for (const auto& [negated, name] : sorted) {
    v1::NameCount* entry = out->Add();
    entry->set_name(std::string(name));
    entry->set_count(-negated);
  }
}

// Incomplete if stopped.
void ReportBackwardPart(const Graph& graph, const ScopeSets& sets, const StopToken& stop,
                        v1::ScopeReport* report) {
  report->set_backward_op_count(sets.backward_count);
  report->set_backward_part_found(sets.backward_found);
  if (!sets.backward_found) return;
  absl::flat_hash_map<absl::string_view, int64_t> updates, scopes;
  StopPoller poll(stop);
  for (NodeId id : sets.updates) {
    if (poll.Tick()) return;
    ++updates[graph.op(id)];
  }
  for (NodeId id(0); id < graph.num_nodes() && !poll.Tick(); ++id) {
    const size_t slash = graph.name(id).find('/');
    if (sets.backward[id] && slash != absl::string_view::npos) {
      ++scopes[graph.name(id).substr(0, slash)];
    }
  }
  AddCounts(updates, updates.size(), &poll, report->mutable_weight_updates());
  AddCounts(scopes, kMaxBackwardScopes, &poll, report->mutable_backward_scopes());
}

void ReportSets(const Graph& graph, const ScopeSets& sets, const ScopeOrder& order,
                const StopToken& stop, v1::ScopeReport* report) {
  ReportBackwardPart(graph, sets, stop, report);
  StopPoller poll(stop);
  for (NodeId seed : sets.seeds) {
    if (poll.Tick()) break;
    report->add_starting_ops(std::string(graph.name(seed)));
  }
  report->set_starting_ops_found(sets.seeds_found);
  report->set_level_count(order.level_count);
  if (order.backward_start != kNoOrder) report->set_backward_start_level(order.backward_start);
}

// A warning suggests similar scopes for this many; each takes up to 30 ms.
constexpr int kMaxSuggestions = 3;

void WarnOfUnmatched(const Graph& graph, const std::vector<std::string>& scopes,
                     v1::RewriteReport* report) {
  if (scopes.empty()) return;
  v1::Warning* warning = report->add_warnings();
  warning->set_code(v1::WARNING_CODE_NAME_MATCHES_NOTHING);
  warning->set_message(absl::StrCat(
      "optimizer_scopes that match no op: ",
      absl::StrJoin(
          scopes, ", ",
          [&, left = kMaxSuggestions](std::string* out, const std::string& scope) mutable {
            absl::StrAppend(out, scope, left-- > 0 ? NearScopes(graph, scope) : "");
          })));
}

// A plan that swaps less than 1/kLittle of the bytes that it leaves for lack of an order gets a
// warning: otherwise it would seem complete.
constexpr int64_t kLittle = 100;

void SayWhatIsLeft(int64_t unordered_bytes, StrategyResult* result) {
  const int64_t swapped = SwappedBytes(result->plan);
  const std::string left = absl::StrCat(
      "the ops of the backward part that read ", BytesText(unordered_bytes),
      " have no order, because forward ops (for example of a loop's body) are on their levels; the "
      "strategy budget needs no levels");
  if (result->plan.empty()) {
    result->why_nothing =
        absl::StrCat("no tensor qualifies: ", unordered_bytes > 0 ? left : "the decisions say why");
  } else if (swapped < unordered_bytes / kLittle) {
    v1::Warning* warning = result->report.add_warnings();
    warning->set_code(v1::WARNING_CODE_LITTLE_SWAPPED);
    warning->set_message(absl::StrCat("only ", BytesText(swapped), " are swapped: ", left));
  }
}

}  // namespace

absl::Status CheckScopeStrategy(const v1::RewriteOptions& options, const StopToken& stop) {
  return CheckScopeOptions(options.scope(), stop);
}

absl::StatusOr<StrategyResult> PlanScope(const StrategyInput& input) {
  const v1::ScopeStrategy& scope = input.options.scope();
  const StepFacts& facts = input.facts;
  StrategyResult result;
  result.plan.cpu_device = input.options.cpu_device();
  v1::ScopeReport& report = *result.report.mutable_scope();
  const ScopeDefaults parameters(scope);
  report.set_n_tensors(parameters.n_tensors);
  report.set_lb(parameters.lb);
  report.set_ub(parameters.ub);
  if (parameters.n_tensors == 0) {
    result.why_nothing = "n_tensors is 0: no tensor was to be swapped";
    return result;
  }

  SearchBudget budget(input.limits.max_search_steps(), input.stop);
  auto sets = BuildScopeSets(facts, scope, &budget, input.stop);
  if (!sets.ok()) return sets.status();
  auto order =
      BuildScopeOrder(facts.graph(), facts.topology(), sets->backward, sets->seeds, input.stop);
  if (!order.ok()) return order.status();

  WarnOfUnmatched(facts.graph(), sets->unmatched_scopes, &result.report);
  ReportSets(facts.graph(), *sets, *order, input.stop, &report);
  ScopePlanner planner(input, *sets, *order, &budget, &result);
  if (absl::Status status = planner.Run(); !status.ok()) return status;
  SayWhatIsLeft(planner.unordered_bytes(), &result);
  return result;
}

}  // namespace spillway::core
