// The decision on one graph: left alone, or rewritten by Spillway. Says what it did in one line.
//
// Left alone without a word: a graph with swaps in it (TensorFlow shows each graph twice), one that
// does not train, one with nothing on a GPU, anything while the plug-in is off. Left alone with a
// line that says why and what to do: all that should be planned and cannot be (`fail_closed`: ends
// the process).
//
// Thread-safe.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "client_lib/tensorflow_plugin/settings.h"

namespace spillway::tensorflow_plugin {

struct GraphToPlan {
  std::string_view graph;         // A serialized GraphDef.
  std::set<std::string> kept;     // Nodes that TensorFlow wants to find again.
  std::set<std::string> fetched;  // The results, nodes or tensors.
};

// The graph to run instead; none: the graph stays as it is. `registered_for`: the type of device,
// CPU or GPU, for which TensorFlow asks. A graph on both is planned for CPU alone.
std::optional<std::string> PlanGraph(const Settings& settings, std::string_view registered_for,
                                     const GraphToPlan& item);

// The settings of this process, read when the first graph comes: a program may set its variables
// after it has imported TensorFlow.
const Settings& TheSettings();

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_PLANNER_H_
