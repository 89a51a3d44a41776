// Any bytes as a plan, applied to graphs that stay the same (small_graphs.h). A plan's digest is
// made right for each, since no fuzzer guesses it: so the rest reaches its reader.
#include <string>
#include <vector>

#include "rewrite_core/graph/canonical_form.h"
#include "spillway/v1/plan.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/small_graphs.h"
#include "tests/property/properties.h"

namespace spillway::testing {
namespace {

std::vector<std::string> Digests() {
  std::vector<std::string> digests;
  for (const std::string& graph : SmallGraphs()) {
    // Of the last, which is rewritten, that of the graph from before.
    const bool last = digests.size() + 1 == SmallGraphs().size();
    const auto digest = core::CanonicalSha256(last ? SmallGraphs()[0] : graph, core::StopToken());
    RequireNone(digest.ok() ? "" : digest.status().ToString());
    digests.push_back(*digest);
  }
  return digests;
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  static const auto& digests = *new std::vector<std::string>(Digests());
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  spillway::v1::Plan plan;
  const bool is_plan = plan.ParseFromString(bytes);
  for (size_t i = 0; i < digests.size(); ++i) {
    spillway::v1::RewriteOptions options;
    plan.set_graph_sha256(digests[i]);
    options.mutable_apply()->set_plan(is_plan ? plan.SerializeAsString() : bytes);
    const std::string& graph = SmallGraphs()[i];
    const std::string failure = CheckAnswer(graph, options, FuzzLimits());
    if (!failure.empty()) RequireNone(DescribeCase("fuzzed plan", failure, graph, options));
  }
  return 0;
}
