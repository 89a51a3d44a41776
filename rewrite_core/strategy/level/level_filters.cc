#include "rewrite_core/strategy/level/level_filters.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/analysis/device_name.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/level/inactive_ops.h"
#include "rewrite_core/strategy/level/level_parameters.h"

namespace spillway::core {
namespace {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

// Never a producer, never a consumer. TFLMS v2 means AssignSubVariableOp and ResourceGather too,
// and lets them through for want of a comma.
constexpr absl::string_view kBuiltInTypes[] = {
    "Assign",
    "AssignAdd",
    "AssignAddVariableOp",
    "AssignSub",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "Const",
    "Identity",
    "Placeholder",
    "PlaceholderWithDefault",
    "Queue",
    "RandomUniform",
    "Range",
    "Read",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceScatterAdd",
    "ResourceScatterDiv",
    "ResourceScatterMax",
    "ResourceScatterMin",
    "ResourceScatterMul",
    "ResourceScatterNdAdd",
    "ResourceScatterNdUpdate",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ScatterAdd",
    "ScatterSub",
    "ScatterUpdate",
    "TruncatedNormal",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
};

// The four filters of one side, and what they are called.
struct Side {
  const Strings& excl_scopes;
  const Strings& incl_scopes;
  const Strings& excl_types;
  const Strings& incl_types;
  absl::string_view noun;  // `output` or `input`.
};

Side OutputSide(const v1::LevelStrategy& options) {
  return {options.excl_output_by_scopes(), options.incl_output_by_scopes(),
          options.excl_output_by_types(), options.incl_output_by_types(), "output"};
}

Side InputSide(const v1::LevelStrategy& options) {
  return {options.excl_input_by_scopes(), options.incl_input_by_scopes(),
          options.excl_input_by_types(), options.incl_input_by_types(), "input"};
}

std::string OptionName(absl::string_view kind, const Side& side, absl::string_view by) {
  return absl::StrCat(kind, "_", side.noun, "_by_", by);
}

absl::Status CheckOverlap(const Side& side, absl::string_view by, const Strings& excluded,
                          const Strings& included) {
  const absl::flat_hash_set<absl::string_view> others(included.begin(), included.end());
  for (const std::string& value : excluded) {
    if (!others.contains(value)) continue;
    const std::string excl = OptionName("excl", side, by), incl = OptionName("incl", side, by);
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        absl::StrCat(Quoted(value), " is in both ", excl, " and ", incl, "; keep one of them"),
        {{"option", excl}, {"other_option", incl}, {"value", value}});
  }
  return absl::OkStatus();
}

absl::Status MatchesNothing(absl::string_view option, absl::string_view value,
                            absl::string_view what) {
  return InvalidError(
      v1::ERROR_REASON_NAME_MATCHES_NOTHING,
      absl::StrCat(option, " has ", Quoted(value), ", ", what, "; spell it as the graph does"),
      {{"option", option}, {"value", value}});
}

class SideFilter {
 public:
  SideFilter(const Graph& graph, const Side& side) : graph_(graph), side_(side) {}

  absl::Status Check(const StopToken& stop) {
    excl_type_.assign(graph_.num_ops(), false);
    incl_type_.assign(graph_.num_ops(), false);
    if (absl::Status s = MatchTypes("excl", side_.excl_types, &excl_type_, stop); !s.ok()) {
      return s;
    }
    if (absl::Status s = MatchTypes("incl", side_.incl_types, &incl_type_, stop); !s.ok()) {
      return s;
    }
    if (absl::Status s = MatchScopes("excl", side_.excl_scopes, &excl_scope_, stop); !s.ok()) {
      return s;
    }
    return MatchScopes("incl", side_.incl_scopes, &incl_scope_, stop);
  }

  bool is_given() const {
    return !side_.excl_scopes.empty() || !side_.incl_scopes.empty() || !side_.excl_types.empty() ||
           !side_.incl_types.empty();
  }

  bool IsExcluded(NodeId id) const {
    return excl_type_[graph_.op_id(id)] || (!excl_scope_.empty() && excl_scope_[id]);
  }
  // By any of the two lists; without lists, every op is.
  bool IsIncluded(NodeId id) const {
    if (side_.incl_scopes.empty() && side_.incl_types.empty()) return true;
    return incl_type_[graph_.op_id(id)] || (!incl_scope_.empty() && incl_scope_[id]);
  }

  // The filters that are given, with their values; as details, the first of them.
  absl::Status LeaveNothing() const {
    std::vector<std::string> given;
    std::string first, first_values;
    const auto add = [&](absl::string_view kind, absl::string_view by, const Strings& values) {
      if (values.empty()) return;
      if (given.empty()) {
        first = OptionName(kind, side_, by);
        first_values = absl::StrJoin(values, ", ");
      }
      std::vector<std::string> shown;
      for (const std::string& value : values) {
        if (shown.size() == 3) {
          shown.push_back("...");
          break;
        }
        shown.push_back(Quoted(value));
      }
      given.push_back(absl::StrCat(OptionName(kind, side_, by), " ", absl::StrJoin(shown, ", ")));
    };
    add("excl", "scopes", side_.excl_scopes);
    add("incl", "scopes", side_.incl_scopes);
    add("excl", "types", side_.excl_types);
    add("incl", "types", side_.incl_types);
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("the filters leave no op whose ",
                                     side_.noun == "output" ? "outputs could be swapped"
                                                            : "inputs could be swapped in",
                                     " (", absl::StrJoin(given, "; "), "); take some of them away"),
                        {{"option", first}, {"value", first_values}});
  }

