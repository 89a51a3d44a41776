// Compares the strategy `level` on whole training graphs with TFLMS v2's own results for the same
// parameters. Swapped tensors, consumers, groups and synchronization must be equal, except for
// Spillway's refusals, each with a reason, which is printed. Triggers must be among the candidates
// that v2's specification names. Levels are compared in recorded_levels_test.cc.
#include "tests/testing/recorded_v2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/rewriter.h"
#include "tests/rewrite_core/strategy/level/naive_level_triggers.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/naive_executor.h"

namespace spillway::core {
namespace {

using testing::RecordedSetV2;
using testing::RecordedSwapInV2;
using testing::TestFacts;
using testing::TestGraph;
using Names = std::set<std::string>;
using Nodes = NaiveLevelTriggers::Nodes;

// One tensor's swaps, as in the record and in the report.
struct Trip {
  std::vector<RecordedSwapInV2> swap_ins;  // Sorted by consumers.
  Names waiters;                           // Of the swap-out.
};
using Trips = std::map<std::string, Trip>;  // By tensor.

Trips TripsOf(const RecordedSetV2& set) {
  Trips trips;
  for (const auto& [tensor, swap] : set.swaps) {
    trips[tensor].swap_ins = swap.swap_ins;
    for (const auto& [from, to] : set.controls) {
      if (from == swap.swap_out) trips[tensor].waiters.insert(to);
    }
  }
  return trips;
}

Trips TripsOf(const v1::RewriteReport& report) {
  Trips trips;
  for (const v1::TensorSwap& swap : report.swaps()) {
    Trip& trip = trips[swap.tensor()];
    trip.waiters = Names(swap.deadline_nodes().begin(), swap.deadline_nodes().end());
    for (const v1::SwapIn& in : swap.swap_ins()) {
      RecordedSwapInV2& swap_in = trip.swap_ins.emplace_back();
      swap_in.name = in.name();
      for (const v1::InputRef& p : in.consumers()) {
        swap_in.consumers.push_back(absl::StrCat(p.node(), "[", p.input_index(), "]"));
      }
      std::sort(swap_in.consumers.begin(), swap_in.consumers.end());
      swap_in.triggers = Names(in.triggers().begin(), in.triggers().end());
    }
    std::sort(trip.swap_ins.begin(), trip.swap_ins.end(),
              [](const auto& a, const auto& b) { return a.consumers < b.consumers; });
  }
  return trips;
}

std::vector<std::vector<std::string>> Groups(const Trip& trip) {
  std::vector<std::vector<std::string>> groups;
  for (const RecordedSwapInV2& swap_in : trip.swap_ins) groups.push_back(swap_in.consumers);
  return groups;
}

// `node[3]` -> `node`.
std::string NodeOf(const std::string& position) { return position.substr(0, position.rfind('[')); }

bool IsSerial(const RecordedSetV2& set) { return set.options.level().serialization_size() > 0; }

// A graph with the data common to all sets of parameters.
struct RealGraph {
  explicit RealGraph(const std::string& folder)
      : name(folder),
        f(TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(folder, "/graph.pb")))),
        sets(testing::ReadV2Sets(folder)),
        naive(f.graph, testing::ReadV2Levels(folder), !sets[0].options.devices().empty()) {}

  NodeId Node(const std::string& node) const { return f.graph.Node(node); }

  Names NamesOf(const Nodes& nodes) const {
    Names names;
    for (NodeId id : nodes) names.emplace(f.graph->name(id));
    return names;
  }

  // The nodes that a swap-in serves, the earliest first.
  std::vector<NodeId> ConsumersOf(const RecordedSwapInV2& swap_in) const {
    Nodes nodes;
    for (const std::string& p : swap_in.consumers) nodes.insert(Node(NodeOf(p)));
    std::vector<NodeId> result(nodes.begin(), nodes.end());
    std::stable_sort(result.begin(), result.end(),
                     [&](NodeId a, NodeId b) { return naive.level(a) < naive.level(b); });
    return result;
  }

