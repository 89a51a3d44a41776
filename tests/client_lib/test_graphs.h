// The graph that the client's tests send, and options that the core accepts for it.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_TEST_GRAPHS_H_
#define SPILLWAY_TESTS_CLIENT_LIB_TEST_GRAPHS_H_

#include <fstream>
#include <sstream>
#include <string>

#include "spillway/v1/options.pb.h"

namespace spillway::testing {

// A training graph of TensorFlow, some 70 KiB.
inline const char kMnistPath[] = SPILLWAY_TEST_GRAPHS "/mnist_deep/graph_shapes.pb";

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline v1::RewriteOptions MnistOptions() {
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("adam_optimizer");
  return options;
}

// A real graph with `bytes` more in an unknown field of its own, which every rewrite keeps.
inline std::string GraphWithPadding(size_t bytes) {
  std::string graph = ReadFile(kMnistPath);
  // Field 1000, length-delimited, in protobuf's wire format.
  graph += "\xc2\x3e";
  size_t length = bytes;
  for (; length >= 0x80; length >>= 7) graph += static_cast<char>(length | 0x80);
  graph += static_cast<char>(length);
  return graph + std::string(bytes, 'x');
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_CLIENT_LIB_TEST_GRAPHS_H_
