// The facts of a graph that the plug-in itself needs: whether to plan it, and the names of its
// devices. Everything else is left to the library.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::tensorflow_plugin {

struct GraphFacts {
  bool ok = true;  // False: the bytes are not a GraphDef; the other fields are then unset.
  int node_count = 0;
  // Whether it contains ops of a backward part or of weight updates.
  bool trains = false;
  // Whether a function that it calls does, which XLA compiles.
  bool xla_trains = false;
  // Whether it contains swaps of Spillway or TFLMS.
  bool has_swaps = false;
  // Whether it is a function's graph, with _Arg nodes for arguments. Otherwise it is a session's.
  bool is_function = false;
  std::set<std::string> devices;  // As the nodes spell them.
  // Of the nodes that TensorFlow requires to be kept: those that one step runs, in graph order;
  // and, in a session's graph, those that are fed instead of computed.
  std::vector<std::string> targets, fed_ops;
};

// `kept`: the nodes that TensorFlow requires to be kept; `fetched`: the results, nodes or tensors.
GraphFacts ReadGraph(std::string_view graph, const std::set<std::string>& kept,
                     const std::set<std::string>& fetched);

// Whether a full device name (/job:localhost/replica:0/task:0/device:CPU:0) has this type, or ends
// in the device `name` (/device:CPU:0, CPU:0).
bool IsOfType(std::string_view device, std::string_view type);
bool IsDevice(std::string_view device, std::string_view name);

// Returns the job, replica and task before the device's type and number; "" if none.
std::string_view TaskOf(std::string_view device);

// Returns the graph with every node of device `from` (as in IsDevice) moved to `to` of the same
// task.
std::string MoveNodes(std::string_view graph, std::string_view from, std::string_view to);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_GRAPH_FACTS_H_