  // Whether a step that runs `to` always runs `from`.
  bool Needs(NodeId to, NodeId from) const {
    std::vector<bool> seen(f.graph->num_nodes(), false);
    std::vector<NodeId> stack = {to};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id == from) return true;
      for (const Tensor& input : f.graph->inputs(id)) {
        if (!seen[input.node]) stack.push_back(input.node);
        seen[input.node] = true;
      }
    }
    return false;
  }

  bool MayControl(NodeId from, NodeId to) const {
    return f.facts.control_flow().MayControl(from, to);
  }

  std::vector<Nodes> TriggerRounds(const RecordedSetV2& set, const std::string& tensor,
                                   const RecordedSwapInV2& swap_in) const {
    return naive.Rounds(f.graph.Output(tensor).node, ConsumersOf(swap_in)[0],
                        set.options.level().swapin_ahead());
  }

  std::string name;
  TestFacts f;
  std::vector<RecordedSetV2> sets;
  NaiveLevelTriggers naive;
};

using Counts = std::map<std::string, int>;

class RecordedV2Test : public ::testing::TestWithParam<std::string> {
 protected:
  static void Print(const std::string& what, const Counts& counts) {
    std::cout << what << ":";
    for (const auto& [name, count] : counts) std::cout << " " << count << " " << name << ";";
    std::cout << "\n";
  }
  static void TearDownTestSuite() { Print("all graphs", total_); }

  void TearDown() override {
    Print(GetParam(), counts_);
    for (const auto& [name, count] : counts_) total_[name] += count;
  }

  // Prints and counts differences from v2.
  void Differs(const RecordedSetV2& set, const std::string& what, const std::string& why) {
    std::cout << "differs: " << GetParam() << "/" << set.name << ": " << what << ": " << why
              << "\n";
    ++counts_[absl::StrCat("differ (", why, ")")];
  }

  Counts counts_;

 private:
  static Counts total_;
};
Counts RecordedV2Test::total_;

// Checks that NaiveLevelTriggers is right, so that Spillway's triggers may be compared with it: it
// has each trigger that v2 chose, for every set of parameters. Serialization changes the levels.
TEST_P(RecordedV2Test, TriggersOfV2AreCandidates) {
  const RealGraph g(GetParam());
  for (const RecordedSetV2& set : g.sets) {
    if (set.tuned || IsSerial(set) || set.options.level().sync_mode() > 1) continue;
    SCOPED_TRACE(set.name);
    for (const auto& [tensor, trip] : TripsOf(set)) {
      for (const RecordedSwapInV2& swap_in : trip.swap_ins) {
        const auto rounds = g.TriggerRounds(set, tensor, swap_in);
        if (rounds.empty()) continue;
        ASSERT_EQ(swap_in.triggers.size(), 1u) << swap_in.name;
        EXPECT_EQ(rounds[0].count(g.Node(*swap_in.triggers.begin())), 1u)
            << swap_in.name << ": " << *swap_in.triggers.begin();
        ++counts_["triggers of v2 are candidates"];
      }
    }
  }
}

// Swaps of v2 that must not be made: copies of handles and variables, of tensors already in host
// memory, across loop frames and into a While.
bool MayRefuse(v1::Reason reason) {
  static const auto* const reasons = new std::set<v1::Reason>{
      v1::REASON_REFERENCE,   v1::REASON_RESOURCE, v1::REASON_VARIABLE_ALIAS,
      v1::REASON_HOST_MEMORY, v1::REASON_IN_LOOP,  v1::REASON_READ_BY_LOOP};
  return reasons->count(reason) > 0;
}

class Comparison {
 public:
  using Report = std::function<void(const std::string& what, const std::string& why)>;

  Comparison(const RealGraph& g, const RecordedSetV2& set, const v1::RewriteReport& report,
             Report differs, Counts* counts)
      : g_(g),
        set_(set),
        theirs_(TripsOf(set)),
        ours_(TripsOf(report)),
        differs_(std::move(differs)),
        counts_(*counts) {
    for (const v1::Decision& d : report.decisions()) verdicts_[d.tensor()] = d.reason();
  }

