// Plans that are saved by one rewrite and applied by another, on real graphs.
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"

namespace spillway::core {
namespace {

using testing::FailsWith;
using testing::IsInvalid;
using testing::IsOk;
using testing::ReadTestGraph;
using testing::ValueOrDie;

constexpr char kAllOutputs[] =
    " outputs: OUTPUT_GRAPH outputs: OUTPUT_REPORT outputs: OUTPUT_PLAN ";

v1::RewriteOptions Options(const std::string& text) {
  v1::RewriteOptions options;
  if (!google::protobuf::TextFormat::ParseFromString(text, &options)) std::abort();
  return options;
}

v1::RewriteResponse Answer(const std::string& bytes, const v1::RewriteOptions& options) {
  return ValueOrDie(Rewrite(bytes, options, DefaultLimits(), StopToken()), "rewrite");
}
v1::RewriteResponse Answer(const std::string& bytes, const std::string& options) {
  return Answer(bytes, Options(options));
}

v1::RewriteOptions Applying(const v1::Plan& plan, const std::string& more = kAllOutputs) {
  v1::RewriteOptions options = Options(more);
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  return options;
}

struct SavedCase {
  std::string name;
  std::string file;
  std::string options;
};

// A plan is made once, for all tests of a case.
class SavedPlanTest : public ::testing::TestWithParam<SavedCase> {
 protected:
  static const v1::RewriteResponse& SavedOf(const SavedCase& saved, const std::string& bytes) {
    static auto& made = *new std::map<std::string, v1::RewriteResponse>;
    const auto found = made.find(saved.name);
    if (found != made.end()) return found->second;
    return made.emplace(saved.name, Answer(bytes, saved.options + kAllOutputs)).first->second;
  }

  const std::string bytes_ = ReadTestGraph(GetParam().file);
  const v1::RewriteResponse& saved_ = SavedOf(GetParam(), bytes_);
};

TEST_P(SavedPlanTest, GivesTheSameGraph) {
  ASSERT_EQ(saved_.report().outcome(), v1::OUTCOME_REWRITTEN) << saved_.report().summary();
  EXPECT_EQ(saved_.plan().strategy(), saved_.report().strategy());
  EXPECT_EQ(saved_.plan().swaps_size(), saved_.report().swaps_size());
  EXPECT_EQ(saved_.plan().clones_size(), saved_.report().recomputation().node_count());
  EXPECT_EQ(saved_.plan().format_version(), saved_.plan().clones().empty() ? 1 : 2);
  const v1::RewriteResponse applied = Answer(bytes_, Applying(saved_.plan()));
  EXPECT_TRUE(applied.graph_def() == saved_.graph_def());
  EXPECT_TRUE(Answer(applied.graph_def(), "strip {}").graph_def() == bytes_);
  // And the same report, except where planning matters.
  EXPECT_EQ(applied.report().summary(), saved_.report().summary());
  const auto text = [](const google::protobuf::Message& message) { return message.DebugString(); };
  EXPECT_EQ(text(applied.report().forecast_before()), text(saved_.report().forecast_before()));
  EXPECT_EQ(text(applied.report().forecast_after()), text(saved_.report().forecast_after()));
  ASSERT_EQ(applied.report().swaps_size(), saved_.report().swaps_size());
  for (int i = 0; i < saved_.report().swaps_size(); ++i) {
    EXPECT_EQ(text(applied.report().swaps(i)), text(saved_.report().swaps(i)));
  }
}

TEST_P(SavedPlanTest, IsForTheGraphInWhateverOrderItsAttributesAre) {
  const testing::GraphDef graph = testing::ReadProto(bytes_);
  const std::string forward = testing::WriteProto(graph);
  const std::string backward = testing::WriteProtoBackward(graph);
  ASSERT_NE(forward, backward);
  for (const std::string& other : {forward, backward}) {
    const v1::RewriteResponse applied = Answer(other, Applying(saved_.plan()));
    EXPECT_EQ(testing::Difference(testing::ReadProto(saved_.graph_def()),
                                  testing::ReadProto(applied.graph_def())),
              "");
    EXPECT_TRUE(Answer(applied.graph_def(), "strip {}").graph_def() == other);
    EXPECT_EQ(applied.plan().graph_sha256(), saved_.plan().graph_sha256());
  }
}

TEST_P(SavedPlanTest, ComesBackFromJson) {
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(saved_.plan(), &json).ok());
  v1::Plan plan;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &plan).ok());
  EXPECT_TRUE(Answer(bytes_, Applying(plan)).graph_def() == saved_.graph_def());
}

