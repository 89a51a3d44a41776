// Wrong moves of state to the host: each is refused, by the check that it breaks.
#include "rewrite_core/apply/offload_verifier.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/state_groups.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/training_text.h"

namespace spillway::core {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TestGraph;
using testing::TrainedLayers;
using testing::ValueOrDie;

constexpr char kHost[] = "/device:CPU:0";
const char* const kLayerA[] = {"a/w", "a/m", "a/assign", "a/read", "a/scaled", "a/train"};

struct OffloadVerifierTest : ::testing::Test {
  // Verifies the graph with the edits that `collect` makes.
  absl::Status Verify(const std::function<void(GraphEdit*)>& collect, v1::Step step = {}) {
    GraphEdit edit(*graph_);
    collect(&edit);
    const TestGraph after =
        TestGraph::FromBytes(ValueOrDie(edit.Apply(StopToken()), "the edited graph"));
    if (step.targets().empty()) step.add_targets("train");
    return VerifyMoves(*graph_, *after, step, {}, StopToken());
  }
  absl::Status VerifyMoved(const std::vector<std::string>& names, const v1::Step& step = {}) {
    std::vector<NodeId> nodes;
    for (const std::string& name : names) nodes.push_back(graph_[name]);
    return Verify(
        [&](GraphEdit* edit) {
          EXPECT_THAT(WriteMoves(*graph_, nodes, StopToken(), edit), IsOk());
        },
        step);
  }
  static std::vector<std::string> Layer() { return {std::begin(kLayerA), std::end(kLayerA)}; }
  static std::vector<std::string> LayerWithout(absl::string_view node) {
    std::vector<std::string> names;
    for (const char* name : kLayerA) {
      if (name != node) names.emplace_back(name);
    }
    return names;
  }
  static std::vector<std::string> LayerWith(absl::string_view node) {
    std::vector<std::string> names = Layer();
    names.emplace_back(node);
    return names;
  }
  static auto IsRefusedBy(absl::string_view check) {
    return FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
                     absl::StrCat("(check ", check, ")"));
  }

  TestGraph graph_{TrainedLayers()};
};

TEST_F(OffloadVerifierTest, AWholeGroupWithItsConePasses) {
  EXPECT_THAT(VerifyMoved(Layer()), IsOk());
  EXPECT_THAT(VerifyMoved(LayerWithout("a/scaled")), IsOk());
  EXPECT_THAT(VerifyMoved({}), IsOk());
}

TEST_F(OffloadVerifierTest, HalfAGroup) {
  for (const char* left : {"a/w", "a/m", "a/assign"}) {
    EXPECT_THAT(VerifyMoved(LayerWithout(left)), IsRefusedBy("group")) << left;
  }
  EXPECT_THAT(VerifyMoved({"a/w", "a/m", "a/assign", "a/read"}), IsRefusedBy("group"));
}

TEST_F(OffloadVerifierTest, AColocationThatIsLeft) {
  EXPECT_THAT(Verify([&](GraphEdit* edit) {
                for (const char* name : kLayerA) {
                  if (name != std::string("a/m")) edit->PlaceNode({graph_[name], kHost, {}});
                }
                edit->PlaceNode({graph_["a/m"], {}, {}});
              }),
              IsRefusedBy("colocation"));
}

TEST_F(OffloadVerifierTest, AColocationThatIsLost) {
  EXPECT_THAT(Verify([&](GraphEdit* edit) {
                for (const char* name : kLayerA) {
                  edit->PlaceNode({graph_[name], kHost, std::vector<std::string>()});
                }
              }),
              IsRefusedBy("colocation"));
}

TEST_F(OffloadVerifierTest, AnotherTasksCpu) {
  EXPECT_THAT(Verify([&](GraphEdit* edit) {
                for (const char* name : kLayerA) {
                  edit->PlaceNode({graph_[name], "/job:ps/task:0/device:CPU:0", {}});
                }
              }),
              IsRefusedBy("device"));
}

TEST_F(OffloadVerifierTest, AnotherInput) {
  EXPECT_THAT(Verify([&](GraphEdit* edit) { edit->RewireInput(graph_["a/out"], 0, "shape"); }),
              IsRefusedBy("data"));
}

TEST_F(OffloadVerifierTest, AMatrixProductInTheCone) {
  EXPECT_THAT(VerifyMoved(LayerWith("a/grad")), IsRefusedBy("cone"));
}

TEST_F(OffloadVerifierTest, AReductionInTheCone) {
  graph_ = TestGraph(absl::StrReplaceAll(
      TrainedLayers(), {{"a/scaled = Mul(a/grad, a/scale)", "a/scaled = Sum(a/grad, a/scale)"}}));
  EXPECT_THAT(VerifyMoved(Layer()), IsRefusedBy("cone"));
}

TEST_F(OffloadVerifierTest, AConeThatTheGpuReads) {
  graph_ = TestGraph(TrainedLayers() + "norm = L2Loss(a/scaled) @/gpu:0 {T=float32}\n");
  EXPECT_THAT(VerifyMoved(Layer()), IsRefusedBy("cone"));
}

TEST_F(OffloadVerifierTest, AFedRead) {
  v1::Step step;
  step.add_targets("train");
  step.add_feeds()->set_name("a/read:0");
  EXPECT_THAT(VerifyMoved(Layer(), step), IsRefusedBy("cone"));
}

TEST_F(OffloadVerifierTest, AReaderThatRacesWithTheUpdate) {
  const std::string second =
      TrainedLayers() +
      "a/second = Identity(a/w) @/gpu:0 {T=float32, _output_shapes=[(256,256)]}\n"
      "look = MatMul(x, a/second) @/gpu:0 {T=float32}\n";
  graph_ = TestGraph(second);
  v1::Step step;
  step.add_targets("train");
  EXPECT_THAT(VerifyMoved(LayerWith("a/second"), step), IsOk());  // Nothing runs it.
  step.add_targets("look");
  EXPECT_THAT(VerifyMoved(LayerWith("a/second"), step), IsRefusedBy("variable"));
  EXPECT_THAT(VerifyMoved(Layer(), step), IsRefusedBy("variable"));
  graph_ = TestGraph(
      absl::StrReplaceAll(second, {{"Identity(a/w) @/gpu:0 {T=float32, _out",
                                    "Identity(a/w, ^a/train) @/gpu:0 {T=float32, _out"}}));
  EXPECT_THAT(VerifyMoved(LayerWith("a/second"), step), IsOk());
}

}  // namespace
}  // namespace spillway::core
