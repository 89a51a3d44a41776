// The simulations that `spillway plot` draws for a graph: the step with and without swaps.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "spillway/client.h"

namespace spillway::cli {

// A step, and the same step before the rewrite.
struct DrawnStep {
  v1::SimulateReport step;
  absl::optional<v1::SimulateReport> before;
  std::vector<std::string> notes;  // Remarks on the two, a sentence each.
};

// The comparison for a graph that was not rewritten: the default strategy's plan, or none.
enum class Comparison { kNone, kPlan };

// `options`: the step and its execution model; memory and trace are always requested. For a
// rewritten graph, `before` is the result of strip; any other graph is planned with the default
// strategy, or by `budget` if `recompute` is given, unless `comparison` is kNone. If there is no
// step before or after, the notes say why. Errors: those of Client::Simulate.
absl::StatusOr<DrawnStep> SimulateToDraw(absl::string_view graph, v1::SimulateOptions options,
                                         Comparison comparison, v1::Recompute recompute,
                                         const Client& client, const CallOptions& call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_
