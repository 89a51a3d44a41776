#include "tests/property/properties.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/data_types.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/naive_executor.h"
#include "tests/testing/proto_graph.h"

namespace spillway::testing {
namespace {

constexpr int kMaxExhaustivePredicates = 5;
constexpr int kSampledAssignments = 16;

absl::StatusOr<v1::RewriteResponse> Run(const std::string& input,
                                        const v1::RewriteOptions& options) {
  return core::Rewrite(input, options, core::DefaultLimits(), core::StopToken());
}

bool IsLoopOp(const std::string& op) { return absl::StrContains(op, "NextIteration"); }

int CountControls(const NodeDef& node) {
  return static_cast<int>(
      std::count_if(node.input().begin(), node.input().end(),
                    [](const std::string& input) { return absl::StartsWith(input, "^"); }));
}

// `names` and all nodes that they need.
std::set<std::string> Ancestors(const GraphDef& graph, const std::set<std::string>& names) {
  const std::map<std::string, int> index = IndexNodes(graph);
  std::set<std::string> seen = names;
  std::vector<std::string> stack(names.begin(), names.end());
  while (!stack.empty()) {
    const NodeDef& node = graph.node(index.at(stack.back()));
    stack.pop_back();
    for (const std::string& input : node.input()) {
      const std::string name = SplitInput(input).node;
      if (seen.insert(name).second) stack.push_back(name);
    }
  }
  return seen;
}

// One rewritten case. Each Check returns the error, or nothing.
GraphDef ByName(GraphDef graph) {
  std::sort(graph.mutable_node()->begin(), graph.mutable_node()->end(),
            [](const NodeDef& a, const NodeDef& b) { return a.name() < b.name(); });
  return graph;
}

class RewrittenCase {
 public:
  RewrittenCase(const std::string& input, const v1::RewriteOptions& options,
                const v1::RewriteResponse& response, Random* random)
      : input_(input),
        options_(options),
        response_(response),
        random_(random),
        before_(ReadProto(input)),
        after_(ReadProto(response.graph_def())) {
    // Clones are the first new nodes, in the order of the plan.
    std::set<std::string> old;
    for (const NodeDef& node : before_.node()) old.insert(node.name());
    int next = 0;
    for (const NodeDef& node : after_.node()) {
      if (old.count(node.name()) > 0 || next == response.plan().clones_size()) continue;
      clones_[node.name()] = next;
      originals_[node.name()] = response.plan().clones(next++).node();
    }
  }

  std::string Check() const {
    for (auto check : {&RewrittenCase::Strip, &RewrittenCase::Acyclic,
                       &RewrittenCase::Deterministic, &RewrittenCase::Idempotent,
                       &RewrittenCase::ExecutesAlike, &RewrittenCase::Patch, &RewrittenCase::Report,
                       &RewrittenCase::Needs, &RewrittenCase::Plan, &RewrittenCase::Transport}) {
      if (std::string failure = (this->*check)(); !failure.empty()) return failure;
    }
    return "";
  }

 private:
  std::string Strip() const {
    v1::RewriteOptions strip;
    strip.mutable_strip();
    const auto stripped = Run(response_.graph_def(), strip);
    if (!stripped.ok()) return absl::StrCat("strip: ", stripped.status().ToString());
    if (stripped->report().outcome() != v1::OUTCOME_STRIPPED) return "strip: outcome";
    return stripped->graph_def() == input_ ? "" : "strip: other bytes than the input";
  }

  std::string Acyclic() const { return IsAcyclic(after_) ? "" : "acyclic: there is a cycle"; }

  std::string Deterministic() const {
    v1::RewriteOptions again = options_;
    auto& feeds = *again.mutable_step()->mutable_feeds();
    std::reverse(feeds.begin(), feeds.end());
    auto second = Run(input_, again);
    if (!second.ok()) return absl::StrCat("deterministic: ", second.status().ToString());
    v1::RewriteReport a = response_.report(), b = second->report();
    a.clear_stages();  // Times.
    b.clear_stages();
    if (second->graph_def() != response_.graph_def()) return "deterministic: other bytes";
    return a.SerializeAsString() == b.SerializeAsString() ? "" : "deterministic: another report";
  }

  std::string Idempotent() const {
    const auto kept = Run(response_.graph_def(), options_);
    if (!kept.ok()) return absl::StrCat("idempotent: ", kept.status().ToString());
    if (kept->report().outcome() != v1::OUTCOME_KEPT) {
      return absl::StrCat("idempotent: outcome ", v1::Outcome_Name(kept->report().outcome()));
    }
    if (kept->graph_def() != response_.graph_def()) return "idempotent: KEPT other bytes";
    v1::RewriteOptions replan = options_;
    replan.set_already_rewritten(v1::ALREADY_REWRITTEN_REPLAN);
    const auto replanned = Run(response_.graph_def(), replan);
    if (!replanned.ok()) return absl::StrCat("replan: ", replanned.status().ToString());
    return replanned->graph_def() == response_.graph_def() ? "" : "replan: other bytes";
  }