TEST_P(SavedPlanTest, IsForItsGraphAlone) {
  testing::GraphDef graph = testing::ReadProto(bytes_);
  (*graph.mutable_node(0)->mutable_attr())["_more"].set_b(true);
  EXPECT_THAT(
      Rewrite(testing::WriteProto(graph), Applying(saved_.plan()), DefaultLimits(), StopToken()),
      IsInvalid(v1::ERROR_REASON_OTHER_GRAPH, saved_.plan().graph_sha256()));
}

// With 4 GB of memory, the steps of 64 images do not fit without swaps.
INSTANTIATE_TEST_SUITE_P(
    All, SavedPlanTest,
    ::testing::Values(
        SavedCase{"Scope", "mnist_deep/graph.pb", "scope {}"},
        SavedCase{"ScopeConditional", "cond_v1/graph.pb", "scope { fuse_swapins: true lb: 3 }"},
        SavedCase{"ScopeLoop", "lstm_while/graph.pb", "scope {}"},
        SavedCase{"ScopeOnAnotherCpu", "mnist_deep/graph.pb",
                  "scope { n_tensors: 3 } cpu_device: '/device:CPU:1' min_tensor_bytes: 100"},
        SavedCase{"LevelGiven", "resnet50_tf1/graph_shapes.pb",
                  "level { swapout_threshold: 40 swapin_ahead: 3 swapin_groupby: 10 "
                  "serialization: '3:9' sync_mode: 1 } step { batch_size: 32 }"},
        SavedCase{"LevelSynchronous", "resnet50_tf1/graph_shapes.pb",
                  "level { swapout_threshold: 40 swapin_groupby: 10 sync_mode: 3 } "
                  "step { batch_size: 32 }"},
        SavedCase{"LevelTowers", "resnet50_2tower/graph.pb",
                  "level { swapout_threshold: 40 swapin_ahead: 3 swapin_groupby: 0 } "
                  "step { batch_size: 8 }"},
        SavedCase{"LevelTuned", "resnet50_tf1/graph_shapes.pb",
                  "level {} step { batch_size: 64 hardware { gpu_memory_bytes: 4000000000 } }"},
        SavedCase{"Budget", "resnet50_tf1/graph_shapes.pb",
                  "budget { planning_effort: PLANNING_EFFORT_LOW } "
                  "step { batch_size: 64 hardware { gpu_memory_bytes: 4000000000 } }"},
        SavedCase{"BudgetClones", "resnet50_tf1/graph_shapes.pb",
                  "budget { recompute: RECOMPUTE_ALL planning_effort: PLANNING_EFFORT_LOW } "
                  "step { batch_size: 64 hardware { gpu_memory_bytes: 4000000000 } }"},
        SavedCase{"BudgetClonesAndSwaps", "resnet50_tf1/graph_shapes.pb",
                  "budget { recompute: RECOMPUTE_CHEAP planning_effort: PLANNING_EFFORT_LOW } "
                  "step { batch_size: 64 hardware { gpu_memory_bytes: 4000000000 } }"},
        SavedCase{"BudgetFree", "resnet50_free/graph.pb",
                  "budget { planning_effort: PLANNING_EFFORT_LOW } "
                  "step { batch_size: 64 hardware { gpu_memory_bytes: 4000000000 } }"}),
    testing::CaseName());

// ---- One graph.

class OneSavedPlanTest : public ::testing::Test {
 protected:
  const std::string bytes_ = ReadTestGraph("mnist_deep/graph.pb");
  const v1::RewriteResponse saved_ =
      Answer(bytes_, absl::StrCat("scope {} step { batch_size: 50 }", kAllOutputs));
};

TEST_F(OneSavedPlanTest, IsThereIfItIsAskedFor) {
  EXPECT_TRUE(saved_.has_plan());
  EXPECT_FALSE(Answer(bytes_, "scope {}").has_plan());
  const v1::RewriteResponse alone = Answer(bytes_, "scope {} outputs: OUTPUT_PLAN");
  EXPECT_TRUE(alone.graph_def().empty());
  EXPECT_EQ(alone.plan().swaps_size(), saved_.plan().swaps_size());
  EXPECT_FALSE(alone.plan().has_forecast_after());  // No report was requested.
  EXPECT_TRUE(saved_.plan().has_forecast_after());
  EXPECT_EQ(saved_.plan().version(), Version());
}

TEST_F(OneSavedPlanTest, IsNotThereWhereNoneWasMade) {
  const std::string options = absl::StrCat("scope {}", kAllOutputs);
  EXPECT_FALSE(Answer(saved_.graph_def(), options).has_plan());  // KEPT.
  EXPECT_FALSE(Answer(saved_.graph_def(), absl::StrCat("strip {}", kAllOutputs)).has_plan());
}

