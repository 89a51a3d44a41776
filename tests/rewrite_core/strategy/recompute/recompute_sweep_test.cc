#include "rewrite_core/strategy/recompute/recompute_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/strategy/recompute/clone_planner.h"
#include "rewrite_core/strategy/recompute/postpone.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/dear_graphs.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;
using testing::ValueOrDie;

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

#define KIB_512 "{T=float32, _output_shapes=[(512,256)]}\n"

constexpr int64_t kKib256 = 256 << 10;

struct Recompute {
  explicit Recompute(const std::string& graph, const RecomputeTerms& t = {RunAgain::kSameBits, 1},
                     const v1::Step& s = {})
      : step(graph, s),
        rules(ValueOrDie(CloneRules::Find(step.facts, {}), "rules")),
        recompute(ValueOrDie(RecomputeStep::Create(step.facts, step.order, rules, t, {}), "step")) {
  }

  int64_t Peak() const {
    const std::vector<int64_t>& live = step.order.live_bytes();
    return *std::max_element(live.begin(), live.end());
  }
  // In so much less than the peak.
  Sweep Less(int64_t bytes, double power = 1) const {
    return ValueOrDie(SweepStep(recompute, {Peak() - bytes, 0, power}, {}), "sweep");
  }
  // "node before node", clone by clone.
  std::vector<std::string> Clones(const Sweep& sweep) const {
    std::vector<std::string> clones;
    for (const Sweep::Clone& clone : sweep.clones) {
      clones.push_back(absl::StrCat(step.graph->name(step.order.node(clone.original)), " before ",
                                    step.graph->name(step.order.node(clone.at))));
    }
    return clones;
  }
  ClonePlan ClonesOf(const Sweep& sweep) const {
    return ValueOrDie(PlanClones(recompute, sweep, step.needs, step.ranks, {}), "plan");
  }
  // "clone after trigger: read by input, ...", clone by clone.
  std::vector<std::string> Plan(const Sweep& sweep) const { return TextsOf(ClonesOf(sweep)); }
  std::vector<std::string> TextsOf(const ClonePlan& plan) const {
    std::vector<std::string> texts;
    for (const PlannedClone& clone : plan.clones) {
      std::string text(step.graph->name(clone.original));
      for (const PlannedClone::Input& input : clone.inputs) {
        absl::StrAppend(&text, " [", input.index, "]=", input.from.value());
      }
      if (clone.trigger != kNoNode) {
        absl::StrAppend(&text, " after ", step.graph->name(clone.trigger));
      }
      for (const InputPosition& consumer : clone.consumers) {
        absl::StrAppend(&text, " => ", step.graph->name(consumer.node), "[", consumer.index, "]");
      }
      for (NodeId update : clone.updates) {
        absl::StrAppend(&text, " before ", step.graph->name(update));
      }
      texts.push_back(text);
    }
    return texts;
  }

  // The clones that are left, and "node waits for node" for each edge, where the step has edges
  // from `from` to `to`.
  std::vector<std::string> Postponed(const Sweep& sweep, const char* from = nullptr,
                                     const char* to = nullptr) const {
    ClonePlan plan = ClonesOf(sweep);
    std::vector<ControlEdge> edges;
    if (from != nullptr) edges = {{step.graph[from], step.graph[to], v1::EDGE_KIND_ORDER}};
    EXPECT_THAT(PostponeOriginals(step.facts, step.needs, step.ranks, &plan, &edges, {}),
                testing::IsOk());
    std::vector<std::string> texts = TextsOf(plan);
    for (const ControlEdge& edge : edges) {
      EXPECT_EQ(edge.kind, v1::EDGE_KIND_ORDER);
      texts.push_back(
          absl::StrCat(step.graph->name(edge.to), " waits for ", step.graph->name(edge.from)));
    }
    return texts;
  }

  TestGpuStep step;
  CloneRules rules;
  RecomputeStep recompute;
};

#define INPUT "in = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"