  std::string ExecutesAlike() const {
    for (const NodeDef& node : before_.node()) {
      if (IsLoopOp(node.op())) return "";  // The executor runs no loops.
    }
    const std::vector<std::string> predicates = FindPredicates(before_);
    const bool all = predicates.size() <= kMaxExhaustivePredicates;
    const int count = all ? 1 << predicates.size() : kSampledAssignments;
    for (int i = 0; i < count; ++i) {
      Truths truths;
      for (size_t p = 0; p < predicates.size(); ++p) {
        truths[predicates[p]] = all ? (i >> p) & 1 : random_->OneIn(2);
      }
      const std::string difference =
          CompareOutcomes(Execute(before_, truths), Execute(after_, truths, originals_));
      if (difference.empty()) continue;
      std::string assignment;
      for (const auto& [name, truth] : truths) {
        absl::StrAppend(&assignment, " ", name, "=", truth);
      }
      return absl::StrCat("executes alike: ", difference, ", with", assignment);
    }
    return "";
  }

  std::string Patch() const {
    // With clones, the new nodes of a patch may be in another order than those of the file.
    const std::string difference = Difference(ByName(WithoutAttr(after_, "_spillway_undo")),
                                              ByName(ApplyPatch(before_, response_.patch())));
    return difference.empty() ? "" : absl::StrCat("patch: ", difference);
  }

  std::string Report() const {
    std::set<std::string> originals;
    for (const NodeDef& node : before_.node()) originals.insert(node.name());
    int64_t outs = 0, ins = 0, rewired = 0, triggers = 0, clone_triggers = 0, controls = 0;
    const std::map<std::string, int> index = IndexNodes(after_), was_at = IndexNodes(before_);
    for (const NodeDef& node : after_.node()) {
      if (originals.count(node.name()) > 0) continue;
      outs += absl::StartsWith(node.name(), "lms/swapout_");
      ins += absl::StartsWith(node.name(), "lms/swapin_");
      triggers += CountControls(node);
      if (const auto clone = clones_.find(node.name()); clone != clones_.end()) {
        // It has its own trigger, its original's control inputs, and perhaps edges of swaps.
        const NodeDef& original = before_.node(was_at.at(originals_.at(node.name())));
        const bool has_trigger = !response_.plan().clones(clone->second).trigger().empty();
        const int64_t more = CountControls(node) - CountControls(original) - has_trigger;
        clone_triggers += has_trigger;
        triggers -= CountControls(node);
        controls += more;
        for (const std::string& input : node.input()) {
          rewired += absl::StartsWith(input, "lms/swapin_");
        }
      }
    }
    for (const NodeDef& was : before_.node()) {
      const NodeDef& is = after_.node(index.at(was.name()));
      for (int i = 0; i < was.input_size(); ++i) {
        rewired += was.input(i) != is.input(i) && !absl::StartsWith(is.input(i), "lms/recompute_");
      }
      controls += CountControls(is) - CountControls(was);
    }
    const v1::RewriteReport& report = response_.report();
    int64_t told_outs = 0, told_ins = 0, told_tensors = 0, told_consumers = 0, told_triggers = 0,
            told_deadlines = 0;
    int64_t told_controls = 0;
    std::map<v1::EdgeKind, int64_t> told_edges;
    for (const v1::EdgeCount& edges : report.added_control_edges()) {
      told_edges[edges.kind()] += edges.count();
      if (edges.kind() != v1::EDGE_KIND_TRIGGER) told_controls += edges.count();
    }
    for (const v1::DeviceReport& device : report.devices()) {
      told_outs += device.swap_out_count();
      told_ins += device.swap_in_count();
      told_tensors += device.swapped_tensor_count();
    }
    int64_t outs_of_clones = 0;
    for (const v1::TensorSwap& swap : report.swaps()) {
      outs_of_clones += absl::StartsWith(swap.tensor(), "lms/recompute_");
      told_deadlines += swap.deadline_nodes_size();
      for (const v1::SwapIn& swap_in : swap.swap_ins()) {
        told_consumers += swap_in.consumers_size();
        told_triggers += swap_in.triggers_size();
      }
    }
    int64_t told_swapped = 0;
    for (const v1::Decision& decision : report.decisions()) {
      told_swapped += decision.reason() == v1::REASON_SWAPPED;
    }
    const auto differs = [](const char* what, int64_t told, int64_t counted) {
      return told == counted ? std::string()
                             : absl::StrCat("report: ", what, " ", told, ", counted ", counted);
    };
    const bool explains = options_.decision_detail() != v1::DECISION_DETAIL_NONE;
    for (const std::string& failure :
         {differs("swap-outs", told_outs, outs), differs("swap-ins", told_ins, ins),
          differs("swapped tensors", told_tensors, outs),
          differs("swaps", report.swaps_size(), outs),
          differs("decisions to swap", told_swapped, explains ? outs - outs_of_clones : 0),
          differs("consumers", told_consumers, rewired),
          differs("triggers", told_triggers, triggers),
          differs("triggers by kind", told_edges[v1::EDGE_KIND_TRIGGER], triggers + clone_triggers),
          differs("deadlines by kind", told_edges[v1::EDGE_KIND_DEADLINE], told_deadlines),
          differs("control edges to original nodes", told_controls, controls),
          differs("nodes before", report.node_count_before(), before_.node_size()),
          differs("nodes after", report.node_count_after(), after_.node_size()),
          differs("bytes before", report.graph_bytes_before(), input_.size()),
          differs("bytes after", report.graph_bytes_after(), response_.graph_def().size()),
          differs("clones", report.recomputation().node_count(), originals_.size()),
          differs("new nodes", after_.node_size() - before_.node_size(),
                  outs + ins + static_cast<int64_t>(originals_.size()))}) {
      if (!failure.empty()) return failure;
    }
    return "";
  }

