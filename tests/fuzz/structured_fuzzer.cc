// Graphs built from a list of operations (graph_program.h), which get past the parser: the
// properties are those of CheckRewrite, the naive executor among them.
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/graph_program.h"
#include "tests/property/properties.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  Choices choices(data, size);
  Random random(choices.TwoBytes());
  const GraphProgram program = BuildGraph(&choices);
  const spillway::v1::RewriteOptions options = RandomOptions(program.graph, &random);
  const std::string input = WriteProto(program.graph);
  // The program combines ops at random, for any shapes.
  const Verdict verdict =
      CheckRewrite(input, options, &random, program.odd ? GraphKind::kAny : GraphKind::kAnyShapes);
  if (!verdict.failure.empty()) {
    RequireNone(DescribeCase("built graph", verdict.failure, input, options));
  }
  return 0;
}