// a and b may be recomputed; x and the other products stay, unless a test allows them, too. At h2
// there are x, a, b, c, h1 and h2; at d as many.
constexpr char kChain[] =
    INPUT "x = MatMul(in, in) " KIB_256 "a = Sqrt(x) " KIB_256 "b = Exp(a) " KIB_256
          "c = MatMul(b, b) " KIB_256 "h1 = MatMul(c, c) " KIB_256 "h2 = MatMul(c, h1) " KIB_256
          "d = MatMul(h1, h2) " KIB_256 "e = MatMul(d, b) " KIB_256 "f = MatMul(e, a) " KIB_256
          "g = MatMul(f, x) " KIB_256;

TEST(RecomputeSweepTest, NothingIsMadeAgainWhereThereIsRoom) {
  const Recompute chain(kChain);
  const Sweep sweep = chain.Less(0);
  EXPECT_TRUE(sweep.fits);
  EXPECT_THAT(sweep.clones, IsEmpty());
  EXPECT_EQ(sweep.peak_bytes, chain.Peak());
  EXPECT_EQ(sweep.added_ns, 0);
}

// The simulator also counts a tensor until its copy to the host ends.
TEST(RecomputeSweepTest, WhatIsCopiedToTheHostStaysForSoLong) {
  v1::Step slow;
  slow.mutable_hardware()->set_d2h_bytes_per_s(1e6);
  const Recompute chain(
      absl::StrCat(kChain, "o = MatMul(in, in) ", KIB_256,
                   "host = Identity(o) @/cpu:0 {T=float32, _output_shapes=[(256,256)]}\n"),
      {RunAgain::kSameBits, 1}, slow);
  const Sweep sweep = chain.Less(-kKib256);
  EXPECT_TRUE(sweep.fits);
  EXPECT_EQ(sweep.peak_bytes, chain.Peak() + kKib256);
  EXPECT_EQ(sweep.peak_bytes, chain.step.unswapped.peak_bytes(GpuIndex(0)));
}

// Of two that take as long, the one that is away for longer.
TEST(RecomputeSweepTest, TheOneThatIsReadLast) {
  const Recompute chain(kChain);
  const Sweep sweep = chain.Less(kKib256);
  EXPECT_TRUE(sweep.fits);
  EXPECT_THAT(chain.Clones(sweep), ElementsAre("a before f"));
  EXPECT_EQ(sweep.peak_bytes, chain.Peak() - kKib256);
  const Slot a = chain.step.SlotOf("a");
  EXPECT_EQ(sweep.added_ns, chain.step.order.end_ns(a) - chain.step.order.begin_ns(a));
  EXPECT_THAT(chain.Plan(sweep), ElementsAre("a after e => f[1]"));
}

// b is made from a, which is recomputed for it, and is freed once more before e.
TEST(RecomputeSweepTest, WhatIsMadeFromAnother) {
  const Recompute chain(kChain);
  const Sweep sweep = chain.Less(2 * kKib256);
  EXPECT_TRUE(sweep.fits);
  EXPECT_THAT(chain.Clones(sweep), ElementsAre("a before e", "b before e", "a before f"));
  EXPECT_THAT(chain.Plan(sweep),
              ElementsAre("a after d", "b [0]=0 after d => e[1]", "a after e => f[1]"));
}

// h2, its inputs and x are too much.
TEST(RecomputeSweepTest, NoMoreCanGo) {
  const Recompute chain(kChain);
  const Sweep sweep = chain.Less(3 * kKib256);
  EXPECT_FALSE(sweep.fits);
  EXPECT_EQ(sweep.failed_at, chain.step.SlotOf("h2"));
}

// Without elementwise operations: at t there are p, q, r and t; at s only u, p and s.
TEST(RecomputeSweepTest, ByClass) {
  constexpr char kProducts[] =
      INPUT "p = MatMul(in, in) " KIB_256 "q = MatMul(p, p) " KIB_256 "r = MatMul(q, q) " KIB_256
            "t = MatMul(q, r) " KIB_256 "u = MatMul(r, t) " KIB_256 "s = MatMul(u, p) " KIB_256;
  EXPECT_FALSE(Recompute(kProducts, {RunAgain::kSameBits, 1}).Less(kKib256).fits);
  const Recompute all(kProducts, {RunAgain::kSameValue, 1});
  EXPECT_THAT(all.Clones(all.Less(kKib256)), ElementsAre("p before s"));
}

