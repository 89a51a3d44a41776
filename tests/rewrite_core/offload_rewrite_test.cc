// Rewrites that move optimizer state to the host (BudgetStrategy.offload).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/training_text.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::GraphBytes;
using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::TestGraph;
using testing::TrainedLayers;
using testing::ValueOrDie;

// The two layers have 1,024 KiB of state; a step needs some 300 KiB beside it.
class OffloadRewriteTest : public ::testing::Test {
 protected:
  static v1::RewriteOptions Options(int64_t gpu_memory_kib, const std::string& more = "") {
    v1::RewriteOptions options;
    const std::string text = absl::StrCat(
        "step { targets: 'train' hardware { preset: 'p100_pcie' allocator_reserve: 0 "
        "gpu_memory_bytes: ",
        gpu_memory_kib << 10, " } } budget { offload: OFFLOAD_OPTIMIZER } ",
        "outputs: OUTPUT_GRAPH outputs: OUTPUT_REPORT outputs: OUTPUT_PLAN ", more);
    if (!google::protobuf::TextFormat::ParseFromString(text, &options)) std::abort();
    return options;
  }
  absl::StatusOr<v1::RewriteResponse> TryRewrite(const std::string& bytes,
                                                 const v1::RewriteOptions& options) {
    return Rewrite(bytes, options, DefaultLimits(), StopToken());
  }
  v1::RewriteResponse Answer(const std::string& bytes, const v1::RewriteOptions& options) {
    return ValueOrDie(TryRewrite(bytes, options), "rewrite");
  }

  const std::string bytes_ = GraphBytes(TrainedLayers());
};

constexpr int64_t kRoomForOneGroup = 1200, kRoomForNone = 1000;

TEST_F(OffloadRewriteTest, MovesOnlyWhereNothingElseFits) {
  const v1::RewriteResponse ample = Answer(bytes_, Options(4096));
  EXPECT_FALSE(ample.report().has_offload());
  EXPECT_EQ(ample.report().same_bits(), v1::SAME_BITS_ALWAYS);
  v1::RewriteOptions off = Options(kRoomForOneGroup);
  off.mutable_budget()->set_offload(v1::OFFLOAD_OFF);
  EXPECT_THAT(TryRewrite(bytes_, off),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                        "or keep optimizer state in host memory"));
  const v1::RewriteResponse moved = Answer(bytes_, Options(kRoomForOneGroup));
  EXPECT_EQ(moved.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(moved.report().same_bits(), v1::SAME_BITS_NO);
  const v1::OffloadReport& offload = moved.report().offload();
  EXPECT_EQ(offload.state_bytes(), 4 * 256 * 256 * 4);
  EXPECT_EQ(offload.variable_count(), 2);
  EXPECT_EQ(offload.bytes(), 2 * 256 * 256 * 4);
  EXPECT_EQ(offload.node_count(), 6);
  ASSERT_EQ(offload.moved_size(), 1);
  ASSERT_EQ(moved.report().fits_size(), 1);
  const v1::DeviceFit& fit = moved.report().fits(0);
  EXPECT_EQ(fit.fit(), v1::FIT_FITS);
  EXPECT_LE(fit.peak_bytes(), kRoomForOneGroup << 10);
  // Compared with the graph given.
  EXPECT_EQ(fit.unswapped_peak_bytes(), ample.report().fits(0).unswapped_peak_bytes());
  EXPECT_EQ(fit.full_speed_step_time_ns(), ample.report().fits(0).step_time_ns());
  EXPECT_GT(fit.step_time_ns(), fit.full_speed_step_time_ns());
}

TEST_F(OffloadRewriteTest, MovesMoreWhereThatTakesMore) {
  const v1::RewriteResponse moved = Answer(bytes_, Options(kRoomForNone));
  EXPECT_EQ(moved.report().offload().variable_count(), 4);
  const TestGraph graph = TestGraph::FromBytes(moved.graph_def());
  for (const char* node : {"a/w", "a/m", "a/assign", "a/read", "a/scaled", "a/train", "b/w"}) {
    EXPECT_EQ(graph->device(graph[node]), "/device:CPU:0") << node;
  }
  for (const char* node : {"a/init", "a/out", "a/grad", "train"}) {
    EXPECT_EQ(graph->device(graph[node]), "/gpu:0") << node;
  }
}

