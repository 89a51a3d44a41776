// Valid graphs with their bytes damaged: a Rewrite must never crash, never return INTERNAL, and if
// it returns OK, its answer must strip back to the damaged input. Runs under the sanitizers too.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/property/properties.h"
#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"

namespace spillway::testing {
namespace {

constexpr int kMaxFailuresShown = 3;

// One to four edits of single bytes or stretches.
std::string Mutate(const std::string& bytes, const std::string& donor, Random* random) {
  std::string out = bytes;
  for (int edits = 1 + random->Below(4); edits > 0 && !out.empty(); --edits) {
    const int at = random->Below(static_cast<int>(out.size()));
    const int length = std::min<int>(1 + random->Below(24), static_cast<int>(out.size()) - at);
    switch (random->Below(7)) {
      case 0:
        out[at] = static_cast<char>(out[at] ^ (1 << random->Below(8)));
        break;
      case 1:
        out[at] = static_cast<char>(random->Next());
        break;
      case 2:  // Lengths and tags are small numbers: one more or less.
        out[at] = static_cast<char>(out[at] + (random->OneIn(2) ? 1 : -1));
        break;
      case 3:
        out.erase(at, length);
        break;
      case 4:
        out.insert(at, out.substr(random->Below(static_cast<int>(out.size())), length));
        break;
      case 5:
        out.insert(at, donor.substr(random->Below(static_cast<int>(donor.size())), length));
        break;
      default:
        out.resize(at);
    }
  }
  return out;
}

v1::RewriteOptions ScopeOptions(v1::AlreadyRewritten already, Random* random) {
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.mutable_scope()->set_fuse_swapins(random->OneIn(2));
  options.mutable_scope()->set_swap_branches(random->OneIn(2));
  options.set_already_rewritten(already);
  return options;
}

v1::RewriteOptions StripOptions() {
  v1::RewriteOptions options;
  options.mutable_strip();
  return options;
}

absl::StatusOr<v1::RewriteResponse> RunRewrite(const std::string& input,
                                               const v1::RewriteOptions& options) {
  return core::Rewrite(input, options, core::DefaultLimits(), core::StopToken());
}

class Mutations : public ::testing::Test {
 protected:
  // Damages `bytes` in `count` ways and checks each answer to `options`.
  void Check(const std::string& what, const std::string& bytes, const std::string& donor,
             const v1::RewriteOptions& options, int count, uint64_t seed) {
    for (int i = 0; i < count; ++i) {
      Random random(seed * 1'000'003 + i);
      const std::string input = Mutate(bytes, donor, &random);
      const std::string failure = CheckAnswer(input, options, core::DefaultLimits());
      answers_ += 1;
      rewritten_ += RunRewrite(input, options).ok();
      if (failure.empty() || ++failures_ > kMaxFailuresShown) continue;
      ADD_FAILURE() << DescribeCase(absl::StrCat(what, " seed ", seed, " mutation ", i), failure,
                                    input, options)
                    << "bytes: 0x" << absl::BytesToHexString(input.substr(0, 20000));
    }
  }

  void TearDown() override {
    std::cout << answers_ << " damaged graphs, " << rewritten_ << " answered\n";
    EXPECT_EQ(failures_, 0);
    // Damage that is always noticed at once would test the first check alone.
    EXPECT_GE(rewritten_, answers_ / 50);
  }

  int answers_ = 0;
  int rewritten_ = 0;
  int failures_ = 0;
};

RandomGraphOptions SmallGraph(uint64_t seed) {
  RandomGraphOptions options;
  options.forward_ops = 3 + static_cast<int>(seed % 6);
  options.conds = seed % 3 == 1;
  options.loops = seed % 3 == 2;
  return options;
}

std::string GraphOfSeed(uint64_t seed) {
  return WriteProto(MakeRandomGraph(seed, SmallGraph(seed)));
}

// 50,000 damaged graphs.
TEST_F(Mutations, OfGraphs) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Check("damaged graph", GraphOfSeed(seed), GraphOfSeed(seed + 1),
          ScopeOptions(v1::ALREADY_REWRITTEN_KEEP, &random), 500 * LongRunFactor(20), seed);
  }
}

// The records of an earlier rewrite are input like the rest.
TEST_F(Mutations, OfRewrittenGraphs) {
  int graphs = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const v1::RewriteOptions keep = ScopeOptions(v1::ALREADY_REWRITTEN_KEEP, &random);
    const auto rewritten = RunRewrite(GraphOfSeed(seed), keep);
    if (!rewritten.ok() || rewritten->report().outcome() != v1::OUTCOME_REWRITTEN) continue;
    ++graphs;
    const std::string donor = GraphOfSeed(seed + 1);
    const int count = 200 * LongRunFactor(20);
    Check("damaged rewritten graph, KEEP", rewritten->graph_def(), donor, keep, count, seed);
    Check("damaged rewritten graph, strip", rewritten->graph_def(), donor, StripOptions(), count,
          seed);
    Check("damaged rewritten graph, REPLAN", rewritten->graph_def(), donor,
          ScopeOptions(v1::ALREADY_REWRITTEN_REPLAN, &random), count, seed);
  }
  EXPECT_GE(graphs, 50);
}

TEST_F(Mutations, OfARealGraph) {
  const std::string graph = ReadTestGraph("cond_v1/graph_shapes.pb");
  Random random(1);
  Check("damaged cond_v1", graph, GraphOfSeed(1), ScopeOptions(v1::ALREADY_REWRITTEN_KEEP, &random),
        2000 * LongRunFactor(20), 1);
}

}  // namespace
}  // namespace spillway::testing
