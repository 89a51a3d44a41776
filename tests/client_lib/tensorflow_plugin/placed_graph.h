// Graphs of tests/graphs as a graph optimizer sees them: each node with the full name of a device.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_TENSORFLOW_PLUGIN_PLACED_GRAPH_H_
#define SPILLWAY_TESTS_CLIENT_LIB_TENSORFLOW_PLUGIN_PLACED_GRAPH_H_

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "client_lib/tensorflow_plugin/wire.h"

namespace spillway::tensorflow_plugin {

inline constexpr char kTask[] = "/job:localhost/replica:0/task:0";

inline std::string ReadTestGraph(const std::string& path) {
  std::ifstream file(std::string(SPILLWAY_TEST_GRAPHS) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// `device`: as GPU:0. The field of a NodeDef's device is 4, that of a GraphDef's node 1.
inline std::string Placed(std::string_view graph, const std::string& device) {
  std::string out;
  WireReader reader(graph);
  while (reader.Next()) {
    if (!reader.IsBytes(1)) {
      out.append(reader.whole());
      continue;
    }
    std::string node(reader.payload());
    AppendBytesField(4, std::string(kTask) + "/device:" + device, &node);
    AppendBytesField(1, node, &out);
  }
  return out;
}

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_TESTS_CLIENT_LIB_TENSORFLOW_PLUGIN_PLACED_GRAPH_H_
