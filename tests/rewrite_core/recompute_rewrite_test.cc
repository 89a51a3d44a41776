// Rewrites that recompute nodes (BudgetStrategy.recompute), on real graphs: plans that are faster
// than swaps alone, fit as reported, and name their clones.
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"

namespace spillway::core {
namespace {

using ::testing::HasSubstr;
using testing::ReadTestGraph;
using testing::ValueOrDie;

constexpr int64_t kMiB = 1 << 20;

v1::RewriteOptions Options(const std::string& recompute, int64_t memory_bytes,
                           const std::string& more = "") {
  v1::RewriteOptions options;
  const std::string text = absl::StrCat(
      "budget { recompute: RECOMPUTE_", recompute, " planning_effort: PLANNING_EFFORT_LOW } ",
      "step { hardware { preset: 'a100_40gb_pcie4' allocator_reserve: 0 ",
      "gpu_memory_bytes: ", memory_bytes, " } } outputs: OUTPUT_GRAPH outputs: OUTPUT_REPORT ",
      "outputs: OUTPUT_PLAN ", more);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
  return options;
}

v1::RewriteResponse Answer(const std::string& bytes, const v1::RewriteOptions& options) {
  return ValueOrDie(Rewrite(bytes, options, DefaultLimits(), StopToken()), "rewrite");
}

v1::Forecast Simulated(const std::string& bytes, const v1::Step& step) {
  v1::SimulateOptions options;
  *options.mutable_step() = step;
  return ValueOrDie(SimulateGraph(bytes, options, DefaultLimits(), StopToken()), "simulate")
      .forecast();
}

// About half of a step's memory: with it, swaps wait for a link of 25 GB/s.
TEST(RecomputeRewriteTest, ClonesAloneOrWithSwapsAreFasterThanSwaps) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  int64_t last_ns = 0;
  for (const char* recompute : {"ALL", "CHEAP", "OFF"}) {
    const v1::RewriteOptions options = Options(recompute, 8000 * kMiB);
    const v1::RewriteResponse answer = Answer(bytes, options);
    const v1::DeviceFit& fit = answer.report().fits(0);
    ASSERT_EQ(fit.fit(), v1::FIT_FITS) << recompute;
    EXPECT_GT(fit.step_time_ns(), last_ns) << recompute;
    last_ns = fit.step_time_ns();
    // The bytes alone say the same.
    const v1::Forecast forecast = Simulated(answer.graph_def(), options.step());
    EXPECT_EQ(forecast.step_time_ns(), fit.step_time_ns()) << recompute;
    EXPECT_EQ(forecast.fit(), v1::FIT_FITS) << recompute;
    EXPECT_EQ(answer.report().recomputation().node_count() > 0, recompute != std::string("OFF"));
    EXPECT_TRUE(Answer(answer.graph_def(),
                       [] {
                         v1::RewriteOptions strip;
                         strip.mutable_strip();
                         return strip;
                       }())
                    .graph_def() == bytes);
  }
}

// The bound of swaps knows no latency, and is below the estimate for clones: swaps are planned
// first, and take a multiple.
TEST(RecomputeRewriteTest, WhereSwapsAreFarFromTheirBound) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const auto report = [&](const std::string& recompute) {
    v1::RewriteOptions options = Options(recompute, 15'556 * kMiB);  // 14,000 without the reserve.
    options.mutable_step()->mutable_hardware()->set_copy_latency_s(0.05);
    options.mutable_step()->mutable_hardware()->set_allocator_reserve(0.1);
    return Answer(bytes, options).report();
  };
  const v1::RewriteReport off = report("OFF");
  EXPECT_GT(off.fits(0).step_time_ns(), 2 * off.fits(0).full_speed_step_time_ns());
  for (const char* recompute : {"ALL", "CHEAP"}) {
    const v1::RewriteReport again = report(recompute);
    EXPECT_GT(again.recomputation().node_count(), 0) << recompute;
    EXPECT_EQ(again.swaps_size(), 0) << recompute;
    // Clones alone are tried like any other plan.
    ASSERT_EQ(again.budget().devices_size(), 1) << recompute;
    EXPECT_EQ(again.budget().devices(0).device(), again.fits(0).device());
    EXPECT_EQ(again.budget().devices(0).other_budget_bytes_size(), 3) << recompute;
    EXPECT_EQ(again.budget().devices(0).variation_count(), 20) << recompute;
    EXPECT_LT(again.fits(0).step_time_ns(), off.fits(0).step_time_ns() / 2) << recompute;
    EXPECT_GT(again.fits(0).full_speed_step_time_ns() + again.recomputation().time_ns(),
              off.budget().devices(0).step_time_bound_ns())
        << recompute;
  }
}

TEST(RecomputeRewriteTest, TheReportSaysWhatRunsAgain) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const v1::RewriteResponse answer = Answer(bytes, Options("ALL", 8000 * kMiB));
  const v1::RewriteReport& report = answer.report();
  EXPECT_THAT(report.summary(), HasSubstr("nodes will be recomputed"));
  EXPECT_GT(report.recomputation().bytes(), 0);
  EXPECT_GT(report.recomputation().time_ns(), 0);
  // The time is all that the plan adds, except waits.
  EXPECT_GE(report.fits(0).step_time_ns(),
            report.fits(0).full_speed_step_time_ns() + report.recomputation().time_ns());
  EXPECT_EQ(report.forecast_after().step_time_ns(), report.fits(0).step_time_ns());
  int recomputed = 0;
  for (const v1::Decision& decision : report.decisions()) {
    recomputed += decision.reason() == v1::REASON_RECOMPUTED;
  }
  EXPECT_GT(recomputed, 0);
  EXPECT_LE(recomputed, answer.plan().clones_size());
}

