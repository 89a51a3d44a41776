// Inlining's time, in floors (floor.h) measured in the same run, the median of some runs: of a
// graph whose training step is one function, of one with many small calls, and of graphs given on
// the command line. Two floors: that of the input graph, and that of the larger output graph.
// Target: 1 of the latter, and of the former if each function is called once. A graph without
// calls: nothing.
//
//   inline_benchmark [--quick] [GRAPH...]
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inline/inline_calls.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/function_graph.h"

namespace spillway {
namespace {

using benchmarks::Median;

int runs = 15;

std::string BodyOf(int nodes) {
  std::string body = "n0 = Relu(x) {T=float32}\n";
  std::string last = "n0:activations:0";
  for (int i = 1; i < nodes; ++i) {
    absl::StrAppend(&body, "layer", i / 20, "/n", i, " = AddV2(", last, ", n0:activations:0) ",
                    "{T=float32, _output_shapes=[(128,256,256)]}\n");
    last = absl::StrCat("layer", i / 20, "/n", i, ":z:0");
  }
  return absl::StrCat(body, "end = Neg(", last, ") {T=float32}");
}

std::string Calls(int calls, int nodes) {
  std::string text = "a = Placeholder() {dtype=float32}\n";
  std::string last = "a";
  for (int i = 0; i < calls; ++i) {
    absl::StrAppend(&text, "c", i, " = PartitionedCall(", last,
                    ") {Tin=[float32], Tout=[float32], f=\"f\"}\n");
    last = absl::StrCat("c", i);
  }
  return testing::GraphWithFunctions(
      text, {testing::Function("f", "x:float32", "y:float32", BodyOf(nodes), {"y=end:y:0"})});
}

// As protobuf writes it: so the floor wants it.
std::string Rewritten(const std::string& bytes) {
  google::protobuf::Arena arena;
  auto* graph = google::protobuf::Arena::CreateMessage<testing::GraphDef>(&arena);
  std::string out;
  if (!graph->ParseFromString(bytes) || !graph->SerializeToString(&out)) std::abort();
  return out;
}

void Measure(const std::string& name, const std::string& bytes) {
  const core::StopToken stop;
  const v1::Limits limits = core::DefaultLimits();
  std::vector<double> floors, floors_after, inlines, with_parse;
  std::string bytes_after;
  int64_t added = 0, calls = 0;
  for (int i = 0; i < runs; ++i) {
    floors.push_back(benchmarks::FloorSeconds(bytes));
    const core::Graph graph = testing::ValueOrDie(core::Graph::Parse(bytes, limits, stop), "parse");
    const absl::Time begin = absl::Now();
    const core::InlinedCalls inlined =
        testing::ValueOrDie(core::InlineCalls(graph, {}, limits, stop), "inline");
    inlines.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
    if (!inlined.graph_def.empty()) {
      testing::ValueOrDie(core::Graph::Parse(inlined.graph_def, limits, stop), "parse");
    }
    with_parse.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
    if (i == 0) bytes_after = inlined.graph_def.empty() ? bytes : Rewritten(inlined.graph_def);
    floors_after.push_back(benchmarks::FloorSeconds(bytes_after));
    added = inlined.summary.added_node_count();
    calls = inlined.summary.inlined_call_count();
  }
  const double before = Median(floors), after = Median(floors_after);
  const auto floors_of = [before, after](double seconds) {
    return absl::StrFormat("%6.2f floors, %5.2f of the inlined", seconds / before, seconds / after);
  };
  absl::PrintF(
      "%-32s floor %6.2f ms  inline %6.2f ms = %s  with the parse %s  (%d calls, %d nodes)\n", name,
      1e3 * before, 1e3 * Median(inlines), floors_of(Median(inlines)),
      floors_of(Median(with_parse)), calls, added);
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (!paths.empty() && paths[0] == "--quick") {
    paths.erase(paths.begin());
    spillway::runs = 1;
  }
  spillway::Measure("one call of 5,000 nodes", spillway::Calls(1, 5000));
  spillway::Measure("200 calls of 100 nodes", spillway::Calls(200, 100));
  for (const std::string& path : paths) {
    spillway::Measure(path.substr(path.rfind('/') + 1), spillway::testing::ReadFile(path));
  }
}