 private:
  absl::Status MatchTypes(absl::string_view kind, const Strings& types, std::vector<bool>* flags,
                          const StopToken& stop) const {
    if (types.empty()) return absl::OkStatus();
    StopPoller poll(stop);
    absl::flat_hash_map<absl::string_view, int32_t> ops;
    for (int32_t op = 0; op < graph_.num_ops(); ++op) {
      if (poll.Tick()) return stop.status("strategy");
      ops.emplace(graph_.op_name(op), op);
    }
    for (const std::string& type : types) {
      if (poll.Tick()) return stop.status("strategy");
      const auto found = ops.find(type);
      if (found != ops.end()) {
        (*flags)[found->second] = true;
      } else {
        return MatchesNothing(OptionName(kind, side_, "types"), type,
                              "a type that no op of the graph has");
      }
    }
    return absl::OkStatus();
  }

  absl::Status MatchScopes(absl::string_view kind, const Strings& scopes, NodeFlags* flags,
                           const StopToken& stop) const {
    if (scopes.empty()) return absl::OkStatus();
    flags->assign(graph_.num_nodes(), false);
    std::vector<bool> used(scopes.size(), false);
    StopPoller poll(stop);
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      for (int i = 0; i < scopes.size(); ++i) {
        if (poll.Tick()) return stop.status("strategy");
        if (absl::StartsWith(graph_.name(id), scopes[i])) (*flags)[id] = used[i] = true;
      }
    }
    for (int i = 0; i < scopes.size(); ++i) {
      if (used[i]) continue;
      return MatchesNothing(OptionName(kind, side_, "scopes"), scopes[i],
                            "with which no op's name begins");
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Side side_;
  std::vector<bool> excl_type_, incl_type_;  // By Graph::op_id.
  NodeFlags excl_scope_, incl_scope_;        // By node; empty: not given.
};

}  // namespace

absl::Status CheckLevelFilters(const v1::LevelStrategy& options) {
  for (const Side& side : {OutputSide(options), InputSide(options)}) {
    absl::Status status = CheckOverlap(side, "scopes", side.excl_scopes, side.incl_scopes);
    if (!status.ok()) return status;
    status = CheckOverlap(side, "types", side.excl_types, side.incl_types);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<LevelFilters> LevelFilters::Create(const StepFacts& facts,
                                                  const v1::LevelStrategy& options,
                                                  const StopToken& stop) {
  const Graph& graph = facts.graph();
  LevelFilters filters(graph);
  auto inactive =
      FindInactiveOps(graph, facts.control_flow(), LevelParameters(options).is_training, stop);
  if (!inactive.ok()) return inactive.status();
  filters.inactive_ = *std::move(inactive);

  SideFilter output(graph, OutputSide(options));
  if (absl::Status s = output.Check(stop); !s.ok()) return s;
  SideFilter input(graph, InputSide(options));
  if (absl::Status s = input.Check(stop); !s.ok()) return s;

  const absl::flat_hash_set<absl::string_view> built_in(std::begin(kBuiltInTypes),
                                                        std::end(kBuiltInTypes));
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    filters.built_in_.push_back(built_in.contains(graph.op_name(op)));
  }
  for (int32_t device = 0; device < graph.num_devices(); ++device) {
    filters.is_cpu_.push_back(IsCpuDevice(graph.device_name(device)));
  }
  filters.producer_.assign(graph.num_nodes(), v1::REASON_SWAPPED);
  filters.consumer_.assign(graph.num_nodes(), true);
  bool any_producer = false, any_consumer = false;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strategy");
    const bool built_in_op = filters.built_in_[graph.op_id(id)];
    uint8_t& producer = filters.producer_[id];
    if (filters.IsOnCpu(id)) {
      producer = v1::REASON_CPU_PRODUCER;
    } else if (built_in_op || output.IsExcluded(id)) {
      producer = v1::REASON_EXCLUDED;
    } else if (!output.IsIncluded(id)) {
      producer = v1::REASON_NOT_INCLUDED;
    } else if (filters.inactive_[id]) {
      producer = v1::REASON_INACTIVE;
    }
    filters.consumer_[id] = !filters.IsOnCpu(id) && !built_in_op && !input.IsExcluded(id) &&
                            input.IsIncluded(id) && !filters.inactive_[id];
    any_producer = any_producer || producer == v1::REASON_SWAPPED;
    any_consumer = any_consumer || filters.consumer_[id];
  }
  if (!any_producer && output.is_given()) return output.LeaveNothing();
  if (!any_consumer && input.is_given()) return input.LeaveNothing();
  return filters;
}

}  // namespace spillway::core