// For users who feed an activation: every clone is in the list, with its original.
TEST(RecomputeRewriteTest, TheReportAndThePatchNameTheClones) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const v1::RewriteResponse answer =
      Answer(bytes, Options("CHEAP", 8000 * kMiB, "outputs: OUTPUT_PATCH"));
  const testing::GraphDef original = testing::ReadProto(bytes);
  const testing::GraphDef rewritten = testing::ReadProto(answer.graph_def());
  std::map<std::string, int> position = testing::IndexNodes(original);
  std::map<std::string, const testing::NodeDef*> nodes;
  for (const testing::NodeDef& node : rewritten.node()) nodes[node.name()] = &node;

  std::map<std::string, std::string> originals;
  int last = -1;
  for (const v1::RecomputedNode& node : answer.report().recomputation().nodes()) {
    ASSERT_EQ(position.count(node.original()), 1) << node.original();
    EXPECT_GT(position[node.original()], last);
    last = position[node.original()];
    EXPECT_GT(node.clones_size(), 0);
    for (const std::string& clone : node.clones()) {
      EXPECT_TRUE(originals.emplace(clone, node.original()).second) << clone;
      ASSERT_EQ(nodes.count(clone), 1) << clone;
      EXPECT_EQ(nodes[clone]->op(), nodes[node.original()]->op());
    }
  }
  int clones = 0;
  for (const auto& [name, node] : nodes) {
    if (!absl::StartsWith(name, "lms/recompute_")) continue;
    EXPECT_EQ(originals.count(name), 1) << name;
    ++clones;
  }
  EXPECT_GT(clones, 0);
  EXPECT_EQ(clones, originals.size());
  EXPECT_EQ(clones, answer.report().recomputation().node_count());
  for (const v1::NewNode& node : answer.patch().new_nodes()) {
    const auto found = originals.find(node.name());
    EXPECT_EQ(node.original(), found == originals.end() ? "" : found->second) << node.name();
  }
}