TEST_F(OneSavedPlanTest, MayBeEmpty) {
  const v1::RewriteResponse none =
      Answer(bytes_, absl::StrCat("scope { n_tensors: 0 }", kAllOutputs));
  EXPECT_EQ(none.plan().swaps_size(), 0);
  const v1::RewriteResponse applied = Answer(bytes_, Applying(none.plan()));
  EXPECT_EQ(applied.report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_EQ(applied.graph_def(), bytes_);
}

TEST_F(OneSavedPlanTest, OfARewrittenGraphIsKeptOrPlannedAgain) {
  const v1::RewriteResponse kept = Answer(saved_.graph_def(), Applying(saved_.plan()));
  EXPECT_EQ(kept.report().outcome(), v1::OUTCOME_KEPT);
  EXPECT_TRUE(kept.graph_def() == saved_.graph_def());
  // Even if the graph was rewritten differently, its original is the graph of the plan.
  const std::string otherwise = Answer(bytes_, "scope { n_tensors: 1 }").graph_def();
  ASSERT_FALSE(otherwise == saved_.graph_def());
  EXPECT_EQ(Answer(otherwise, Applying(saved_.plan())).report().outcome(), v1::OUTCOME_KEPT);
  const v1::RewriteResponse again =
      Answer(otherwise, Applying(saved_.plan(), "already_rewritten: ALREADY_REWRITTEN_REPLAN"));
  EXPECT_TRUE(again.graph_def() == saved_.graph_def());
}

TEST_F(OneSavedPlanTest, ForAnotherGraphIsRefusedWhateverBecameOfThat) {
  const std::string other = ReadTestGraph("cnn_mnist/graph.pb");
  const std::string rewritten = Answer(other, "scope {}").graph_def();
  ASSERT_FALSE(rewritten == other);
  v1::Plan named = saved_.plan();  // Its step also has names that the other graph lacks.
  named.mutable_step()->add_targets(named.swaps(0).swap_ins(0).consumers(0).node());
  named.mutable_step()->add_feeds()->set_name(named.step().targets(0));
  for (const std::string& graph : {other, rewritten}) {
    for (const v1::Plan& plan : {saved_.plan(), named}) {
      EXPECT_THAT(Rewrite(graph, Applying(plan), DefaultLimits(), StopToken()),
                  IsInvalid(v1::ERROR_REASON_OTHER_GRAPH));
    }
  }
}

// The step in the options overrides the plan's.
TEST_F(OneSavedPlanTest, HasItsStep) {
  EXPECT_EQ(saved_.plan().step().batch_size(), 50);
  const auto peak = [this](const std::string& more) {
    return Answer(bytes_, Applying(saved_.plan(), absl::StrCat(more, kAllOutputs)))
        .report()
        .forecast_before()
        .devices(0)
        .peak_bytes();
  };
  EXPECT_EQ(peak(""), saved_.report().forecast_before().devices(0).peak_bytes());
  EXPECT_EQ(peak("step { batch_size: 500 }"), Answer(bytes_, "scope {} step { batch_size: 500 }")
                                                  .report()
                                                  .forecast_before()
                                                  .devices(0)
                                                  .peak_bytes());
  EXPECT_GT(peak("step { batch_size: 500 }"), peak(""));
  const v1::RewriteResponse on_another = Answer(
      bytes_,
      Applying(saved_.plan(),
               absl::StrCat("step { hardware { gpu_memory_bytes: 12345678 } }", kAllOutputs)));
  EXPECT_EQ(on_another.report().hardware().hardware().gpu_memory_bytes(), 12345678);
  EXPECT_EQ(on_another.report().forecast_before().fit(), v1::FIT_DOES_NOT_FIT);
}

// One tower after the other, as in a rewrite.
TEST(SavedPlansOfTowersTest, ComeOneAfterTheOther) {
  const std::string bytes = ReadTestGraph("resnet50_2tower/graph.pb");
  const std::string level = absl::StrCat(
      "level { swapout_threshold: 40 swapin_ahead: 3 swapin_groupby: 0 } simulation: "
      "SIMULATION_OFF step { batch_size: 8 }",
      kAllOutputs);
  const std::string on_0 = " devices: '/device:GPU:0' ", on_1 = " devices: '/device:GPU:1' ";
  const v1::RewriteResponse first = Answer(bytes, level + on_0);
  const v1::RewriteResponse second = Answer(first.graph_def(), level + on_1);
  ASSERT_EQ(first.report().outcome(), v1::OUTCOME_REWRITTEN);
  ASSERT_EQ(second.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(first.plan().graph_sha256(), second.plan().graph_sha256());
  const v1::RewriteResponse applied = Answer(
      Answer(bytes, Applying(first.plan(), on_0)).graph_def(), Applying(second.plan(), on_1));
  EXPECT_TRUE(applied.graph_def() == second.graph_def());
  EXPECT_TRUE(Answer(applied.graph_def(), "strip {}").graph_def() == bytes);
}

}  // namespace
}  // namespace spillway::core