  void CompareTensors() {
    for (const auto& [tensor, trip] : theirs_) {
      if (const auto ours = ours_.find(tensor); ours != ours_.end()) {
        // All other sets gave the same groups in every run.
        if (IsSerial(set_) && set_.stable.count("swapin_consumers") == 0) continue;
        EXPECT_EQ(Groups(ours->second), Groups(trip)) << tensor;
        ++counts_["tensors alike"];
        counts_["swap-ins alike"] += static_cast<int>(trip.swap_ins.size());
        continue;
      }
      ASSERT_EQ(verdicts_.count(tensor), 1u) << tensor << " was not even considered";
      const v1::Reason reason = verdicts_.at(tensor);
      EXPECT_TRUE(MayRefuse(reason)) << tensor << ": " << v1::Reason_Name(reason);
      differs_(tensor, v1::Reason_Name(reason));
    }
    for (const auto& [tensor, trip] : ours_) {
      EXPECT_EQ(theirs_.count(tensor), 1u) << tensor << " is swapped by us alone";
    }
  }

  // Compares edges at swap nodes of tensors that both swap. v2's edges that are missing must be
  // unsound.
  void CompareEdges() {
    Names swap_outs;
    for (const auto& [tensor, swap] : set_.swaps) {
      swap_outs.insert(swap.swap_out);
      const auto ours = ours_.find(tensor);
      if (ours == ours_.end()) continue;
      const Trip& theirs = theirs_.at(tensor);
      ASSERT_EQ(ours->second.swap_ins.size(), theirs.swap_ins.size());
      for (size_t i = 0; i < theirs.swap_ins.size(); ++i) {
        CompareTriggers(tensor, ours->second.swap_ins[i], theirs.swap_ins[i]);
      }
      const NodeId source = g_.f.graph.Output(tensor).node;
      CompareNames(tensor, ours->second.waiters, theirs.waiters,
                   [&](NodeId waiter) { return g_.MayControl(source, waiter) ? "" : kDeadness; });
    }
    int between_originals = 0;
    for (const auto& [from, to] : set_.controls) {
      if (swap_outs.count(from) > 0) continue;
      EXPECT_NE(g_.f.graph->Find(from), kNoNode) << from << " is no original node";
      ++between_originals;
    }
    if (between_originals == 0) return;
    differs_(absl::StrCat(between_originals, " edges"), "synchronization of original CPU ops");
  }

 private:
  static constexpr char kDeadness[] = "one may be dead where the other is alive";
  static constexpr char kNeedless[] = "a step would run it that does without";

  // Returns why a swap-in for `consumers` must not wait for `from`; empty if it may.
  std::string WhyNot(NodeId from, const std::vector<NodeId>& consumers) const {
    for (NodeId consumer : consumers) {
      if (!g_.MayControl(from, consumer)) return kDeadness;
    }
    return g_.Needs(consumers[0], from) ? "" : kNeedless;
  }

  void CompareTriggers(const std::string& tensor, const RecordedSwapInV2& ours,
                       const RecordedSwapInV2& theirs) {
    const std::vector<NodeId> consumers = g_.ConsumersOf(theirs);
    if (set_.options.level().sync_mode() < 2) {
      const auto rounds = g_.TriggerRounds(set_, tensor, theirs);
      for (const Nodes& round : rounds) {
        Nodes sound;
        for (NodeId id : round) {
          if (WhyNot(id, consumers).empty()) sound.insert(id);
        }
        if (sound.empty()) {
          const NodeId first = *round.begin();
          differs_(absl::StrCat(theirs.name, " does not wait for ", g_.f.graph->name(first)),
                   WhyNot(first, consumers));
          continue;
        }
        // v2 may choose any; Spillway chooses the first in the file.
        EXPECT_EQ(ours.triggers, g_.NamesOf({*sound.begin()})) << theirs.name;
        ++counts_["triggers are candidates"];
        return;
      }
      ASSERT_TRUE(rounds.empty()) << theirs.name << " has no sound candidate";
    }
    CompareNames(theirs.name, ours.triggers, theirs.triggers,
                 [&](NodeId from) { return WhyNot(from, consumers); });
  }