  // A step that runs one of the consumers, or a node that waits for a swap-out, runs all that these
  // wait for, rewritten or not: otherwise it might newly fail, or have an effect.
  std::string Needs() const {
    if (options_.has_budget()) return NeedsOfBudget();
    if (!options_.has_level()) return "";
    for (const v1::TensorSwap& swap : response_.report().swaps()) {
      const std::string producer = swap.tensor().substr(0, swap.tensor().rfind(':'));
      for (const std::string& waiting : swap.deadline_nodes()) {
        if (Ancestors(before_, {waiting}).count(producer) > 0) continue;
        return absl::StrCat("needs: ", waiting, " without ", producer);
      }
      for (const v1::SwapIn& swap_in : swap.swap_ins()) {
        std::set<std::string> consumers;
        for (const v1::InputRef& consumer : swap_in.consumers()) consumers.insert(consumer.node());
        const std::set<std::string> needed = Ancestors(before_, consumers);
        for (const std::string& trigger : swap_in.triggers()) {
          if (needed.count(trigger) == 0) {
            return absl::StrCat("needs: ", swap_in.name(), " does not need ", trigger);
          }
        }
      }
    }
    return NeedsOfPaces();
  }

  // A clone needs its original's ancestors, and its trigger.
  std::string OriginalOf(const std::string& name) const {
    const auto found = originals_.find(name);
    return found == originals_.end() ? name : found->second;
  }

  // Whether a run of `waiting` does without something that `awaited` needs: a source that is
  // neither constant nor variable, or a write.
  std::string NeedsMore(const std::string& waits, const std::string& other) const {
    if (originals_.count(waits) > 0) return ReadersNeedMore(waits, other);
    const std::string& waiting = waits;
    const std::string awaited = OriginalOf(other);
    const std::set<std::string> has = Ancestors(before_, {waiting});
    if (has.count(awaited) > 0) return "";
    std::map<std::string, const NodeDef*> nodes;
    for (const NodeDef& node : before_.node()) nodes[node.name()] = &node;
    for (const std::string& name : Ancestors(before_, {awaited})) {
      if (has.count(name) > 0) continue;
      const NodeDef& node = *nodes.at(name);
      const bool is_source = std::all_of(node.input().begin(), node.input().end(),
                                         [](const std::string& input) { return input[0] == '^'; });
      const bool is_harmless = node.op() == "Const" || node.op() == "NoOp" ||
                               absl::StartsWith(node.op(), "Variable") ||
                               node.op() == "VarHandleOp";
      if ((is_source && !is_harmless) || absl::StartsWith(node.op(), "Assign") ||
          absl::StartsWith(node.op(), "Apply")) {
        return absl::StrCat("needs: ", waiting, " waits for ", awaited, ", which needs ", name);
      }
    }
    return "";
  }

