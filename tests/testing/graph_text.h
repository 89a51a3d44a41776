// Graphs written in the text form (rewrite_core/graph/text.h), ready for a test to use.
#ifndef SPILLWAY_TESTS_TESTING_GRAPH_TEXT_H_
#define SPILLWAY_TESTS_TESTING_GRAPH_TEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::testing {

// The serialized GraphDef of a text form; ends the program if it does not parse, since the test
// itself is then wrong.
std::string GraphBytes(absl::string_view text);

// Graph::Parse with the default limits and no deadline. `bytes` must outlive the graph.
absl::StatusOr<core::Graph> ParseGraph(absl::string_view bytes);

// A graph together with its bytes. Ends the program if the graph is rejected.
//
//   TestGraph g("a = Relu(b)\nb = NoOp()");
//   g->op(g["a"])
class TestGraph {
 public:
  // Made from the text form, or from bytes.
  explicit TestGraph(absl::string_view text);
  static TestGraph FromBytes(std::string bytes);

  const core::Graph& operator*() const { return *graph_; }
  const core::Graph* operator->() const { return graph_.get(); }
  const std::string& bytes() const { return *bytes_; }

  // The node of that name; ends the program if there is none.
  core::NodeId operator[](absl::string_view name) const;
  core::NodeId Node(absl::string_view name) const { return (*this)[name]; }

  // `node:port`, or `node` for port 0.
  core::Tensor Output(absl::string_view spelling) const;

 private:
  TestGraph() = default;
  void Index(std::string bytes);

  std::unique_ptr<const std::string> bytes_;  // At a fixed address: the graph points into it.
  std::unique_ptr<const core::Graph> graph_;
};

// The text form of serialized bytes, for messages: falls back to protobuf's own text and to hex.
std::string DescribeGraph(absl::string_view bytes);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_GRAPH_TEXT_H_
