// The filters of TFLMS v2: users choose, by name prefix and by type, which ops may have their
// outputs swapped, and which may read swap-ins.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_OP_FILTER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_OP_FILTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// The four lists of one side. They must outlive every filter made from them.
struct OpFilterOptions {
  using Strings = google::protobuf::RepeatedPtrField<std::string>;
  const Strings& excl_scopes;
  const Strings& incl_scopes;
  const Strings& excl_types;
  const Strings& incl_types;
  absl::string_view side;  // `output` or `input`, as in the options' names.
};

// The lists in a strategy's options (v1::LevelStrategy, v1::BudgetStrategy).
template <typename Options>
OpFilterOptions OutputFilterOf(const Options& options) {
  return {options.excl_output_by_scopes(), options.incl_output_by_scopes(),
          options.excl_output_by_types(), options.incl_output_by_types(), "output"};
}
template <typename Options>
OpFilterOptions InputFilterOf(const Options& options) {
  return {options.excl_input_by_scopes(), options.incl_input_by_scopes(),
          options.excl_input_by_types(), options.incl_input_by_types(), "input"};
}

// INVALID_ARGUMENT (CONFLICTING_OPTIONS) if a scope or a type is both included and excluded. Does
// not depend on the graph.
absl::Status CheckOpFilter(const OpFilterOptions& options);

class OpFilter {
 public:
  // INVALID_ARGUMENT (NAME_MATCHES_NOTHING) if a scope or a type matches no op. REQUIRES:
  // CheckOpFilter. `graph` must outlive the result.
  static absl::StatusOr<OpFilter> Create(const Graph& graph, const OpFilterOptions& options,
                                         const StopToken& stop);

  bool is_given() const {
    return !options_.excl_scopes.empty() || !options_.incl_scopes.empty() ||
           !options_.excl_types.empty() || !options_.incl_types.empty();
  }

  // Returns REASON_SWAPPED if the op passes, otherwise REASON_EXCLUDED or REASON_NOT_INCLUDED.
  // Without include lists, every op is included; with two, either may include it.
  v1::Reason ReasonFor(NodeId id) const;

  // Returns LeavesNothing() if the filter is given and no op of the graph passes. Errors: also
  // those of `stop`.
  absl::Status CheckLeft(const StopToken& stop) const;

  // INVALID_ARGUMENT (BAD_OPTION): no op is left. Names the given filters, with their values.
  absl::Status LeavesNothing() const;

 private:
  OpFilter(const Graph& graph, const OpFilterOptions& options)
      : graph_(&graph), options_(options) {}

  absl::Status MatchTypes(absl::string_view kind, const OpFilterOptions::Strings& types,
                          std::vector<bool>* flags, const StopToken& stop) const;
  absl::Status MatchScopes(absl::string_view kind, const OpFilterOptions::Strings& scopes,
                           NodeFlags* flags, const StopToken& stop) const;

  const Graph* graph_;
  OpFilterOptions options_;
  std::vector<bool> excl_type_, incl_type_;  // By Graph::op_id.
  NodeFlags excl_scope_, incl_scope_;        // By node; empty: not given.
};

// The filters of both sides.
struct SwapFilters {
  OpFilter outputs, inputs;

  // Errors: those of OpFilter::Create. `graph` and `options` must outlive the result.
  template <typename Options>
  static absl::StatusOr<SwapFilters> Create(const Graph& graph, const Options& options,
                                            const StopToken& stop) {
    auto outputs = OpFilter::Create(graph, OutputFilterOf(options), stop);
    if (!outputs.ok()) return outputs.status();
    auto inputs = OpFilter::Create(graph, InputFilterOf(options), stop);
    if (!inputs.ok()) return inputs.status();
    return SwapFilters{*std::move(outputs), *std::move(inputs)};
  }
  template <typename Options>
  static absl::Status Check(const Options& options) {
    absl::Status s = CheckOpFilter(OutputFilterOf(options));
    return s.ok() ? CheckOpFilter(InputFilterOf(options)) : s;
  }
};

// Copies the filters from one strategy's options to another's.
template <typename From, typename To>
void CopyFilters(const From& from, To* to) {
  *to->mutable_excl_output_by_scopes() = from.excl_output_by_scopes();
  *to->mutable_incl_output_by_scopes() = from.incl_output_by_scopes();
  *to->mutable_excl_output_by_types() = from.excl_output_by_types();
  *to->mutable_incl_output_by_types() = from.incl_output_by_types();
  *to->mutable_excl_input_by_scopes() = from.excl_input_by_scopes();
  *to->mutable_incl_input_by_scopes() = from.incl_input_by_scopes();
  *to->mutable_excl_input_by_types() = from.excl_input_by_types();
  *to->mutable_incl_input_by_types() = from.incl_input_by_types();
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_OP_FILTER_H_
