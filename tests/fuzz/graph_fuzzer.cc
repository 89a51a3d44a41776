// Any bytes as a GraphDef: to inspect, rewrite, strip and compare. The properties are those of
// CheckAnswer.
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/inspect/inspect.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/property/properties.h"

namespace spillway::testing {
namespace {

std::vector<v1::RewriteOptions> AllOptions() {
  std::vector<v1::RewriteOptions> all(4);  // The first has the defaults.
  all[1].mutable_scope()->add_optimizer_scopes("gradients");
  all[1].mutable_scope()->add_optimizer_scopes("train");
  all[1].mutable_scope()->set_fuse_swapins(true);
  all[1].set_already_rewritten(v1::ALREADY_REWRITTEN_REPLAN);
  all[2].mutable_scope()->add_optimizer_scopes("g");
  all[2].mutable_scope()->set_starting_scope("[a-fh-z]");
  all[2].mutable_scope()->set_swap_branches(true);
  all[2].mutable_scope()->set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
  all[2].mutable_step()->set_batch_size(1 << 30);
  for (v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_PATCH, v1::OUTPUT_REPORT}) {
    all[2].add_outputs(output);
  }
  all[3].mutable_strip();
  return all;
}

void CheckInspect(const std::string& input, const v1::Limits& limits) {
  v1::InspectOptions options;
  options.mutable_step()->set_batch_size(1 << 30);
  const auto summary = core::Inspect(input, options, limits, core::StopToken());
  if (!summary.ok()) {
    if (!absl::IsInvalidArgument(summary.status())) RequireNone(summary.status().ToString());
    return;
  }
  v1::GraphSummary sent;
  if (!sent.ParseFromString(summary->SerializeAsString())) {
    RequireNone("inspect: the answer cannot be read: a string in it is not UTF-8");
  }
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  static const auto& options = *new std::vector<spillway::v1::RewriteOptions>(AllOptions());
  const std::string input(reinterpret_cast<const char*>(data), size);
  const spillway::v1::Limits limits = FuzzLimits();
  CheckInspect(input, limits);
  for (const spillway::v1::RewriteOptions& some : options) {
    const std::string failure = CheckAnswer(input, some, limits);
    if (!failure.empty()) RequireNone(DescribeCase("fuzzed graph", failure, input, some));
  }
  return 0;
}
