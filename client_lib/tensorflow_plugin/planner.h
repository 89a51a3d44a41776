// Decides whether a graph is left unchanged or rewritten by Spillway, and logs the result in one
// line.
//
// Left unchanged silently: a graph with swaps (TensorFlow presents each graph twice), one that does
// not train, one with nothing on a GPU, and any graph while the plug-in is disabled. Left unchanged
// with a line that says why and what to do: every graph that should be planned but cannot be
// (`fail_closed`: ends the process).
//
// All but ShownGraphs is thread-safe.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "client_lib/tensorflow_plugin/settings.h"

namespace spillway::tensorflow_plugin {

struct GraphToPlan {
  std::string_view graph;         // A serialized GraphDef.
  std::set<std::string> kept;     // Nodes that TensorFlow requires to be kept.
  std::set<std::string> fetched;  // The results, nodes or tensors.
  // Already reported that it stays unchanged because sizes are unknown: not reported again.
  bool said_unknown = false;
};

// Returns the graph to run instead, or nothing if the graph stays unchanged. `registered_for`: the
// device type, CPU or GPU, for which TensorFlow calls the plug-in. A graph on both is planned for
// CPU only. `unknown`, unless null: whether the graph stays unchanged because sizes are unknown.
std::optional<std::string> PlanGraph(const Settings& settings, std::string_view registered_for,
                                     const GraphToPlan& item, bool* unknown = nullptr);

// The graphs shown to one optimizer of TensorFlow: each again after another iteration of all
// passes. A graph that stayed unchanged stays so, unless sizes were unknown and passes have changed
// it since: constants that the layout pass leaves are folded in the next iteration.
class ShownGraphs {
 public:
  // As PlanGraph.
  std::optional<std::string> Plan(const Settings& settings, std::string_view registered_for,
                                  GraphToPlan item);

 private:
  // Of the last graph that stayed unchanged: its kept and fetched nodes.
  std::set<std::string> left_alone_;
  // If its sizes were unknown: a checksum of it.
  std::optional<size_t> unknown_;
};

// Returns the settings of this process, read at the first graph: a program may set its variables
// after importing TensorFlow.
const Settings& TheSettings();

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_
