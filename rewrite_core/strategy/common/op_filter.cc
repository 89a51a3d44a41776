#include "rewrite_core/strategy/common/op_filter.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/graph/near_in_graph.h"

namespace spillway::core {
namespace {

using Strings = OpFilterOptions::Strings;

// An error shows at most this many values of each given filter.
constexpr size_t kShownValues = 3;

std::string OptionName(absl::string_view kind, const OpFilterOptions& options,
                       absl::string_view by) {
  return absl::StrCat(kind, "_", options.side, "_by_", by);
}

absl::Status CheckOverlap(const OpFilterOptions& options, absl::string_view by,
                          const Strings& excluded, const Strings& included) {
  const absl::flat_hash_set<absl::string_view> others(included.begin(), included.end());
  for (const std::string& value : excluded) {
    if (!others.contains(value)) continue;
    const std::string excl = OptionName("excl", options, by);
    const std::string incl = OptionName("incl", options, by);
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        absl::StrCat(Quoted(value), " is in both ", excl, " and ", incl, "; keep one of them"),
        {{"option", excl}, {"other_option", incl}, {"value", value}});
  }
  return absl::OkStatus();
}

absl::Status MatchesNothing(absl::string_view option, absl::string_view value,
                            absl::string_view what, absl::string_view near) {
  return InvalidError(v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                      absl::StrCat(option, " has ", Quoted(value), ", ", what, near,
                                   "; spell it as the graph does"),
                      {{"option", option}, {"value", value}});
}

}  // namespace

absl::Status CheckOpFilter(const OpFilterOptions& options) {
  absl::Status s = CheckOverlap(options, "scopes", options.excl_scopes, options.incl_scopes);
  if (!s.ok()) return s;
  return CheckOverlap(options, "types", options.excl_types, options.incl_types);
}

absl::StatusOr<OpFilter> OpFilter::Create(const Graph& graph, const OpFilterOptions& options,
                                          const StopToken& stop) {
  OpFilter filter(graph, options);
  filter.excl_type_.assign(graph.num_ops(), false);
  filter.incl_type_.assign(graph.num_ops(), false);
  absl::Status s = filter.MatchTypes("excl", options.excl_types, &filter.excl_type_, stop);
  if (s.ok()) s = filter.MatchTypes("incl", options.incl_types, &filter.incl_type_, stop);
  if (s.ok()) s = filter.MatchScopes("excl", options.excl_scopes, &filter.excl_scope_, stop);
  if (s.ok()) s = filter.MatchScopes("incl", options.incl_scopes, &filter.incl_scope_, stop);
  if (!s.ok()) return s;
  return filter;
}

v1::Reason OpFilter::ReasonFor(NodeId id) const {
  const int32_t op = graph_->op_id(id);
  if (excl_type_[op] || (!excl_scope_.empty() && excl_scope_[id])) return v1::REASON_EXCLUDED;
  if (options_.incl_scopes.empty() && options_.incl_types.empty()) return v1::REASON_SWAPPED;
  const bool is_included = incl_type_[op] || (!incl_scope_.empty() && incl_scope_[id]);
  return is_included ? v1::REASON_SWAPPED : v1::REASON_NOT_INCLUDED;
}

absl::Status OpFilter::CheckLeft(const StopToken& stop) const {
  if (!is_given()) return absl::OkStatus();
  StopPoller poll(stop);
  for (NodeId id(0); id < graph_->num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strategy");
    if (ReasonFor(id) == v1::REASON_SWAPPED) return absl::OkStatus();
  }
  return LeavesNothing();
}

