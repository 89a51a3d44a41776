// The helper for messages, with a class that only looks like one. C++11.
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "spillway/rewrite_message.h"

struct Message {
  std::string bytes;
  std::string SerializeAsString() const { return bytes; }
  bool ParseFromArray(const void* data, int size) {
    bytes.assign(static_cast<const char*>(data), size);
    return true;
  }
};

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  Message graph{bytes.str()};
  spillway::RewriteMessageOptions options;
  options.options_json = "{\"scope\": {\"n_tensors\": 3}}";
  const spillway::RewriteMessageResult result = spillway::RewriteMessage(options, &graph);
  if (!result.ok() || graph.bytes.size() <= bytes.str().size()) {
    std::cerr << result.message << " [" << result.reason << "]\n";
    return 1;
  }
  options.options_json = "{\"scoop\": {}}";
  const Message before = graph;
  const spillway::RewriteMessageResult error = spillway::RewriteMessage(options, &graph);
  if (error.ok() || error.reason != "BAD_OPTION" || graph.bytes != before.bytes) return 1;
  std::cout << "bytes: " << graph.bytes.size() << "\n";
}