TEST(RecomputeSweepTest, SmallOnesStay) {
  EXPECT_FALSE(Recompute(kChain, {RunAgain::kSameBits, kKib256 + 1}).Less(kKib256).fits);
}

TEST(RecomputeSweepTest, WhatIsFetchedStays) {
  v1::Step step;
  for (const char* target : {"g", "a"}) step.add_targets(target);
  const Recompute chain(kChain, {RunAgain::kSameBits, 1}, step);
  EXPECT_THAT(chain.Clones(chain.Less(kKib256)), ElementsAre("b before e"));
}

// At e there are x, a, c, d and e. `same` is a node that forwards a.
std::string HandedOn(const char* same) {
  return absl::StrCat(INPUT "x = MatMul(in, in) " KIB_256 "a = Sqrt(x) " KIB_256, same,
                      "b = MatMul(same, same) " KIB_256 "c = MatMul(b, b) " KIB_256
                      "d = MatMul(b, c) " KIB_256 "e = MatMul(c, d) " KIB_256
                      "f = MatMul(e, same) " KIB_256 "g = MatMul(f, x) " KIB_256);
}

// A node that forwards its input is cloned behind the clone; also one that does so only here, such
// as a cast to the same type.
TEST(RecomputeSweepTest, ThroughWhatHandsItOn) {
  for (const char* same :
       {"same = Identity(a) " KIB_256,
        "same = Cast(a) {SrcT=float32, DstT=float32, _output_shapes=[(256,256)]}\n"}) {
    const Recompute chain(HandedOn(same));
    const Sweep sweep = chain.Less(kKib256);
    EXPECT_THAT(chain.Clones(sweep), ElementsAre("a before f"));
    EXPECT_THAT(chain.Plan(sweep), ElementsAre("a after e", "same [0]=0 => f[1]"));
  }
}

// A clone of IdentityN would hold its other inputs.
TEST(RecomputeSweepTest, NotThroughWhatHandsSeveralOn) {
  const Recompute chain(
      HandedOn("same = IdentityN(a, x) {T=[float32, float32], "
               "_output_shapes=[(256,256), (256,256)]}\n"));
  EXPECT_FALSE(chain.Less(kKib256).fits);
}

// a reads a variable, which `update` changes: that waits for the clone, or comes too early for one.
std::string WithVariable(bool early) {
  const std::string update = "update = AssignSub(w, e) {T=float32}\n";
  return absl::StrCat(
      INPUT
      "w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "read = Identity(w) " KIB_256 "x = MatMul(in, in) " KIB_256 "a = AddV2(x, read) " KIB_256
      "b = Exp(a) " KIB_256 "c = MatMul(b, b) " KIB_256 "h1 = MatMul(c, c) " KIB_256
      "h2 = MatMul(c, h1) " KIB_256 "d = MatMul(h1, h2) " KIB_256 "e = MatMul(d, b) " KIB_256,
      early ? update : "", "f = MatMul(e, a) " KIB_256, early ? "" : update,
      "g = MatMul(f, x) " KIB_256);
}

TEST(RecomputeSweepTest, BeforeTheUpdateOfAVariable) {
  v1::Step step;
  for (const char* target : {"g", "update"}) step.add_targets(target);
  const Recompute late(WithVariable(false), {RunAgain::kSameBits, 1}, step);
  ASSERT_LT(late.step.SlotOf("f"), late.step.SlotOf("update"));
  EXPECT_THAT(late.Plan(late.Less(kKib256)), ElementsAre("a after e => f[1] before update"));
  const Recompute early(WithVariable(true), {RunAgain::kSameBits, 1}, step);
  ASSERT_LT(early.step.SlotOf("update"), early.step.SlotOf("f"));
  EXPECT_THAT(early.Clones(early.Less(kKib256)), ElementsAre("b before e"));
}

