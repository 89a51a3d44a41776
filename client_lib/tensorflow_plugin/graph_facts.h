// What the plug-in itself has to know of a graph: whether it is one to plan, and the names of its
// devices. All else is the library's.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::tensorflow_plugin {

struct GraphFacts {
  bool ok = true;  // False: the bytes are no GraphDef; nothing else is known then.
  int node_count = 0;
  // The ops of a backward part, or of weight updates, are in it.
  bool trains = false;
  // It has Spillway's swaps, or those of TFLMS.
  bool has_swaps = false;
  // It is a function's: its arguments are _Arg nodes. Otherwise a session's.
  bool is_function = false;
  std::set<std::string> devices;  // As the nodes spell them.
  // Of the nodes that TensorFlow wants to find again, those that one step runs, in the graph's
  // order; and, in a session's graph, those that are fed in place of what they compute.
  std::vector<std::string> targets, fed_ops;
};

// `kept`: the nodes that TensorFlow wants to find again; `fetched`: the results, nodes or tensors.
GraphFacts ReadGraph(std::string_view graph, const std::set<std::string>& kept,
                     const std::set<std::string>& fetched);

// Whether a full device name (/job:localhost/replica:0/task:0/device:CPU:0) is of this type, or is
// the device that `name` tells the end of (/device:CPU:0, CPU:0).
bool IsOfType(std::string_view device, std::string_view type);
bool IsDevice(std::string_view device, std::string_view name);

// The job, replica and task before the device's type and number; "" if there are none.
std::string_view TaskOf(std::string_view device);

// The graph with every node of device `from` (as in IsDevice) on `to` of the same task.
std::string MoveNodes(std::string_view graph, std::string_view from, std::string_view to);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_
