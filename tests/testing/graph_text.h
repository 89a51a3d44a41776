// Graphs written in the text form (tests/testing/text_form.h), ready for a test to use.
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

// A step of 16 MiB: a variable of 4 and two tensors of 6, none of which can be swapped. Behind the
// hole that the variable's initializer may leave, it takes 20 MiB.
inline constexpr char kTightGraph[] =
    "w = VariableV2() {dtype=float32, shape=(1024,1024), _output_shapes=[(1024,1024)]}\n"
    "r = Identity(w) {T=float32, _output_shapes=[(1024,1024)]}\n"
    "x = RandomUniform(shape) {T=int32, dtype=float32, _output_shapes=[(1536,1024)]}\n"
    "shape = Const() {dtype=int32, _output_shapes=[(2)]}\n"
    "y = MatMul(x, r) {T=float32, _output_shapes=[(1536,1024)]}\n"
    "sum = Sum(y, axes) {T=float32, _output_shapes=[()]}\n"
    "axes = Const() {dtype=int32, _output_shapes=[(2)]}\n";

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

  // The node of that name; ends the program if it is missing.
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
