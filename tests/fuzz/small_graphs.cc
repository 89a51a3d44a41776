#include "tests/fuzz/small_graphs.h"

#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"

namespace spillway::testing {
namespace {

// Seeds whose graphs have, in a few dozen nodes, all that options name.
constexpr uint64_t kMixedSeed = 7;
constexpr uint64_t kPlainSeed = 3;

std::vector<std::string> MakeGraphs() {
  RandomGraphOptions mixed, plain;
  mixed.forward_ops = 12;
  mixed.conds = mixed.loops = true;
  plain.forward_ops = 6;
  plain.devices = false;
  std::vector<std::string> graphs = {WriteProto(MakeRandomGraph(kMixedSeed, mixed)),
                                     WriteProto(MakeRandomGraph(kPlainSeed, plain))};
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.add_devices("/gpu:0");
  const auto rewritten =
      core::Rewrite(graphs[0], options, core::DefaultLimits(), core::StopToken());
  RequireNone(rewritten.ok() ? "" : rewritten.status().ToString());
  RequireNone(rewritten->report().outcome() == v1::OUTCOME_REWRITTEN ? "" : "nothing to rewrite");
  graphs.push_back(rewritten->graph_def());
  return graphs;
}

}  // namespace

const std::vector<std::string>& SmallGraphs() {
  static const auto& graphs = *new std::vector<std::string>(MakeGraphs());
  return graphs;
}

}  // namespace spillway::testing
