// A trainer that keeps its graph in its own class, not in TensorFlow's, for example one that builds
// graphs for another machine. It rewrites the graph before it starts, in process or on a server,
// and continues with the original if that fails.
//
//   trainer_without_tensorflow GRAPH [HOST:PORT [OPTIONS_JSON]]
//
//   c++ -std=c++11 trainer_without_tensorflow.cc $(pkg-config --cflags --libs spillway)
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "spillway/rewrite_message.h"

namespace {

// Stands for a protobuf message: RewriteMessage needs only these two functions.
class Graph {
 public:
  explicit Graph(std::string bytes = "") : bytes_(std::move(bytes)) {}

  std::string SerializeAsString() const { return bytes_; }
  bool ParseFromArray(const void* data, int size) {
    bytes_.assign(static_cast<const char*>(data), static_cast<size_t>(size));
    return true;
  }

  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

// The training would go here.
void Train(const Graph& graph) { std::cout << "training with " << graph.size() << " bytes\n"; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "Usage: trainer_without_tensorflow GRAPH [HOST:PORT [OPTIONS_JSON]]\n";
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) {
    std::cerr << argv[1] << ": cannot be read\n";
    return 1;
  }
  Graph graph(bytes.str());

  spillway::RewriteMessageOptions options;
  if (argc > 2) options.target = argv[2];
  if (argc > 3) options.options_json = argv[3];
  options.timeout_ms = 60 * 1000;
  const spillway::RewriteMessageResult result = spillway::RewriteMessage(options, &graph);
  if (result.ok()) {
    std::cout << "rewritten: " << bytes.str().size() << " -> " << graph.size()
              << " bytes, report of " << result.report_json.size() << " bytes\n";
  } else {
    std::cout << "not rewritten: " << result.message << " [" << result.reason << "]\n";
  }
  Train(graph);
}
