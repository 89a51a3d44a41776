#include "rewrite_core/strategy/scope/scope_sets.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/flow/backward_part.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/near_in_graph.h"
#include "rewrite_core/strategy/common/name_pattern.h"
#include "rewrite_core/strategy/scope/scope_defaults.h"
#include "rewrite_core/strategy/scope/seed_search.h"

namespace spillway::core {
namespace {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> ToVector(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

// The patterns of one option.
struct PatternList {
  NamePattern::Kind kind;
  absl::string_view option;
  std::vector<std::string> texts;
};

PatternList StartingScope(const v1::ScopeStrategy& options) {
  PatternList list = {NamePattern::Kind::kPrefix, "starting_scope", {}};
  if (!options.starting_scope().empty()) list.texts.push_back(options.starting_scope());
  return list;
}

PatternList StartingOpNames(const v1::ScopeStrategy& options) {
  return {NamePattern::Kind::kExact, "starting_op_names", ToVector(options.starting_op_names())};
}

std::vector<PatternList> PatternLists(const v1::ScopeStrategy& options) {
  return {
      {NamePattern::Kind::kPrefix, "optimizer_scopes", ToVector(options.optimizer_scopes())},
      StartingScope(options),
      StartingOpNames(options),
      {NamePattern::Kind::kScope, "excl_scopes", ToVector(options.excl_scopes())},
      {NamePattern::Kind::kScope, "incl_scopes", ToVector(options.incl_scopes())},
  };
}

absl::Status ScopeMatchesNothing(absl::string_view option, absl::string_view value,
                                 absl::string_view where, absl::string_view near) {
  return InvalidError(v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                      absl::StrCat(option, " has ", Quoted(value), ", which matches no op", where,
                                   near, "; names and types are those of the graph"),
                      {{"option", option}, {"value", value}});
}

absl::Status Overlap(absl::string_view excl, const Strings& excluded, absl::string_view incl,
                     const Strings& included) {
  // A trailing slash makes no difference to a scope.
  absl::flat_hash_set<absl::string_view> others;
  for (const std::string& value : included) others.insert(absl::StripSuffix(value, "/"));
  for (const std::string& value : excluded) {
    if (!others.contains(absl::StripSuffix(value, "/"))) continue;
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        absl::StrCat(Quoted(value), " is in both ", excl, " and ", incl, "; keep one of them"),
        {{"option", excl}, {"other_option", incl}, {"value", value}});
  }
  return absl::OkStatus();
}

// Flags the nodes of `among` (null: all) that a pattern matches; sets in `*used` which patterns do.
absl::StatusOr<NodeFlags> Match(const Graph& graph, const std::vector<NamePattern>& patterns,
                                const NodeFlags* among, std::vector<bool>* used,
                                SearchBudget* budget) {
  NodeFlags matched(graph.num_nodes(), false);
  used->assign(patterns.size(), false);
  for (NodeId id(0); id < graph.num_nodes() && !patterns.empty(); ++id) {
    if (among != nullptr && !(*among)[id]) continue;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (budget->Spend()) return budget->status("ops in scopes", "give fewer scopes");
      if (matched[id] && (*used)[i]) continue;
      if (patterns[i].Matches(graph.name(id))) matched[id] = (*used)[i] = true;
    }
  }
  return matched;
}

// Flags the nodes of R that scopes or types name; every scope and type must name one.
absl::StatusOr<NodeFlags> Filter(const Graph& graph, const NodeFlags& reachable,
                                 const Strings& scopes, absl::string_view scopes_option,
                                 const Strings& types, absl::string_view types_option,
                                 SearchBudget* budget) {
  auto patterns =
      CreatePatterns(NamePattern::Kind::kScope, ToVector(scopes), scopes_option, budget->stop());
  if (!patterns.ok()) return patterns.status();
  std::vector<bool> used;
  auto flags = Match(graph, *patterns, &reachable, &used, budget);
  if (!flags.ok()) return flags.status();
  constexpr char kWhere[] = " that the starting ops reach";
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      return ScopeMatchesNothing(scopes_option, scopes[i], kWhere, NearScopes(graph, scopes[i]));
  }
  if (types.empty()) return flags;
  const absl::flat_hash_set<absl::string_view> wanted(types.begin(), types.end());
  absl::flat_hash_set<absl::string_view> found;
  std::vector<bool> op_wanted(graph.num_ops());
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    op_wanted[op] = wanted.contains(graph.op_name(op));
  }
  StopPoller poll(budget->stop());
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return budget->stop().status("strategy");
    if (!op_wanted[graph.op_id(id)] || !reachable[id]) continue;
    (*flags)[id] = true;
    found.insert(graph.op(id));
  }
  for (const std::string& type : types) {
    if (!found.contains(type))
      return ScopeMatchesNothing(types_option, type, kWhere, NearTypes(graph, type));
  }
  return flags;
}