// CHEAP leaves convolutions and matrix products alone; filters leave more.
TEST(RecomputeRewriteTest, WhatMayRunAgain) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const auto clones = [&](const v1::RewriteOptions& options) {
    const v1::RewriteResponse answer = Answer(bytes, options);
    std::map<std::string, int> ops;
    const testing::GraphDef after = testing::ReadProto(answer.graph_def());
    for (const testing::NodeDef& node : after.node()) {
      if (absl::StartsWith(node.name(), "lms/recompute_")) ++ops[node.op()];
    }
    return ops;
  };
  auto ops = clones(Options("CHEAP", 12'000 * kMiB));
  EXPECT_GT(ops["FusedBatchNormV3"], 0);
  EXPECT_GT(ops["Relu"], 0);
  EXPECT_EQ(ops["Conv2D"], 0);
  EXPECT_GT(clones(Options("ALL", 12'000 * kMiB))["Conv2D"], 0);
  v1::RewriteOptions filtered = Options("CHEAP", 12'000 * kMiB);
  filtered.mutable_budget()->add_excl_output_by_types("FusedBatchNormV3");
  EXPECT_EQ(clones(filtered)["FusedBatchNormV3"], 0);
}

// Keras in TensorFlow 1 has its batch normalization in conditionals: nodes before one are
// recomputed for readers behind it.
TEST(RecomputeRewriteTest, ThroughConditionals) {
  const std::string bytes = ReadTestGraph("resnet50_keras/graph.pb");
  const auto options = [](const std::string& recompute, int64_t memory_bytes) {
    v1::RewriteOptions fed = Options(recompute, memory_bytes);
    const std::string feeds =
        "feeds { name: 'input_1' dims: [32, 224, 224, 3] } "
        "feeds { name: 'predictions_target' dims: [32, 1] } "
        "feeds { name: 'keras_learning_phase' values: 1 }";
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(feeds, fed.mutable_step()));
    return fed;
  };
  const int64_t peak =
      Answer(bytes, options("OFF", int64_t{1} << 50)).report().fits(0).unswapped_peak_bytes();
  const v1::RewriteResponse swaps = Answer(bytes, options("OFF", peak / 2));
  std::map<std::string, int> ops;
  for (const char* recompute : {"CHEAP", "ALL"}) {
    const v1::RewriteResponse answer = Answer(bytes, options(recompute, peak / 2));
    // Swaps alone take twice as long a step as with all the memory.
    EXPECT_LT(5 * answer.report().fits(0).step_time_ns(), 4 * swaps.report().fits(0).step_time_ns())
        << recompute;
    const testing::GraphDef after = testing::ReadProto(answer.graph_def());
    for (const testing::NodeDef& node : after.node()) {
      if (absl::StartsWith(node.name(), "lms/recompute_")) ++ops[node.op()];
    }
  }
  EXPECT_GT(ops["Switch"], 0);
  EXPECT_GT(ops["Merge"], 0);
  EXPECT_GT(ops["FusedBatchNormV3"], 0);
}

// A host without memory for swaps, but with the inputs.
TEST(RecomputeRewriteTest, WithoutHostMemory) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  for (const char* recompute : {"CHEAP", "ALL"}) {
    v1::RewriteOptions options = Options(recompute, 12'000 * kMiB);
    options.mutable_step()->mutable_hardware()->set_host_memory_bytes(0);
    const v1::RewriteReport report = Answer(bytes, options).report();
    EXPECT_EQ(report.fits(0).fit(), v1::FIT_FITS) << recompute;
    EXPECT_GT(report.recomputation().node_count(), 0) << recompute;
    EXPECT_EQ(report.devices_size(), 0) << recompute;
  }
  v1::RewriteOptions off = Options("OFF", 12'000 * kMiB);
  off.mutable_step()->mutable_hardware()->set_host_memory_bytes(0);
  const auto refused = Rewrite(bytes, off, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(refused.status()), v1::ERROR_REASON_DOES_NOT_FIT);
  EXPECT_THAT(refused.status().message(), HasSubstr("host_memory_bytes"));
}

// Whether bits may differ: with clones, and with swaps alone.
TEST(RecomputeRewriteTest, WhetherBitsAreTheSame) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const auto report = [&](const std::string& recompute, int64_t memory_bytes) {
    return Answer(bytes, Options(recompute, memory_bytes)).report();
  };
  EXPECT_EQ(report("ALL", 8000 * kMiB).same_bits(), v1::SAME_BITS_NO);
  for (const char* recompute : {"CHEAP", "OFF"}) {
    const v1::RewriteReport some = report(recompute, 8000 * kMiB);
    EXPECT_EQ(some.same_bits(), v1::SAME_BITS_WITH_ADVICE) << recompute;
    EXPECT_THAT(some.advice().same_bits_config_proto_text(), HasSubstr("arithmetic_optimization"));
  }
  const v1::RewriteReport fits = report("ALL", int64_t{1} << 50);
  EXPECT_EQ(fits.outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_EQ(fits.same_bits(), v1::SAME_BITS_ALWAYS);
}

// Each tower of two is planned in its own memory.
TEST(RecomputeRewriteTest, TwoTowers) {
  const std::string bytes = ReadTestGraph("resnet50_2tower/graph.pb");
  const auto options = [](int64_t memory_bytes) {
    v1::RewriteOptions with_batch = Options("ALL", memory_bytes);
    with_batch.mutable_step()->set_batch_size(8);
    return with_batch;
  };
  const int64_t peak =
      Answer(bytes, options(40'000 * kMiB)).report().fits(0).unswapped_peak_bytes();
  const v1::RewriteResponse answer = Answer(bytes, options(peak / 10 * 6));
  ASSERT_EQ(answer.report().outcome(), v1::OUTCOME_REWRITTEN);
  std::map<std::string, int> clones;
  const testing::GraphDef after = testing::ReadProto(answer.graph_def());
  for (const testing::NodeDef& node : after.node()) {
    if (absl::StartsWith(node.name(), "lms/recompute_")) ++clones[node.device()];
  }
  EXPECT_GE(clones.size(), 2) << answer.report().summary();
}

// The plan with the option keeps the hint's promise; without a better option there is no hint.
TEST(RecomputeRewriteTest, AHintWhereMoreIsClearlyFaster) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const auto report = [&](const std::string& recompute, int64_t memory_bytes) {
    return Answer(bytes, Options(recompute, memory_bytes)).report();
  };
  const int64_t all_ns = report("ALL", 8000 * kMiB).fits(0).step_time_ns();
  for (const char* recompute : {"OFF", "CHEAP"}) {
    const v1::RewriteReport less = report(recompute, 8000 * kMiB);
    const v1::MoreRecompute& more = less.budget().more_recompute();
    EXPECT_EQ(more.recompute(), v1::RECOMPUTE_ALL) << recompute;
    EXPECT_GE(more.step_time_ns(), all_ns) << recompute;
    EXPECT_LE(1.05 * static_cast<double>(more.step_time_ns()),
              static_cast<double>(less.fits(0).step_time_ns()))
        << recompute;
  }
  EXPECT_FALSE(report("ALL", 8000 * kMiB).budget().has_more_recompute());
  EXPECT_FALSE(report("OFF", 40'000 * kMiB).budget().has_more_recompute()) << "it fits";
}

// In less than a quarter of the step's memory, recomputation alone does not suffice.
TEST(RecomputeRewriteTest, AHintOfNodesThatRunAgainBesideSwaps) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const v1::RewriteReport all = Answer(bytes, Options("ALL", 3700 * kMiB)).report();
  EXPECT_GT(all.devices(0).swapped_tensor_count(), 0);
  const v1::RewriteReport cheap = Answer(bytes, Options("CHEAP", 3700 * kMiB)).report();
  const v1::MoreRecompute& more = cheap.budget().more_recompute();
  EXPECT_EQ(more.recompute(), v1::RECOMPUTE_ALL);
  EXPECT_GE(more.step_time_ns(), all.fits(0).step_time_ns());
  EXPECT_LE(1.05 * static_cast<double>(more.step_time_ns()),
            static_cast<double>(cheap.fits(0).step_time_ns()));
}

// Swaps need more host memory than the host has; clones need none.
TEST(RecomputeRewriteTest, AHintWhereMoreFits) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  v1::RewriteOptions options = Options("OFF", 8000 * kMiB);
  options.mutable_step()->mutable_hardware()->set_host_memory_bytes(2000 * kMiB);
  const absl::Status status = Rewrite(bytes, options, DefaultLimits(), StopToken()).status();
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_DOES_NOT_FIT) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("or allow more recomputation (budget.recompute = ALL), which makes a plan fit"));
  EXPECT_EQ(GetErrorInfo(status).metadata().at("recompute"), "all");
  options.mutable_budget()->set_recompute(v1::RECOMPUTE_ALL);
  EXPECT_EQ(Answer(bytes, options).report().fits(0).fit(), v1::FIT_FITS);
}

// CHEAP may do less, so that its bound is no lower; and no plan of these is below its own.
TEST(RecomputeRewriteTest, TheBoundOfBoth) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  int64_t last_ns = 1;
  for (const char* recompute : {"ALL", "CHEAP"}) {
    const v1::RewriteReport report = Answer(bytes, Options(recompute, 8000 * kMiB)).report();
    ASSERT_TRUE(report.budget().has_joint_bound_ns()) << recompute;
    EXPECT_GE(report.budget().joint_bound_ns(), last_ns) << recompute;
    EXPECT_LE(report.budget().joint_bound_ns(), report.fits(0).step_time_ns()) << recompute;
    last_ns = report.budget().joint_bound_ns();
  }
  EXPECT_GE(last_ns,
            Answer(bytes, Options("ALL", 8000 * kMiB)).report().fits(0).full_speed_step_time_ns());
  EXPECT_FALSE(Answer(bytes, Options("OFF", 8000 * kMiB)).report().budget().has_joint_bound_ns());
}

TEST(RecomputeRewriteTest, NothingRunsAgainWhereItFits) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  const v1::RewriteResponse answer = Answer(bytes, Options("ALL", 40'000 * kMiB));
  EXPECT_EQ(answer.report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_TRUE(answer.graph_def() == bytes);
}

TEST(RecomputeRewriteTest, AValueThatIsNone) {
  v1::RewriteOptions options = Options("ALL", 1000 * kMiB);
  options.mutable_budget()->set_recompute(static_cast<v1::Recompute>(9));
  EXPECT_THAT(Rewrite(ReadTestGraph("mnist_deep/graph.pb"), options, DefaultLimits(), StopToken()),
              testing::IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "recompute is 9"));
}

}  // namespace
}  // namespace spillway::core