// `late` may be recomputed, and its output is in memory beside x, b, c, h1 and h2, though only
// `readers` read it, the last of which is `last`.
std::string WithLate(const std::string& late, const std::string& readers, const char* last) {
  return absl::StrCat(INPUT "x = MatMul(in, in) " KIB_256, late,
                      "b = MatMul(x, x) " KIB_256 "c = MatMul(b, b) " KIB_256
                      "h1 = MatMul(c, c) " KIB_256 "h2 = MatMul(c, h1) " KIB_256
                      "d = MatMul(h1, h2) " KIB_256 "e = MatMul(d, b) " KIB_256,
                      readers, "z = MatMul(", last, ", x) " KIB_256);
}

// No other node reads the early original.
TEST(PostponeTest, AnOriginalThatNobodyReadsIsLate) {
  const Recompute one(WithLate("a = Sqrt(x) " KIB_256, "f = MatMul(e, a) " KIB_256, "f"));
  EXPECT_THAT(one.Plan(one.Less(kKib256)), ElementsAre("a after e => f[1]"));
  EXPECT_THAT(one.Postponed(one.Less(kKib256)), ElementsAre("a waits for e"));
}

TEST(PostponeTest, WhatItIsMadeFromIsLateToo) {
  const Recompute two(WithLate("a = Sqrt(x) " KIB_256 "same = Identity(a) " KIB_256
                               "q = Exp(same) " KIB_256,
                               "f = MatMul(e, same) " KIB_256 "g = MatMul(f, q) " KIB_256, "g"));
  const Sweep sweep = two.Less(2 * kKib256);
  EXPECT_THAT(two.Plan(sweep),
              ElementsAre("a after e", "same [0]=0 => f[1]", "q [0]=1 after f => g[1]"));
  EXPECT_THAT(two.Postponed(sweep), ElementsAre("a waits for e", "q waits for f"));
}

// A second clone stays; no node reads the original early.
TEST(PostponeTest, OnlyTheFirstClone) {
  const Recompute twice(WithLate("a = Sqrt(x) " KIB_256,
                                 "f = MatMul(e, a) " KIB_256 "i = MatMul(f, f) " KIB_256
                                 "j1 = MatMul(i, i) " KIB_256 "j2 = MatMul(i, j1) " KIB_256
                                 "k = MatMul(j1, j2) " KIB_256 "l = MatMul(k, f) " KIB_256
                                 "m = MatMul(l, f) " KIB_256 "n = MatMul(m, a) " KIB_256,
                                 "n"));
  const Sweep sweep = twice.Less(kKib256);
  EXPECT_THAT(twice.Plan(sweep), ElementsAre("a after e => f[1]", "a after m => n[1]"));
  EXPECT_THAT(twice.Postponed(sweep), ElementsAre("a after m => n[1]", "a waits for e"));
}

// A waiting node runs when it did; so does the original.
TEST(PostponeTest, NotIfSomethingWaitsForIt) {
  constexpr char kLate[] = "a = Sqrt(x) " KIB_256;
  const Recompute waited(WithLate(absl::StrCat(kLate, "w = MatMul(x, x, ^a) " KIB_256),
                                  "f = MatMul(e, a) " KIB_256 "u = MatMul(f, w) " KIB_256, "u"));
  EXPECT_THAT(waited.Postponed(waited.Less(kKib256)), ElementsAre("a after e => f[1]"));
  const Recompute one(WithLate(kLate, "f = MatMul(e, a) " KIB_256, "f"));
  // But an order edge that alone would make the step run it is removed.
  EXPECT_THAT(one.Postponed(one.Less(kKib256), "a", "h1"), ElementsAre("a waits for e"));
  // An edge that delayed the original itself is not needed any more.
  EXPECT_THAT(one.Postponed(one.Less(kKib256), "b", "a"), ElementsAre("a waits for e"));
}

