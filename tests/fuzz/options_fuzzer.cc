// Any bytes as RewriteOptions, on graphs that stay the same (small_graphs.h).
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/small_graphs.h"
#include "tests/property/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  spillway::v1::RewriteOptions options;
  if (!options.ParseFromArray(data, static_cast<int>(size))) return -1;  // Not for the corpus.
  for (const std::string& graph : SmallGraphs()) {
    const std::string failure = CheckAnswer(graph, options, FuzzLimits());
    if (!failure.empty()) RequireNone(DescribeCase("fuzzed options", failure, graph, options));
  }
  return 0;
}