absl::Status FindBackward(const StepFacts& facts, const StopToken& stop, ScopeSets* sets) {
  if (absl::Status s = facts.Compute({Fact::kBackwardPart}, stop); !s.ok()) return s;
  sets->backward = facts.backward_part().ops;
  sets->backward_count = std::count(sets->backward.begin(), sets->backward.end(), true);
  sets->backward_found = true;
  sets->updates = facts.backward_part().updates;
  if (sets->backward_count > 0) return absl::OkStatus();
  return InvalidError(
      v1::ERROR_REASON_NO_BACKWARD_PART,
      "the graph has neither gradients nor weight updates (Apply... or Assign... of "
      "a gradient); send a training graph, taken after the optimizer's minimize(), "
      "or name its backward part with optimizer_scopes",
      {{"option", "optimizer_scopes"}});
}

absl::Status SetBackward(const Graph& graph, const v1::ScopeStrategy& options, SearchBudget* budget,
                         ScopeSets* sets) {
  const auto patterns =
      CreatePatterns(NamePattern::Kind::kPrefix, ToVector(options.optimizer_scopes()),
                     "optimizer_scopes", budget->stop());
  if (!patterns.ok()) return patterns.status();
  std::vector<bool> used;
  auto backward = Match(graph, *patterns, nullptr, &used, budget);
  if (!backward.ok()) return backward.status();
  sets->backward = *std::move(backward);
  sets->backward_count = std::count(sets->backward.begin(), sets->backward.end(), true);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) sets->unmatched_scopes.push_back(options.optimizer_scopes(i));
  }
  if (sets->backward_count == 0) {
    return ScopeMatchesNothing("optimizer_scopes", options.optimizer_scopes(0), " of the graph",
                               NearScopes(graph, options.optimizer_scopes(0)));
  }
  return absl::OkStatus();
}

absl::Status NoStartingOp(const Graph& graph, const v1::ScopeStrategy& options,
                          const ScopeSets& sets) {
  const std::string scopes = absl::StrJoin(options.optimizer_scopes(), ", ");
  const std::string size =
      absl::StrCat(sets.backward_count, " of the graph's ", graph.num_nodes(), " ops");
  return InvalidError(
      v1::ERROR_REASON_NO_STARTING_OP,
      absl::StrCat(
          "no op outside the backward part leads to others that feed it, so there is no op "
          "to start from; ",
          sets.backward_found
              ? absl::StrCat("the part that was found has ", size,
                             ": name it with optimizer_scopes")
              : absl::StrCat("optimizer_scopes ", Quoted(scopes), " cover ", size,
                             ": name only those of the gradients and the optimizer"),
          ", or name the start with starting_op_names"),
      {{"option", "optimizer_scopes"}, {"value", scopes}});
}