  // The same for a clone: of the nodes that read it, perhaps through other new ones. (It waits for
  // its trigger, for which these were checked before.)
  std::string ReadersNeedMore(const std::string& clone, const std::string& awaited) const {
    const std::map<std::string, int> was_at = IndexNodes(before_);
    std::set<std::string> seen = {clone};
    for (std::vector<std::string> todo = {clone}; !todo.empty();) {
      const std::string name = todo.back();
      todo.pop_back();
      for (const NodeDef& reader : after_.node()) {
        for (const std::string& input : reader.input()) {
          if (input[0] == '^' || SplitInput(input).node != name) continue;
          if (was_at.count(reader.name()) == 0) {
            if (seen.insert(reader.name()).second) todo.push_back(reader.name());
          } else if (std::string fault = NeedsMore(reader.name(), awaited);
                     !fault.empty() && !AllReadersNeed(reader.name(), awaited)) {
            return fault;
          }
        }
      }
    }
    return "";
  }

  // Whether the node is read, and only by nodes that need all that `awaited` needs.
  bool AllReadersNeed(const std::string& node, const std::string& awaited) const {
    int readers = 0;
    for (const NodeDef& reader : before_.node()) {
      for (const std::string& input : reader.input()) {
        if (SplitInput(input).node != node) continue;
        ++readers;
        if (!NeedsMore(reader.name(), awaited).empty()) return false;
      }
    }
    return readers > 0;
  }

  std::string NeedsOfPaces() const {
    for (const v1::TensorSwap& swap : response_.report().swaps()) {
      const std::string producer = swap.tensor().substr(0, swap.tensor().rfind(':'));
      for (const v1::SwapIn& swap_in : swap.swap_ins()) {
        std::vector<std::string> awaited(swap_in.triggers().begin(), swap_in.triggers().end());
        awaited.push_back(producer);
        for (const std::string& node : swap_in.pace_nodes()) {
          for (const std::string& other : awaited) {
            if (std::string fault = NeedsMore(node, other); !fault.empty()) return fault;
          }
        }
      }
    }
    return "";
  }

  std::string NeedsOfBudget() const {
    for (const v1::PlannedClone& clone : response_.plan().clones()) {
      if (clone.trigger().empty()) continue;
      for (const v1::InputRef& consumer : clone.consumers()) {
        std::string fault = NeedsMore(consumer.node(), clone.trigger());
        if (!fault.empty() && !AllReadersNeed(consumer.node(), clone.trigger())) return fault;
      }
    }
    for (const v1::TensorSwap& swap : response_.report().swaps()) {
      const std::string producer = swap.tensor().substr(0, swap.tensor().rfind(':'));
      for (const v1::SwapIn& swap_in : swap.swap_ins()) {
        std::vector<std::string> waiting(swap_in.pace_nodes().begin(), swap_in.pace_nodes().end());
        for (const v1::InputRef& consumer : swap_in.consumers()) waiting.push_back(consumer.node());
        std::vector<std::string> awaited(swap_in.triggers().begin(), swap_in.triggers().end());
        awaited.push_back(producer);
        for (const std::string& node : waiting) {
          for (const std::string& other : awaited) {
            std::string fault = NeedsMore(node, other);
            if (!fault.empty() && !(ReadsClone(node) && AllReadersNeed(node, other))) return fault;
          }
        }
      }
    }
    return "";
  }

  // Whether the node reads a clone, perhaps through other new nodes. It waits for the clone's
  // trigger then, and so may wait for all that this needs.
  bool ReadsClone(const std::string& name) const {
    const std::map<std::string, int> was_at = IndexNodes(before_), is_at = IndexNodes(after_);
    for (std::vector<std::string> todo = {name}; !todo.empty();) {
      const NodeDef& node = after_.node(is_at.at(todo.back()));
      todo.pop_back();
      for (const std::string& input : node.input()) {
        const std::string read = SplitInput(input).node;
        if (originals_.count(read) > 0) return true;
        if (was_at.count(read) == 0) todo.push_back(read);
      }
    }
    return false;
  }

  // Applied, the plan gives the same graph.
  std::string Plan() const {
    v1::RewriteOptions apply;
    response_.plan().SerializeToString(apply.mutable_apply()->mutable_plan());
    const auto applied = Run(input_, apply);
    if (!applied.ok()) return absl::StrCat("plan: ", applied.status().ToString());
    return applied->graph_def() == response_.graph_def() ? "" : "plan: other bytes";
  }

  // The answer can be sent: protobuf reads its own output (but no strings without UTF-8).
  std::string Transport() const {
    v1::RewriteResponse copy;
    return copy.ParseFromString(response_.SerializeAsString()) ? "" : "transport: not readable";
  }