// The details have the first values of each.
absl::Status OpFilter::LeavesNothing() const {
  std::vector<std::string> given;
  std::string first, first_values;
  const auto add = [&](absl::string_view kind, absl::string_view by, const Strings& values) {
    if (values.empty()) return;
    if (given.empty()) {
      first = OptionName(kind, options_, by);
      first_values = absl::StrJoin(values, ", ");
    }
    std::vector<std::string> shown;
    for (const std::string& value : values) {
      if (shown.size() == kShownValues) {
        shown.push_back("...");
        break;
      }
      shown.push_back(Quoted(value));
    }
    given.push_back(absl::StrCat(OptionName(kind, options_, by), " ", absl::StrJoin(shown, ", ")));
  };
  add("excl", "scopes", options_.excl_scopes);
  add("incl", "scopes", options_.incl_scopes);
  add("excl", "types", options_.excl_types);
  add("incl", "types", options_.incl_types);
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat("the filters leave no op whose ",
                                   options_.side == "output" ? "outputs could be swapped"
                                                             : "inputs could be swapped in",
                                   " (", absl::StrJoin(given, "; "), "); take some of them away"),
                      {{"option", first}, {"value", first_values}});
}

absl::Status OpFilter::MatchTypes(absl::string_view kind, const Strings& types,
                                  std::vector<bool>* flags, const StopToken& stop) const {
  if (types.empty()) return absl::OkStatus();
  StopPoller poll(stop);
  absl::flat_hash_map<absl::string_view, int32_t> ops;
  for (int32_t op = 0; op < graph_->num_ops(); ++op) {
    if (poll.Tick()) return stop.status("strategy");
    ops.emplace(graph_->op_name(op), op);
  }
  for (const std::string& type : types) {
    if (poll.Tick()) return stop.status("strategy");
    const auto found = ops.find(type);
    if (found == ops.end()) {
      return MatchesNothing(OptionName(kind, options_, "types"), type,
                            "a type that no op of the graph has", NearTypes(*graph_, type));
    }
    (*flags)[found->second] = true;
  }
  return absl::OkStatus();
}

absl::Status OpFilter::MatchScopes(absl::string_view kind, const Strings& scopes, NodeFlags* flags,
                                   const StopToken& stop) const {
  if (scopes.empty()) return absl::OkStatus();
  flags->assign(graph_->num_nodes(), false);
  std::vector<bool> used(scopes.size(), false);
  StopPoller poll(stop);
  // Comparing each name with each scope could take hours. Of the scopes that a name begins with,
  // each begins with the shorter ones; and so does each that lies between them and the name in
  // order of the texts. So the longest is among the last scope up to the name and its enclosing
  // ones.
  std::vector<int> sorted(scopes.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto less = [&scopes](int a, int b) { return scopes[a] < scopes[b]; };
  if (!PolledSort(sorted.begin(), sorted.end(), less, &poll)) return stop.status("strategy");
  constexpr int kNone = -1;
  std::vector<int> enclosing(scopes.size(), kNone);  // The longest other that it begins with.
  for (size_t i = 1; i < sorted.size(); ++i) {
    int other = sorted[i - 1];
    while (other != kNone && !absl::StartsWith(scopes[sorted[i]], scopes[other])) {
      if (poll.Tick()) return stop.status("strategy");
      other = enclosing[other];
    }
    enclosing[sorted[i]] = other;
  }
  for (NodeId id(0); id < graph_->num_nodes(); ++id) {
    const absl::string_view name = graph_->name(id);
    const auto after =
        std::upper_bound(sorted.begin(), sorted.end(), name,
                         [&scopes](absl::string_view text, int i) { return text < scopes[i]; });
    int scope = after == sorted.begin() ? kNone : *(after - 1);
    while (scope != kNone && !absl::StartsWith(name, scopes[scope])) {
      if (poll.Tick()) return stop.status("strategy");
      scope = enclosing[scope];
    }
    if (scope != kNone) (*flags)[id] = used[scope] = true;
    if (poll.Tick()) return stop.status("strategy");
  }
  for (size_t i = sorted.size(); i-- > 0;) {
    if (used[sorted[i]] && enclosing[sorted[i]] != kNone) used[enclosing[sorted[i]]] = true;
  }
  for (int i = 0; i < scopes.size(); ++i) {
    if (used[i]) continue;
    return MatchesNothing(OptionName(kind, options_, "scopes"), scopes[i],
                          "with which no op's name begins", NearScopes(*graph_, scopes[i]));
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