absl::Status SetSeeds(const StepFacts& facts, const v1::ScopeStrategy& options,
                      SearchBudget* budget, ScopeSets* sets) {
  const Graph& graph = facts.graph();
  std::vector<NamePattern> patterns;
  std::vector<absl::string_view> of_option;
  for (const PatternList& list : {StartingScope(options), StartingOpNames(options)}) {
    auto created = CreatePatterns(list.kind, list.texts, list.option, budget->stop());
    if (!created.ok()) return created.status();
    std::move(created->begin(), created->end(), std::back_inserter(patterns));
    of_option.resize(patterns.size(), list.option);
  }
  if (patterns.empty()) {
    auto seeds = FindSeeds(graph, facts.topology(), sets->backward, budget);
    if (!seeds.ok()) return seeds.status();
    if (seeds->empty()) return NoStartingOp(graph, options, *sets);
    sets->seeds = *std::move(seeds);
    sets->seeds_found = true;
    return absl::OkStatus();
  }
  std::vector<bool> used;
  const auto matched = Match(graph, patterns, nullptr, &used, budget);
  if (!matched.ok()) return matched.status();
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      return ScopeMatchesNothing(of_option[i], patterns[i].text(), " of the graph",
                                 NearScopes(graph, patterns[i].text()));
  }
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if ((*matched)[id]) sets->seeds.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckScopeOptions(const v1::ScopeStrategy& options, const StopToken& stop) {
  const ScopeDefaults values(options);
  if (values.lb < 1) return BadOptionError("lb", values.lb, "give a distance in levels, 1 or more");
  if (values.ub < 1) return BadOptionError("ub", values.ub, "give a distance in levels, 1 or more");
  if (values.lb > values.ub) {
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        absl::StrCat("lb is ", values.lb, " and ub is ", values.ub, "; lb must not be above ub"),
        {{"option", "lb"},
         {"value", absl::StrCat(values.lb)},
         {"other_option", "ub"},
         {"other_value", absl::StrCat(values.ub)}});
  }
  if (options.branch_threshold() < 0) {
    return BadOptionError("branch_threshold", options.branch_threshold(),
                          "give a distance in levels, 0 or more");
  }
  if (options.has_debug_level() && (options.debug_level() < 1 || options.debug_level() > 2)) {
    return BadOptionError("debug_level", options.debug_level(),
                          "give 1 for the starting ops, or 2 for every op that the walk passes");
  }
  if (!v1::ScopeStrategy::CtrldStrategy_IsValid(options.ctrld_strategy())) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("ctrld_strategy is ", options.ctrld_strategy(),
                     ", which this server does not know; use CHAIN_RULE or "
                     "DIRECT_ORDER"),
        {{"option", "ctrld_strategy"}, {"value", absl::StrCat(options.ctrld_strategy())}});
  }
  absl::Status status =
      Overlap("excl_scopes", options.excl_scopes(), "incl_scopes", options.incl_scopes());
  if (!status.ok()) return status;
  status = Overlap("excl_types", options.excl_types(), "incl_types", options.incl_types());
  if (!status.ok()) return status;
  for (const PatternList& list : PatternLists(options)) {
    auto patterns = CreatePatterns(list.kind, list.texts, list.option, stop);
    if (!patterns.ok()) return patterns.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<ScopeSets> BuildScopeSets(const StepFacts& facts, const v1::ScopeStrategy& options,
                                         SearchBudget* budget, const StopToken& stop) {
  const Graph& graph = facts.graph();
  ScopeSets sets;
  absl::Status backward = options.optimizer_scopes().empty()
                              ? FindBackward(facts, stop, &sets)
                              : SetBackward(graph, options, budget, &sets);
  if (!backward.ok()) return backward;
  if (absl::Status s = SetSeeds(facts, options, budget, &sets); !s.ok()) return s;

  auto reachable = ReachedFrom(graph, sets.seeds, nullptr, stop);
  if (!reachable.ok()) return reachable.status();
  sets.reachable = *std::move(reachable);

  auto excluded = Filter(graph, sets.reachable, options.excl_scopes(), "excl_scopes",
                         options.excl_types(), "excl_types", budget);
  if (!excluded.ok()) return excluded.status();
  sets.excluded = *std::move(excluded);
  std::vector<bool> op_excluded(graph.num_ops());
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    op_excluded[op] = std::find(std::begin(kExcludedTypes), std::end(kExcludedTypes),
                                graph.op_name(op)) != std::end(kExcludedTypes);
  }
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (op_excluded[graph.op_id(id)]) sets.excluded[id] = true;
  }

  auto included = Filter(graph, sets.reachable, options.incl_scopes(), "incl_scopes",
                         options.incl_types(), "incl_types", budget);
  if (!included.ok()) return included.status();
  sets.not_included.assign(graph.num_nodes(), false);
  if (!options.incl_scopes().empty() || !options.incl_types().empty()) {
    for (NodeId id(0); id < graph.num_nodes(); ++id) sets.not_included[id] = !(*included)[id];
  }
  return sets;
}

}  // namespace spillway::core