// A step that fetches a alone would have to feed y, too.
TEST(PostponeTest, NotIfItWouldNeedMore) {
  const Recompute fed(
      WithLate("y = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
               "a = Sqrt(x) " KIB_256,
               "e2 = MatMul(e, y) " KIB_256 "f = MatMul(e2, a) " KIB_256, "f"));
  EXPECT_THAT(fed.Postponed(fed.Less(kKib256)), ElementsAre("a after e2 => f[1]"));
}

// A node that reads a clone that stays waits for that clone's trigger.
TEST(PostponeTest, NotIfWhatItReadsWouldNeedMore) {
  const Recompute fed(
      WithLate("y = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
               "a = Sqrt(x) " KIB_256 "same = Identity(a) " KIB_256,
               "e2 = MatMul(e, y) " KIB_256 "f = MatMul(e2, same) " KIB_256, "f"));
  EXPECT_THAT(fed.Postponed(fed.Less(kKib256)), ElementsAre("a after e2", "same [0]=0 => f[1]"));
}

// No step fetches a gradient alone: it waits if all of its readers may.
TEST(PostponeTest, AGradientIfItsReadersMayWait) {
  constexpr char kY[] =
      "y = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n";
  const Recompute one(WithLate(absl::StrCat(kY, "a = ReluGrad(x, x) " KIB_256),
                               "e2 = MatMul(e, y) " KIB_256 "f = MatMul(e2, a) " KIB_256, "f"),
                      {RunAgain::kSameValue, 1});
  EXPECT_THAT(one.Postponed(one.Less(2 * kKib256)),
              ElementsAre("b after d => e[1]", "a waits for e2"));
  const Recompute two(
      WithLate(absl::StrCat(kY, "a = ReluGrad(x, x) " KIB_256 "q = Exp(a) " KIB_256),
               "e2 = MatMul(e, y) " KIB_256 "f = MatMul(e2, q) " KIB_256, "f"),
      {RunAgain::kSameValue, 1});
  EXPECT_THAT(
      two.Postponed(two.Less(2 * kKib256)),
      ElementsAre("x after e2 => z[1]", "a [0]=0 [1]=0 after e2 => q[0]", "q waits for e2"));
}

TEST(PostponeTest, BeforeTheUpdateOfAVariable) {
  v1::Step step;
  for (const char* target : {"z", "update"}) step.add_targets(target);
  const Recompute late(
      absl::StrCat("w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
                   "read = Identity(w) " KIB_256,
                   WithLate("a = AddV2(x, read) " KIB_256, "f = MatMul(e, a) " KIB_256, "f"),
                   "update = AssignSub(w, z) {T=float32}\n"),
      {RunAgain::kSameBits, 1}, step);
  EXPECT_THAT(late.Plan(late.Less(kKib256)), ElementsAre("a after e => f[1] before update"));
  EXPECT_THAT(late.Postponed(late.Less(kKib256)),
              ElementsAre("a waits for e", "update waits for a"));
}

// Steps counted by the loops, for twice the graph: about twice as many.
int64_t StepsFor(const std::string& graph, double share) {
  const Recompute of(graph, {RunAgain::kSameValue, 1});
  const StopToken stop;
  const auto part = static_cast<int64_t>(share * static_cast<double>(of.Peak()));
  const RecomputeStep step =
      ValueOrDie(RecomputeStep::Create(of.step.facts, of.step.order, of.rules, {}, stop), "step");
  for (const int64_t region : {int64_t{0}, part}) {
    const Sweep sweep = ValueOrDie(SweepStep(step, {part, region, 1}, stop), "sweep");
    if (!sweep.fits) continue;
    ClonePlan plan =
        ValueOrDie(PlanClones(step, sweep, of.step.needs, of.step.ranks, stop), "plan");
    std::vector<ControlEdge> edges;
    EXPECT_THAT(PostponeOriginals(of.step.facts, of.step.needs, of.step.ranks, &plan, &edges, stop),
                testing::IsOk());
  }
  return stop.steps();
}

