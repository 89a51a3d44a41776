// What `spillway plot` draws of a graph: the step with its swaps beside the step without.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "spillway/client.h"

namespace spillway::cli {

// A step, and the one before it was rewritten.
struct DrawnStep {
  v1::SimulateReport step;
  absl::optional<v1::SimulateReport> before;
  std::vector<std::string> notes;  // What there is to say of the two, a sentence each.
};

// What a graph that was not rewritten is compared with: the default strategy's plan, or nothing.
enum class Comparison { kNone, kPlan };

// `options`: the step, and which way of running it; memory and trace are asked for in any case.
// Of a graph that was rewritten, before is what strip gives; any other is planned for, by the
// default strategy, unless `comparison` is kNone. Where there is nothing before or after, the notes
// say why. Errors: those of Client::Simulate.
absl::StatusOr<DrawnStep> SimulateToDraw(absl::string_view graph, v1::SimulateOptions options,
                                         Comparison comparison, const Client& client,
                                         const CallOptions& call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_GRAPH_H_