  const std::string& input_;
  const v1::RewriteOptions& options_;
  const v1::RewriteResponse& response_;
  Random* random_;
  const GraphDef before_;
  const GraphDef after_;
  Originals originals_;                // Of clones, by name.
  std::map<std::string, int> clones_;  // Their indices in the plan.
};

bool IsTuned(const v1::LevelStrategy& level) {
  // Omitted options are -1. Groups are not tuned with a threshold and sync_mode 2 or 3.
  return !level.has_swapout_threshold() || !level.has_swapin_ahead() || !level.has_swapin_groupby();
}

// Whether the options, not the graph, are to blame.
bool MayRefuseScope(const v1::ScopeStrategy& scope, const absl::Status& status) {
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return absl::IsInvalidArgument(status) &&
         (reason == v1::ERROR_REASON_NO_STARTING_OP ||
          (reason == v1::ERROR_REASON_NO_BACKWARD_PART && scope.optimizer_scopes().empty()) ||
          reason == v1::ERROR_REASON_NAME_MATCHES_NOTHING);
}

bool MayRefuseBudget(const v1::RewriteOptions& options, const absl::Status& status) {
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return reason == v1::ERROR_REASON_DOES_NOT_FIT ||
         reason == v1::ERROR_REASON_NAME_MATCHES_NOTHING ||  // A device.
         (reason == v1::ERROR_REASON_BAD_OPTION && !options.step().has_batch_size() &&
          absl::StrContains(status.message(), "batch_size"));
}

bool MayRefuseLevel(const v1::RewriteOptions& options, const absl::Status& status) {
  const v1::ErrorReason reason = core::GetErrorReason(status);
  const bool tuned = IsTuned(options.level());
  if (reason == v1::ERROR_REASON_DOES_NOT_FIT) return tuned;
  if (!absl::IsInvalidArgument(status)) return false;
  // A level that the graph does not have; filters that leave no op; tuning without a batch size.
  const bool named = absl::StrContains(status.message(), "serialization") ||
                     absl::StrContains(status.message(), "_by_") ||
                     ((tuned || options.level().pace()) && !options.step().has_batch_size() &&
                      absl::StrContains(status.message(), "batch_size"));
  return reason == v1::ERROR_REASON_NAME_MATCHES_NOTHING ||
         reason == v1::ERROR_REASON_CONFLICTING_OPTIONS ||
         (reason == v1::ERROR_REASON_BAD_OPTION && named);
}

}  // namespace

Verdict CheckRewrite(const std::string& input, const v1::RewriteOptions& options, Random* random,
                     GraphKind kind) {
  Verdict verdict;
  v1::RewriteOptions all = options;
  for (v1::Output output :
       {v1::OUTPUT_GRAPH, v1::OUTPUT_PATCH, v1::OUTPUT_REPORT, v1::OUTPUT_PLAN}) {
    all.add_outputs(output);
  }
  const auto response = Run(input, all);
  if (!response.ok()) {
    verdict.refused = true;
    if (kind == GraphKind::kAny && absl::IsInvalidArgument(response.status())) return verdict;
    const v1::ErrorReason reason = core::GetErrorReason(response.status());
    if (kind == GraphKind::kAnyShapes && reason == v1::ERROR_REASON_BAD_INPUT) return verdict;
    const bool allowed = options.has_apply()    ? reason == v1::ERROR_REASON_BAD_PLAN
                         : options.has_budget() ? MayRefuseBudget(options, response.status())
                         : options.has_level()  ? MayRefuseLevel(options, response.status())
                                               : MayRefuseScope(options.scope(), response.status());
    if (!allowed) verdict.failure = response.status().ToString();
    return verdict;
  }
  verdict.swaps = response->report().swaps_size();
  if (response->report().outcome() == v1::OUTCOME_NOTHING_TO_DO) {
    if (response->graph_def() != input) verdict.failure = "nothing to do, but other bytes";
    if (verdict.swaps > 0) verdict.failure = "nothing to do, but swaps reported";
  } else if (kind == GraphKind::kAny && response->report().outcome() == v1::OUTCOME_FOREIGN) {
    if (response->graph_def() != input) verdict.failure = "foreign, but other bytes";
  } else if (response->report().outcome() != v1::OUTCOME_REWRITTEN ||
             (verdict.swaps == 0 && response->report().added_control_edges().empty() &&
              response->plan().clones().empty())) {
    verdict.failure = absl::StrCat("outcome ", v1::Outcome_Name(response->report().outcome()));
  } else {
    verdict.failure = RewrittenCase(input, all, *response, random).Check();
  }
  return verdict;
}

std::string CheckAnswer(const std::string& input, const v1::RewriteOptions& options,
                        const v1::Limits& limits) {
  const auto run = [&limits](const std::string& bytes, v1::RewriteOptions how) {
    for (v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_REPORT}) how.add_outputs(output);
    return core::Rewrite(bytes, how, limits, core::StopToken());
  };
  v1::RewriteOptions strip;
  strip.mutable_strip();
  const auto response = run(input, options);
  if (!response.ok()) {
    // Anything else would blame Spillway, or the caller's patience, for bytes that are wrong.
    const bool blames_caller =
        absl::IsInvalidArgument(response.status()) ||
        absl::IsFailedPrecondition(response.status()) ||
        core::GetErrorReason(response.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG;
    return blames_caller ? "" : response.status().ToString();
  }
  v1::RewriteResponse sent;
  if (!sent.ParseFromString(response->SerializeAsString())) {
    return "the answer cannot be read: a string in it is not UTF-8";
  }
  const std::string& output = response->graph_def();
  if (response->report().outcome() != v1::OUTCOME_REWRITTEN) {
    const bool may_differ = response->report().outcome() == v1::OUTCOME_STRIPPED ||
                            options.already_rewritten() == v1::ALREADY_REWRITTEN_REPLAN;
    return may_differ || output == input ? "" : "not rewritten, but other bytes";
  }
  const auto stripped = run(output, strip);
  if (!stripped.ok()) return absl::StrCat("strip: ", stripped.status().ToString());
  const auto original = run(input, strip);
  const std::string& expected = original.ok() ? original->graph_def() : input;
  if (stripped->graph_def() != expected) return "strip gives other bytes than the input";
  const auto again = run(output, options);
  if (!again.ok()) return absl::StrCat("again: ", again.status().ToString());
  if (again->graph_def() != output) return "rewriting again gives other bytes";
  const auto before = core::Graph::Parse(expected, limits, core::StopToken());
  const auto after = core::Graph::Parse(output, limits, core::StopToken());
  if (!before.ok() || !after.ok()) return "the answer cannot be read as a graph";
  const auto diff = core::DiffGraphs(*before, *after, core::StopToken());
  if (!diff.ok()) return absl::StrCat("diff: ", diff.status().ToString());
  if (!v1::GraphDiff().ParseFromString(diff->SerializeAsString())) {
    return "diff: cannot be read: a string in it is not UTF-8";
  }
  const bool all_now = expected == input;  // No swaps of an earlier rewrite, on other devices.
  if (all_now && diff->swaps_size() != response->report().swaps_size()) {
    return absl::StrCat("diff: ", diff->swaps_size(), " swaps, the report has ",
                        response->report().swaps_size());
  }
  const int64_t inlined = response->report().inlining().inlined_call_count();
  if (all_now && (inlined > 0) != (diff->inlined_calls_size() > 0)) {
    return absl::StrCat("diff: ", diff->inlined_calls_size(), " calls inlined, the report has ",
                        inlined, " and those in them");
  }
  const bool more = diff->removed_size() > 0 || diff->changed_size() > 0 || diff->reordered() ||
                    diff->library_changed() || diff->versions_changed() ||
                    diff->other_fields_changed();
  return more ? absl::StrCat("diff: more than swaps: ", diff->ShortDebugString()) : "";
}

namespace {

// The options common to all strategies.
void AddCommonOptions(const GraphDef& graph, Random* random, v1::RewriteOptions* options) {
  if (random->OneIn(8)) options->set_min_tensor_bytes(random->Below(5000));
  if (random->OneIn(4)) options->mutable_step()->set_batch_size(random->Between(1, 64));
  if (random->OneIn(8)) options->add_devices("/gpu:0");
  if (random->OneIn(8)) options->set_decision_detail(v1::DECISION_DETAIL_NONE);
  // From far too little memory to ample; the copies' rates make them wait for each other.
  if (random->OneIn(2)) {
    options->mutable_step()->mutable_hardware()->set_gpu_memory_bytes(int64_t{1}
                                                                      << random->Between(8, 34));
  }
  if (random->OneIn(4)) {
    options->mutable_step()->mutable_hardware()->set_host_memory_bytes(random->Below(1 << 20));
  }
  if (random->OneIn(4)) options->mutable_step()->mutable_hardware()->set_d2h_bytes_per_s(1e6);
  if (random->OneIn(6)) options->set_simulation(v1::SIMULATION_OFF);
  for (const NodeDef& node : graph.node()) {
    if (node.op() != "Placeholder") continue;
    const auto dtype = node.attr().find("dtype");
    // A predicate: conditionals take the side that its value says. Its value is a scalar, which the
    // graph must not contradict.
    const auto stated = node.attr().find("shape");
    const bool may_be_scalar =
        node.attr().count("_output_shapes") == 0 &&
        (stated == node.attr().end() || stated->second.shape().dim_size() == 0);
    if (dtype != node.attr().end() && dtype->second.type() == kBool && may_be_scalar &&
        random->OneIn(2)) {
      v1::Feed* feed = options->mutable_step()->add_feeds();
      feed->set_name(node.name());
      if (!random->OneIn(4)) feed->add_values(random->OneIn(2));
      continue;
    }
    if (!random->OneIn(6)) continue;
    v1::Feed* feed = options->mutable_step()->add_feeds();
    feed->set_name(node.name());
    // Shapes that every reader can take, and that contradict no statement: a placeholder's first,
    // of which no dimensions may mean that none are known, then the one that the graph came with.
    static constexpr int64_t kAnySize = 8;
    std::vector<int64_t> dims = {kAnySize, kAnySize};
    const auto follow = [&dims](const TensorShapeProto& stated_shape) {
      if (stated_shape.unknown_rank()) return;
      dims.resize(stated_shape.dim_size(), kAnySize);
      for (int i = 0; i < stated_shape.dim_size(); ++i) {
        if (stated_shape.dim(i).size() >= 0) dims[i] = stated_shape.dim(i).size();
      }
    };
    const auto shapes = node.attr().find("_output_shapes");
    if (stated != node.attr().end() && stated->second.shape().dim_size() > 0) {
      follow(stated->second.shape());
    }
    if (shapes != node.attr().end() && shapes->second.list().shape_size() > 0) {
      follow(shapes->second.list().shape(0));
    }
    for (int64_t dim : dims) feed->add_dims(dim);
    if (random->OneIn(3)) options->mutable_step()->add_targets(node.name());
  }
}

// An index or a Python slice; some lie outside of small graphs' levels.
std::string RandomSlice(Random* random) {
  const int begin = random->Below(12);
  switch (random->Below(5)) {
    case 0:
      return absl::StrCat(begin);
    case 1:
      return absl::StrCat(-1 - begin, ":");
    case 2:
      return absl::StrCat(":", begin + 1);
    case 3:
      return absl::StrCat(begin, "::", random->Between(1, 3));
    default:
      return absl::StrCat(begin, ":", begin + random->Between(1, 10));
  }
}

}  // namespace

v1::RewriteOptions RandomOptions(const GraphDef& graph, Random* random) {
  v1::RewriteOptions options;
  v1::ScopeStrategy& scope = *options.mutable_scope();
  // Without any, the backward part is found from the structure, if there are gradients.
  bool gradients = false;
  for (const NodeDef& node : graph.node()) gradients |= absl::EndsWith(node.op(), "Grad");
  if (!gradients || !random->OneIn(3)) scope.add_optimizer_scopes("gradients");
  if (random->OneIn(4)) scope.add_optimizer_scopes("train");
  if (random->OneIn(2)) {
    // Without a long chain of ops that feed the backward part, none is found: name the sources.
    for (const NodeDef& node : graph.node()) {
      if (node.op() == "Placeholder") scope.add_starting_op_names(node.name());
    }
  }
  if (random->OneIn(3)) scope.set_lb(random->Between(1, 4));
  if (random->OneIn(3)) scope.set_ub(random->Between(std::max(1, scope.lb()), 12));
  scope.set_fuse_swapins(random->OneIn(2));
  scope.set_swap_branches(random->OneIn(3));
  if (random->OneIn(2)) scope.set_branch_threshold(random->Below(4));
  if (random->OneIn(2)) {
    scope.set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
  }
  if (random->OneIn(6)) scope.set_n_tensors(random->Below(4));
  if (random->OneIn(6)) options.set_cpu_device("/job:worker/device:CPU:0");
  if (random->OneIn(8)) scope.add_excl_types("Relu");
  AddCommonOptions(graph, random, &options);
  return options;
}

v1::RewriteOptions RandomLevelOptions(const GraphDef& graph, Random* random) {
  v1::RewriteOptions options;
  v1::LevelStrategy& level = *options.mutable_level();
  if (!random->OneIn(6)) level.set_swapout_threshold(random->OneIn(2) ? 1 : random->Between(1, 8));
  if (!random->OneIn(6)) level.set_swapin_ahead(random->Between(1, 4));
  if (!random->OneIn(6)) level.set_swapin_groupby(random->Below(6));
  level.set_sync_mode(random->Below(4));
  for (int items = random->OneIn(3) ? random->Between(1, 3) : 0; items > 0; --items) {
    level.add_serialization(RandomSlice(random));
  }
  // A tensor of the random graphs has up to 32,000 bytes.
  if (random->OneIn(5)) level.set_serialization_by_size(random->Between(1, 64) * 1e-6);
  const auto scope = [&] {
    const std::string& name = graph.node(random->Below(graph.node_size())).name();
    return name.substr(0, random->Between(1, 3));
  };
  const auto type = [&] { return graph.node(random->Below(graph.node_size())).op(); };
  if (random->OneIn(10)) level.add_excl_output_by_scopes(scope());
  if (random->OneIn(10)) level.add_incl_output_by_scopes(scope());
  if (random->OneIn(10)) level.add_excl_output_by_types(type());
  if (random->OneIn(16)) level.add_incl_output_by_types(type());
  if (random->OneIn(10)) level.add_excl_input_by_scopes(scope());
  if (random->OneIn(10)) level.add_incl_input_by_scopes(scope());
  if (random->OneIn(10)) level.add_excl_input_by_types(type());
  if (random->OneIn(16)) level.add_incl_input_by_types(type());
  if (random->OneIn(4)) level.set_is_training(false);
  if (random->OneIn(6)) options.set_cpu_device("/job:worker/device:CPU:0");
  AddCommonOptions(graph, random, &options);
  if (IsTuned(level) && !random->OneIn(8)) {
    options.mutable_step()->set_batch_size(random->Between(1, 64));
  }
  return options;
}

namespace {

// About the memory of the unchanged step.
void GiveMemory(const GraphDef& graph, Random* random, v1::Step* step) {
  v1::SimulateOptions ample;
  *ample.mutable_step() = *step;
  ample.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(int64_t{1} << 50);
  const auto simulated = core::SimulateGraph(WriteProto(graph), ample, core::DefaultLimits(), {});
  if (!simulated.ok() || simulated->forecast().devices().empty()) return;
  const int64_t peak = simulated->forecast().devices(0).peak_bytes();
  step->mutable_hardware()->set_gpu_memory_bytes(
      std::max<int64_t>(peak * random->Between(30, 110) / 100, 1));
}

}  // namespace

v1::RewriteOptions RandomPacedLevelOptions(const GraphDef& graph, Random* random) {
  v1::RewriteOptions options = RandomLevelOptions(graph, random);
  options.mutable_level()->set_pace(true);
  if (!random->OneIn(8)) options.mutable_step()->set_batch_size(random->Between(1, 64));
  v1::LevelStrategy& level = *options.mutable_level();
  if (random->OneIn(2)) level.clear_serialization();
  if (random->OneIn(2)) level.clear_serialization_by_size();
  if (random->OneIn(2)) {
    options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
    GiveMemory(graph, random, options.mutable_step());
  }
  return options;
}

v1::RewriteOptions RandomBudgetOptions(const GraphDef& graph, Random* random) {
  v1::RewriteOptions options;
  options.mutable_budget()->set_planning_effort(random->OneIn(8) ? v1::PLANNING_EFFORT_MEDIUM
                                                                 : v1::PLANNING_EFFORT_LOW);
  if (random->OneIn(3)) {
    const auto objective = static_cast<v1::PlanningObjective>(random->Between(1, 3));
    options.mutable_budget()->set_objective(objective);
    if (objective != v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY && random->OneIn(2)) {
      options.mutable_budget()->set_max_slowdown(1 + random->Between(0, 16) / 8.0);
    }
  }
  options.mutable_budget()->set_recompute(static_cast<v1::Recompute>(random->Between(1, 3)));
  if (random->OneIn(6)) options.set_cpu_device("/job:worker/device:CPU:0");
  AddCommonOptions(graph, random, &options);
  if (!random->OneIn(8)) options.mutable_step()->set_batch_size(random->Between(1, 64));
  v1::Hardware& hardware = *options.mutable_step()->mutable_hardware();
  if (random->OneIn(2)) hardware.set_allocator_reserve(0);
  if (!random->OneIn(4)) hardware.clear_host_memory_bytes();
  if (random->OneIn(8)) return options;
  // The unchanged step's memory, or a part of that.
  GiveMemory(graph, random, options.mutable_step());
  return options;
}

int LongRunFactor(int factor) {
  const char* flag = std::getenv("SPILLWAY_LONG_TESTS");
  return flag != nullptr && absl::string_view(flag) == "1" ? factor : 1;
}

std::string DescribeCase(absl::string_view what, absl::string_view failure,
                         const std::string& input, const v1::RewriteOptions& options) {
  return absl::StrCat(what, ": ", failure, "\noptions { ", options.ShortDebugString(), " }\n",
                      DescribeGraph(input));
}

}  // namespace spillway::testing