// In a region lie, one behind the other, a, m, b, n, c, o and p, and r is made, as large as p, or
// as a and b together. By bytes a and b go, which are read last: that leaves two small pieces. c,
// which is read after p, would leave a third one.
TEST(RecomputeSweepTest, WhatLeavesOnePieceGoes) {
  std::string graph = INPUT
      "x = MatMul(in, in) " KIB_256 "y = MatMul(in, x) " KIB_512 "a = Sqrt(x, ^y) " KIB_256
      "m = MatMul(x, x, ^a) " KIB_256 "b = Exp(x, ^m) " KIB_256 "n = MatMul(x, x, ^b) " KIB_256
      "c = Exp(x, ^n) " KIB_256 "o = MatMul(x, x, ^c) " KIB_256 "p = Sqrt(y, ^o) " KIB_512
      "q = MatMul(y, x, ^p) " KIB_512 "r = MatMul(q, x) " KIB_512 "s = MatMul(r, x) " KIB_256
      "t = MatMul(s, p) " KIB_256;
  std::string last = "t";
  for (const char* kept : {"c", "b", "a", "m", "n", "o", "y", "x"}) {
    for (int i = 0; i < 5; ++i) {
      const std::string next = absl::StrCat(kept, "_", i);
      absl::StrAppend(&graph, next, " = MatMul(", last, ", ", i == 4 ? kept : "x", ") ", KIB_256);
      last = next;
    }
  }
  const Recompute of(graph);
  const int64_t bytes = of.Peak() - 2 * kKib256;
  const Sweep counted = ValueOrDie(SweepStep(of.recompute, {bytes}, {}), "sweep");
  EXPECT_THAT(of.Clones(counted), ElementsAre("b before b_4", "a before a_4"));
  const Sweep placed = ValueOrDie(SweepStep(of.recompute, {bytes, bytes}, {}), "sweep");
  EXPECT_TRUE(placed.fits);
  EXPECT_THAT(of.Clones(placed), ElementsAre("p before t", "b before b_4", "a before a_4"));
}

// Outputs of one size, read again in the reverse order; and one that very many read.
TEST(RecomputeSweepTest, DearGraphs) {
  for (const double share : {0.9, 0.5, 0.1}) {
    EXPECT_LT(StepsFor(testing::EqualGaps(8000, false), share),
              3 * StepsFor(testing::EqualGaps(4000, false), share))
        << share;
    EXPECT_LT(StepsFor(testing::ManyReaders(8000), share),
              3 * StepsFor(testing::ManyReaders(4000), share))
        << share;
  }
}

// A chain of clones, each of which waits for a node of its own.
int64_t StepsToPostpone(int length) {
  std::string graph = INPUT "a0 = Sqrt(in) " KIB_256 "t0 = MatMul(in, in) " KIB_256;
  for (int i = 1; i < length; ++i) {
    absl::StrAppend(&graph, "a", i, " = Sqrt(a", i - 1, ") ", KIB_256, "t", i, " = MatMul(t", i - 1,
                    ", in) ", KIB_256);
  }
  absl::StrAppend(&graph, "z = Exp(a", length - 1, ") ", KIB_256);
  const TestGpuStep step(graph);
  ClonePlan plan;
  for (int i = 0; i < length; ++i) {
    PlannedClone clone;
    clone.original = step.graph[absl::StrCat("a", i).c_str()];
    if (i > 0) clone.inputs.push_back({0, CloneIndex(i - 1)});
    clone.trigger = step.graph[absl::StrCat("t", i).c_str()];
    if (i == length - 1) clone.consumers.push_back({step.graph["z"], 0});
    plan.clones.push_back(clone);
  }
  std::vector<ControlEdge> edges;
  const StopToken stop;
  EXPECT_THAT(PostponeOriginals(step.facts, step.needs, step.ranks, &plan, &edges, stop),
              testing::IsOk());
  return stop.steps();
}

TEST(PostponeTest, ALongChainOfClones) {
  EXPECT_LT(StepsToPostpone(4000), 3 * StepsToPostpone(2000));
}

}  // namespace
}  // namespace spillway::core