  template <typename WhyNot>
  void CompareNames(const std::string& what, const Names& ours, const Names& theirs,
                    const WhyNot& why_not) {
    for (const std::string& name : theirs) {
      const std::string why = why_not(g_.Node(name));
      EXPECT_EQ(ours.count(name) > 0, why.empty()) << what << " and " << name << ": " << why;
      if (why.empty()) {
        ++counts_["synchronizing edges alike"];
      } else {
        differs_(absl::StrCat(what, " and ", name), why);
      }
    }
    for (const std::string& name : ours) {
      EXPECT_EQ(theirs.count(name), 1u) << what << " and " << name << " by us alone";
    }
  }

  const RealGraph& g_;
  const RecordedSetV2& set_;
  const Trips theirs_, ours_;
  const Report differs_;
  Counts& counts_;
  std::map<std::string, v1::Reason> verdicts_;
};

// TFLMS knows no functional If.
v1::RewriteOptions WithoutForecast(v1::RewriteOptions options) {
  options.set_simulation(v1::SIMULATION_OFF);
  options.set_inline_calls(v1::INLINE_CALLS_NEVER);
  return options;
}

// Every set of parameters that gave a sound graph. With serialization, only the stable parts.
TEST_P(RecordedV2Test, SameSwapsSameEdgesButForRefusals) {
  const RealGraph g(GetParam());
  for (const RecordedSetV2& set : g.sets) {
    if (!set.usable || set.tuned) continue;
    if (IsSerial(set) && set.stable.count("swapped_tensors") == 0) continue;
    SCOPED_TRACE(set.name);
    const auto response =
        Rewrite(g.f.graph.bytes(), WithoutForecast(set.options), DefaultLimits(), StopToken());
    ASSERT_THAT(response, testing::IsOk());
    ++counts_["runs of v2 compared"];
    Comparison comparison(
        g, set, response->report(),
        [&](const std::string& what, const std::string& why) { Differs(set, what, why); },
        &counts_);
    comparison.CompareTensors();
    if (IsSerial(set)) continue;
    comparison.CompareEdges();
    for (const v1::EdgeCount& edges : response->report().added_control_edges()) {
      EXPECT_NE(edges.kind(), v1::EDGE_KIND_SERIALIZATION);
    }
    const v1::LevelReport& level = response->report().level();
    if (set.level_count.has_value()) {
      EXPECT_EQ(level.level_count(), *set.level_count);
    }
    if (set.edge_count.has_value()) {
      EXPECT_EQ(level.edge_count(), *set.edge_count);
    }
    if (set.vertex_count.has_value()) {
      EXPECT_EQ(response->report().node_count_before(), *set.vertex_count);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LevelStrategy, RecordedV2Test,
                         ::testing::ValuesIn(testing::GraphsWithV2Records()),
                         [](const auto& graph) { return graph.param; });

// The parameter sets with which v2 makes a cycle, breaks the training or never starts it: the
// verifier accepts Spillway's answer, and each node stays as live as before, whichever branches are
// taken.
class BrokenV2Test : public ::testing::TestWithParam<std::string> {};

TEST_P(BrokenV2Test, OursIsSound) {
  const std::string bytes = testing::ReadTestGraph(absl::StrCat(GetParam(), "/graph.pb"));
  int sets = 0;
  for (const RecordedSetV2& set : testing::ReadV2Sets(GetParam())) {
    if (set.usable || !set.error.empty() || set.tuned) continue;
    SCOPED_TRACE(set.name);
    ++sets;
    const auto response =
        Rewrite(bytes, WithoutForecast(set.options), DefaultLimits(), StopToken());
    ASSERT_THAT(response, testing::IsOk());
    EXPECT_EQ(response->report().outcome(), v1::OUTCOME_REWRITTEN);
    testing::GraphDef before, after;
    ASSERT_TRUE(before.ParseFromString(bytes));
    ASSERT_TRUE(after.ParseFromString(response->graph_def()));
    EXPECT_EQ(testing::CompareAllOutcomes(before, after), "");
  }
  EXPECT_GT(sets, 0);
}

INSTANTIATE_TEST_SUITE_P(LevelStrategy, BrokenV2Test,
                         ::testing::Values("cnn_mnist", "cond_v1", "mixed_fp16", "mnist_deep"),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