TEST_F(OffloadRewriteTest, IsUndoneKeptAndMadeAgain) {
  const v1::RewriteOptions options = Options(kRoomForOneGroup);
  const std::string moved = Answer(bytes_, options).graph_def();
  v1::RewriteOptions strip;
  strip.mutable_strip();
  EXPECT_TRUE(Answer(moved, strip).graph_def() == bytes_);
  const v1::RewriteResponse kept = Answer(moved, options);
  EXPECT_EQ(kept.report().outcome(), v1::OUTCOME_KEPT);
  EXPECT_TRUE(kept.graph_def() == moved);
  const v1::RewriteResponse again =
      Answer(moved, Options(kRoomForOneGroup, "already_rewritten: ALREADY_REWRITTEN_REPLAN"));
  EXPECT_EQ(again.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_TRUE(again.graph_def() == moved);
}

// Some graphs have readers of a variable, or nodes colocated with it, on the host.
TEST_F(OffloadRewriteTest, HoldersThatAreOnTheHostAlready) {
  const std::string bytes = GraphBytes(absl::StrCat(
      TrainedLayers(),
      "a/look = Identity(a/w) @/device:CPU:0 {T=float32, _class=[\"loc:@a/w\"]}\n"
      "a/fresh = IsVariableInitialized(a/w) @/cpu:0 {dtype=float32, _class=[\"loc:@a/w\"]}\n"
      "near = NoOp() @/device:CPU:0 {_class=[\"loc:@a/w\"]}\n"
      "far = NoOp() @/gpu:0 {_class=[\"loc:@near\"]}\n"
      "shown = HistogramSummary(tag, a/second) @/gpu:0 {T=float32}\n"
      "tag = Const() {dtype=string}\n"
      "a/second = Identity(a/w) @/gpu:0 {T=float32, _output_shapes=[(256,256)]}\n"));
  v1::RewriteOptions options = Options(kRoomForNone);
  EXPECT_EQ(Answer(bytes, options).report().offload().variable_count(), 4);
  // A summary in the step races with the update.
  options.mutable_step()->add_targets("shown");
  const absl::StatusOr<v1::RewriteResponse> raced = TryRewrite(bytes, options);
  EXPECT_NE(GetErrorReason(raced.status()), v1::ERROR_REASON_VERIFY_FAILED);
}

TEST_F(OffloadRewriteTest, ASavedPlanGivesTheSame) {
  const v1::RewriteResponse moved = Answer(bytes_, Options(kRoomForOneGroup));
  ASSERT_EQ(moved.plan().format_version(), 3);
  ASSERT_EQ(moved.plan().moved_groups_size(), 1);
  v1::RewriteOptions apply;
  moved.plan().SerializeToString(apply.mutable_apply()->mutable_plan());
  const v1::RewriteResponse applied = Answer(bytes_, apply);
  EXPECT_TRUE(applied.graph_def() == moved.graph_def());
  EXPECT_EQ(applied.report().summary(), moved.report().summary());
  EXPECT_EQ(applied.report().offload().bytes(), moved.report().offload().bytes());
}

TEST_F(OffloadRewriteTest, ASavedPlanMovesWholeGroups) {
  const v1::Plan plan = Answer(bytes_, Options(kRoomForOneGroup)).plan();
  const auto applied = [&](const v1::Plan& edited) {
    v1::RewriteOptions apply;
    edited.SerializeToString(apply.mutable_apply()->mutable_plan());
    return TryRewrite(bytes_, apply);
  };
  v1::Plan half = plan;
  half.mutable_moved_groups(0)->mutable_variables()->RemoveLast();
  EXPECT_THAT(applied(half), IsInvalid(v1::ERROR_REASON_BAD_PLAN, "not all of one group"));
  v1::Plan twice = plan;
  *twice.add_moved_groups() = plan.moved_groups(0);
  EXPECT_THAT(applied(twice), IsInvalid(v1::ERROR_REASON_BAD_PLAN, "group"));
  v1::Plan none = plan;
  none.mutable_moved_groups(0)->clear_variables();
  EXPECT_THAT(applied(none), IsInvalid(v1::ERROR_REASON_BAD_PLAN, "group"));
  v1::Plan missing = plan;
  missing.mutable_moved_groups(0)->set_variables(0, "gone");
  EXPECT_THAT(applied(missing), IsInvalid(v1::ERROR_REASON_BAD_PLAN, "no node 'gone'"));
  v1::Plan older = plan;
  older.set_format_version(2);
  EXPECT_THAT(applied(older), IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "moved group"));
}

TEST_F(OffloadRewriteTest, NoHintAtStateThatIsNotEnough) {
  v1::RewriteOptions off = Options(16);
  off.mutable_budget()->set_offload(v1::OFFLOAD_OFF);
  const absl::Status status = TryRewrite(bytes_, off).status();
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_DOES_NOT_FIT);
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("offload")));
}

TEST_F(OffloadRewriteTest, SaysWhatWasMovedInVain) {
  EXPECT_THAT(TryRewrite(bytes_, Options(16)),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                        "1.00 MiB of 1.00 MiB of state were moved to the host"));
  EXPECT_THAT(
      TryRewrite(GraphBytes(absl::StrCat(TrainedLayers(), "odd = MyOp(a/w, b/w) @/gpu:0\n")),
                 Options(kRoomForNone)),
      FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                "no variable can be moved to the host"));
}

TEST_F(OffloadRewriteTest, TheHostsMemoryIsABudget) {
  v1::RewriteOptions options = Options(kRoomForNone);
  options.mutable_step()->mutable_hardware()->set_host_memory_bytes(1 << 20);
  Answer(bytes_, options);
  options.mutable_step()->mutable_hardware()->set_host_memory_bytes(700 << 10);
  EXPECT_THAT(TryRewrite(bytes_, options),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                        "host_memory_bytes"));
}

TEST_F(OffloadRewriteTest, BadOptions) {
  v1::RewriteOptions unknown = Options(4096);
  unknown.mutable_budget()->set_offload(static_cast<v1::Offload>(77));
  EXPECT_THAT(TryRewrite(bytes_, unknown),
              IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "offload is 77"));
  EXPECT_THAT(TryRewrite(bytes_, Options(4096, "outputs: OUTPUT_PATCH")),
              IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, "offload"));
}

}  // namespace
}  // namespace spillway::core
