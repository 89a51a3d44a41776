#include "rewrite_core/analysis/flow/control_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestGraph;

// A graph and the analysis of its control flow, queried by name.
class Flow {
 public:
  explicit Flow(absl::string_view text)
      : graph_(text),
        flow_(testing::ValueOrDie(
            ControlFlowAnalysis::Build(
                *graph_, testing::ValueOrDie(Topology::Build(*graph_, StopToken()), "topology"),
                StopToken()),
            "control flow")) {}

  FrameId In(absl::string_view node) const { return flow_.input_frame(graph_.Node(node)); }
  FrameId Out(absl::string_view node) const { return flow_.output_frame(graph_.Node(node)); }
  // Returns whether `v` is dead whenever `u` is.
  bool Dead(absl::string_view v, absl::string_view u) const {
    return flow_.DeadWhenever(graph_.Node(v), graph_.Node(u));
  }
  // Returns whether a control edge u -> v is sound.
  bool May(absl::string_view u, absl::string_view v) const {
    return flow_.MayControl(graph_.Node(u), graph_.Node(v));
  }
  const Graph& graph() const { return *graph_; }
  const ControlFlowAnalysis& analysis() const { return flow_; }

 private:
  TestGraph graph_;
  ControlFlowAnalysis flow_;
};

TEST(ControlFlowTest, WithoutControlFlowEverythingIsAliveInTheRoot) {
  const Flow flow("a = Const()\nb = Relu(a)\nc = NoOp(^b)");
  for (const char* node : {"a", "b", "c"}) {
    EXPECT_EQ(flow.In(node), kRootFrame);
    EXPECT_EQ(flow.Out(node), kRootFrame);
    EXPECT_TRUE(flow.May("c", node));
  }
}

// ---- Frames ----

// A loop whose body contains another, and two loops side by side.
constexpr char kNestedLoops[] = R"(
    x = Const() {dtype=float32}
    enter = Enter(x) {T=float32, frame_name="outer"}
    limit = Enter(x) {T=float32, frame_name="outer", is_constant=true}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, limit) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    body = Relu(switch:1) {T=float32}
    i_enter = Enter(body) {T=float32, frame_name="inner"}
    i_merge = Merge(i_enter, i_next) {T=float32, N=2}
    i_less = Less(i_merge, i_enter) {T=float32}
    i_cond = LoopCond(i_less)
    i_switch = Switch(i_merge, i_cond) {T=float32}
    i_body = Relu(i_switch:1) {T=float32}
    i_next = NextIteration(i_body) {T=float32}
    i_exit = Exit(i_switch) {T=float32}
    tail = Relu(i_exit) {T=float32}
    next = NextIteration(tail) {T=float32}
    exit = Exit(switch) {T=float32}
    after = Relu(exit) {T=float32}
    # A frame of the same name as the inner one, but in the root: another frame.
    b_enter = Enter(x) {T=float32, frame_name="inner"}
    b_body = Relu(b_enter) {T=float32}
)";

TEST(ControlFlowTest, NestedLoopsHaveFramesOfTheirOwn) {
  const Flow flow(kNestedLoops);
  const FrameId outer = flow.Out("enter");
  const FrameId inner = flow.Out("i_enter");
  const FrameId other = flow.Out("b_enter");
  EXPECT_EQ((std::vector<FrameId>{flow.Out("x"), flow.In("enter"), flow.Out("exit"),
                                  flow.In("after"), flow.In("b_enter")}),
            std::vector<FrameId>(5, kRootFrame));
  for (FrameId frame : {outer, inner, other}) {
    EXPECT_NE(frame, kRootFrame);
    EXPECT_NE(frame, kUnknownFrame);
  }
  EXPECT_NE(outer, inner);
  EXPECT_NE(inner, other);
  EXPECT_NE(outer, other);
  EXPECT_EQ(flow.Out("limit"), outer);  // Two Enters of one frame.
  for (const char* node : {"merge", "less", "cond", "switch", "body", "next", "tail"}) {
    EXPECT_EQ(flow.In(node), outer) << node;
    EXPECT_EQ(flow.Out(node), outer) << node;
  }
  EXPECT_EQ(flow.In("exit"), outer);
  EXPECT_EQ(flow.In("i_enter"), outer);
  for (const char* node : {"i_merge", "i_less", "i_cond", "i_switch", "i_body", "i_next"}) {
    EXPECT_EQ(flow.In(node), inner) << node;
    EXPECT_EQ(flow.Out(node), inner) << node;
  }
  EXPECT_EQ(flow.In("i_exit"), inner);
  EXPECT_EQ(flow.Out("i_exit"), outer);
  EXPECT_EQ(flow.In("b_body"), other);
}

struct FrameCase {
  std::string name;
  std::string nodes;  // Appended to kNestedLoops; the last is `n`.
};

class UnknownFrameTest : public ::testing::TestWithParam<FrameCase> {};

TEST_P(UnknownFrameTest, NothingMayBeAddedThere) {
  const Flow flow(kNestedLoops + GetParam().nodes + "\nbelow = Relu(n) {T=float32}");
  EXPECT_EQ(flow.Out("n"), kUnknownFrame);
  EXPECT_EQ(flow.In("below"), kUnknownFrame);
  EXPECT_FALSE(flow.May("n", "n"));
  EXPECT_FALSE(flow.May("n", "after"));
  EXPECT_FALSE(flow.May("after", "below"));
}

INSTANTIATE_TEST_SUITE_P(
    ControlFlow, UnknownFrameTest,
    ::testing::Values(FrameCase{"InputsOfTwoFrames", "n = AddV2(body, x) {T=float32}"},
                      FrameCase{"ControlFromAnotherFrame", "n = Relu(body, ^x) {T=float32}"},
                      FrameCase{"EnterWithoutName", "n = Enter(x) {T=float32}"},
                      FrameCase{"BehindIt",
                                "m = AddV2(body, x) {T=float32}\nn = Relu(m) {T=float32}"},
                      FrameCase{"ExitOfTheRoot", "n = Exit(x) {T=float32}"}),
    testing::CaseName());

TEST(ControlFlowTest, TheTwinOfEachHasAKnownFrame) {
  const Flow flow(absl::StrCat(kNestedLoops, R"(
      same = AddV2(body, limit) {T=float32}
      control = Relu(body, ^limit) {T=float32}
      named = Enter(x) {T=float32, frame_name="f"}
  )"));
  EXPECT_EQ(flow.Out("same"), flow.Out("enter"));
  EXPECT_EQ(flow.Out("control"), flow.Out("enter"));
  EXPECT_GT(flow.Out("named"), kRootFrame);
}

// ---- Deadness ----

constexpr char kConditionals[] = R"(
    p = Placeholder() {dtype=bool}
    q = Placeholder() {dtype=bool}
    i = Placeholder() {dtype=int32}
    x = Placeholder() {dtype=float32}
    # p, behind Identity and as it is.
    pred1 = Identity(p) {T=bool}
    pred2 = Identity(pred1) {T=bool}
    s1 = Switch(x, pred2) {T=float32}
    s2 = Switch(x, p) {T=float32}
    f1 = Relu(s1) {T=float32}
    t1 = Relu(s1:1) {T=float32}
    f2 = Relu(s2) {T=float32}
    t2 = Relu(s2:1) {T=float32}
    both = Merge(f1, t2) {T=float32, N=2}
    one = Merge(t1, t2) {T=float32, N=2}
    out = Relu(both) {T=float32}
    control_t = NoOp(^t1)
    waits_t = Relu(x, ^t1) {T=float32}
    # q is another predicate.
    sq = Switch(x, q) {T=float32}
    fq = Relu(sq) {T=float32}
    tq = Relu(sq:1) {T=float32}
    either = Merge(t1, tq) {T=float32, N=2}
    # q inside the true side of p.
    qp = Switch(q, p) {T=bool}
    xp = Switch(x, p) {T=float32}
    sn = Switch(xp:1, qp:1) {T=float32}
    nf = Relu(sn) {T=float32}
    nt = Relu(sn:1) {T=float32}
    nm = Merge(nf, nt) {T=float32, N=2}
    nout = Merge(nm, f1) {T=float32, N=2}
    # One of three.
    many = _SwitchN(x, i) {T=float32, num_outs=3}
    m0 = Relu(many) {T=float32}
    m1 = Relu(many:1) {T=float32}
    m2 = Relu(many:2) {T=float32}
    m01 = Merge(m0, m1) {T=float32, N=2}
    m012 = Merge(m0, m1, m2) {T=float32, N=3}
    # A Merge that waits for a dead node is alive all the same.
    waits_merge = Merge(f1, t1, ^t1) {T=float32, N=2}
)";

struct EdgeCase {
  std::string from, to;
  bool sound;
};

// Worked out by hand from TensorFlow's executor.
TEST(ControlFlowTest, MayControlInBothDirections) {
  const std::vector<EdgeCase> cases = {
      // From a node that is always alive to any other, but not back.
      {"x", "t1", true},
      {"t1", "x", false},
      {"p", "f1", true},
      {"s1", "t1", true},
      {"t1", "s1", false},
      // Two Switches on one predicate are one condition, Identity or not.
      {"t1", "t2", true},
      {"t2", "t1", true},
      {"f1", "f2", true},
      // From one branch to the other.
      {"t1", "f1", false},
      {"f1", "t1", false},
      {"t1", "f2", false},
      // Behind a Merge of both sides everything is alive again.
      {"both", "t1", true},
      {"both", "x", true},
      {"x", "both", true},
      {"t1", "both", false},
      {"f1", "both", false},
      {"out", "x", true},
      {"t1", "out", false},
      // A Merge of only one side is dead when that side is.
      {"t1", "one", true},
      {"one", "t1", true},
      {"one", "x", false},
      {"f1", "one", false},
      // Waiting for a dead node makes a node dead.
      {"t1", "control_t", true},
      {"control_t", "t1", true},
      {"control_t", "x", false},
      {"waits_t", "t2", true},
      {"waits_t", "x", false},
      {"waits_t", "f1", false},
      // Two predicates are independent.
      {"t1", "tq", false},
      {"tq", "t1", false},
      {"either", "x", false},
      {"either", "f1", false},
      {"t1", "either", false},
      {"tq", "either", false},
      // Nested: the inner sides lie in the true side of p.
      {"t1", "nt", true},
      {"t1", "nf", true},
      {"nt", "t1", false},
      {"nf", "t1", false},
      {"nt", "nf", false},
      {"f1", "nt", false},
      {"nm", "t1", true},
      {"t1", "nm", true},
      {"nm", "x", false},
      {"nm", "nt", true},
      {"nt", "nm", false},
      {"nout", "x", true},
      {"nout", "nt", true},
      {"nm", "nout", false},
      // q on the true side of p is not q.
      {"tq", "nt", false},
      {"nt", "tq", false},
      // Sides 0 and 1 of three do not cover everything; that all three do is not recognized, which
      // is safe.
      {"m0", "m0", true},
      {"m0", "m1", false},
      {"m01", "x", false},
      {"m0", "m01", false},
      {"x", "m01", true},
      {"x", "m012", true},
      {"m0", "m012", false},
      {"waits_merge", "x", true},
      {"waits_merge", "t1", true},
      {"t1", "waits_merge", false},
  };
  const Flow flow(kConditionals);
  for (const EdgeCase& c : cases) {
    EXPECT_EQ(flow.May(c.from, c.to), c.sound) << c.from << " -> " << c.to;
    EXPECT_EQ(flow.Dead(c.to, c.from), c.sound) << c.to << " dead whenever " << c.from;
  }
}

TEST(ControlFlowTest, AnExitIsAliveWhenItsLoopIs) {
  const Flow flow(kNestedLoops);
  EXPECT_TRUE(flow.May("exit", "x"));
  EXPECT_TRUE(flow.May("after", "x"));
  EXPECT_TRUE(flow.May("x", "after"));
  EXPECT_TRUE(flow.May("i_exit", "body"));
  EXPECT_TRUE(flow.May("body", "tail"));     // tail reads i_exit.
  EXPECT_FALSE(flow.May("body", "i_exit"));  // It reads in its own loop.
  // In the last iteration, the body is dead while the condition is computed.
  EXPECT_FALSE(flow.May("body", "less"));
  EXPECT_TRUE(flow.May("less", "body"));
  // No edge across frames is sound.
  EXPECT_FALSE(flow.May("x", "body"));
  EXPECT_FALSE(flow.May("body", "after"));
  EXPECT_FALSE(flow.May("i_body", "body"));
  EXPECT_FALSE(flow.May("body", "i_body"));
  EXPECT_FALSE(flow.May("i_body", "b_body"));
  // An Enter reads in one frame, and its output is read in another.
  EXPECT_TRUE(flow.May("x", "enter"));
  EXPECT_FALSE(flow.May("enter", "x"));
  EXPECT_TRUE(flow.May("enter", "body"));
}

TEST(ControlFlowTest, ALoopInABranchIsDeadWithIt) {
  const Flow flow(R"(
      p = Placeholder() {dtype=bool}
      x = Placeholder() {dtype=float32}
      s = Switch(x, p) {T=float32}
      t = Relu(s:1) {T=float32}
      f = Relu(s) {T=float32}
      enter = Enter(t) {T=float32, frame_name="w"}
      merge = Merge(enter, next) {T=float32, N=2}
      less = Less(merge, merge) {T=float32}
      cond = LoopCond(less)
      switch = Switch(merge, cond) {T=float32}
      next = NextIteration(switch:1) {T=float32}
      exit = Exit(switch) {T=float32}
      # Leaves the loop on the side on which it goes on.
      wrong = Exit(switch:1) {T=float32}
      after = Relu(exit) {T=float32}
      after_wrong = Relu(wrong) {T=float32}
  )");
  EXPECT_FALSE(flow.May("exit", "x"));
  EXPECT_FALSE(flow.May("exit", "f"));
  EXPECT_TRUE(flow.May("exit", "t"));
  EXPECT_TRUE(flow.May("t", "after"));
  EXPECT_TRUE(flow.May("after", "t"));
  EXPECT_FALSE(flow.May("f", "after"));
  EXPECT_FALSE(flow.May("wrong", "t"));
  EXPECT_FALSE(flow.May("wrong", "after"));
  EXPECT_FALSE(flow.May("after_wrong", "t"));
  EXPECT_TRUE(flow.Dead("after_wrong", "t"));
}

// A chain of nested conditionals: t_i is alive if predicates 0 to i are all true, f_i if those
// before i are and i is false. Deeper than the analysis keeps conditions; it must stay sound.
TEST(ControlFlowTest, HundredsOfNestedPredicatesStaySound) {
  constexpr int kDepth = 300;
  std::string text = "x = Placeholder() {dtype=float32}\n";
  std::string data = "x";
  for (int i = 0; i < kDepth; ++i) {
    absl::StrAppend(&text, "p", i, " = Placeholder() {dtype=bool}\n", "s", i, " = Switch(", data,
                    ", p", i, ") {T=float32}\n", "f", i, " = Relu(s", i, ") {T=float32}\n", "t", i,
                    " = Relu(s", i, ":1) {T=float32}\n");
    data = absl::StrCat("t", i);
  }
  const Flow flow(text);
  int wrong = 0;
  const auto check = [&](absl::string_view v, absl::string_view u, bool truth) {
    if (!flow.Dead(v, u) || truth) return;
    if (++wrong <= 5) ADD_FAILURE() << v << " is not dead whenever " << u << " is";
  };
  for (int i = 0; i < kDepth; ++i) {
    const std::string ti = absl::StrCat("t", i), fi = absl::StrCat("f", i);
    check("x", ti, false);
    check("x", fi, false);
    for (int j = 0; j < kDepth; ++j) {
      const std::string tj = absl::StrCat("t", j), fj = absl::StrCat("f", j);
      check(tj, ti, i <= j);
      check(fj, ti, i < j);
      check(tj, fi, false);
      check(fj, fi, i == j);
    }
  }
  EXPECT_EQ(wrong, 0);
  // The analysis must not just deny everything: shallow facts are known, and a node implies itself
  // at any depth.
  EXPECT_TRUE(flow.Dead("t9", "t3"));
  EXPECT_TRUE(flow.Dead("f9", "t3"));
  EXPECT_TRUE(flow.Dead("t299", "t299"));
}

// ---- Against brute force ----

// A random acyclic graph of Switch, Merge and plain ops over a few free predicates, and the state
// of each node under every assignment of them.
class RandomFlow {
 public:
  static constexpr int kPredicates = 4;
  static constexpr int kAssignments = 1 << kPredicates;

  // `nesting`: the share, in percent, of Switches among the nodes.
  RandomFlow(uint32_t seed, int nodes, int nesting) : random_(seed) {
    for (int p = 0; p < kPredicates; ++p) {
      Node node;
      node.is_bool = true;
      for (int a = 0; a < kAssignments; ++a) {
        node.alive.push_back(true);
        node.value.push_back((a >> p & 1) != 0);
      }
      Add(std::move(node), absl::StrCat("Placeholder() {dtype=bool}"));
    }
    Node x;
    x.alive.assign(kAssignments, true);
    x.value.assign(kAssignments, false);
    Add(std::move(x), "Placeholder() {dtype=float32}");
    while (static_cast<int>(nodes_.size()) < nodes) AddRandom(nesting);
  }

  const std::string& text() const { return text_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  static std::string Name(int id) { return absl::StrCat("n", id); }
  bool AliveIn(int id, int assignment) const { return nodes_[id].alive[assignment]; }

  // Returns whether v is dead whenever u is.
  bool Truth(int v, int u) const {
    for (int a = 0; a < kAssignments; ++a) {
      if (!nodes_[u].alive[a] && nodes_[v].alive[a]) return false;
    }
    return true;
  }

 private:
  struct Node {
    bool is_bool = false;
    bool is_switch = false;
    int predicate = -1;       // Of a Switch.
    std::vector<bool> alive;  // By assignment.
    std::vector<bool> value;  // Of a bool node.
  };
  struct Source {
    int node;
    int port;
  };

  int Pick(int below) { return static_cast<int>(random_() % below); }

  Source PickSource(bool want_bool) {
    // Prefers recent nodes, to get nesting.
    for (int attempt = 0;; ++attempt) {
      const int back = attempt < 20 ? std::min(size(), 8) : size();
      const int id = size() - 1 - Pick(back);
      if (nodes_[id].is_bool == want_bool) return {id, nodes_[id].is_switch ? Pick(2) : 0};
    }
  }
  bool Arrives(Source s, int a) const {
    const Node& node = nodes_[s.node];
    if (!node.alive[a]) return false;
    return !node.is_switch || nodes_[node.predicate].value[a] == (s.port == 1);
  }
  static std::string Spell(Source s) {
    return s.port == 0 ? Name(s.node) : absl::StrCat(Name(s.node), ":", s.port);
  }

  void Add(Node node, absl::string_view definition) {
    absl::StrAppend(&text_, Name(size()), " = ", definition, "\n");
    nodes_.push_back(std::move(node));
  }

  void AddRandom(int nesting) {
    const int kind = Pick(100);
    Node node;
    node.is_bool = Pick(4) == 0;
    const char* type = node.is_bool ? "bool" : "float32";
    std::vector<Source> inputs = {PickSource(node.is_bool)};
    std::vector<int> controls;
    if (Pick(6) == 0) controls.push_back(Pick(size()));
    std::string op;
    if (kind < nesting) {
      op = "Switch";
      node.is_switch = true;
      const Source predicate = PickSource(true);
      node.predicate = predicate.node;
      inputs.push_back(predicate);
    } else if (kind < nesting + 25 && !node.is_bool) {
      op = "Merge";
      for (int more = 1 + Pick(2); more > 0; --more) inputs.push_back(PickSource(false));
    } else if (node.is_bool) {
      // LogicalAnd(p, p) equals p, but is a different condition to the analysis.
      op = Pick(2) == 0 ? "Identity" : "LogicalAnd";
      if (op == "LogicalAnd") inputs.push_back(inputs[0]);
    } else {
      op = "AddV2";
      inputs.push_back(PickSource(false));
    }
    for (int a = 0; a < kAssignments; ++a) {
      bool all = true, any = false;
      for (Source s : inputs) {
        all = all && Arrives(s, a);
        any = any || Arrives(s, a);
      }
      for (int c : controls) all = all && nodes_[c].alive[a];
      node.alive.push_back(op == "Merge" ? any : all);
      node.value.push_back(node.is_bool && nodes_[inputs[0].node].value[a]);
    }
    std::vector<std::string> spelled;
    for (Source s : inputs) spelled.push_back(Spell(s));
    for (int c : controls) spelled.push_back(absl::StrCat("^", Name(c)));
    const std::string n = op == "Merge" ? absl::StrCat(", N=", inputs.size()) : "";
    Add(std::move(node),
        absl::StrCat(op, "(", absl::StrJoin(spelled, ", "), ") {T=", type, n, "}"));
  }

  std::mt19937 random_;
  std::vector<Node> nodes_;
  std::string text_;
};

// Counts the pairs for which the analysis says yes although deadness depends on the predicates.
void CompareWithTruth(const RandomFlow& random, int* telling_yes, int* missed_yes) {
  const Flow flow(random.text());
  for (int u = 0; u < random.size(); ++u) {
    bool ever_dead = false;
    for (int a = 0; a < RandomFlow::kAssignments; ++a) ever_dead |= !random.AliveIn(u, a);
    if (!ever_dead) continue;
    for (int v = 0; v < random.size(); ++v) {
      const bool truth = random.Truth(v, u);
      const bool says = flow.Dead(RandomFlow::Name(v), RandomFlow::Name(u));
      ASSERT_TRUE(!says || truth) << RandomFlow::Name(v) << " lives while " << RandomFlow::Name(u)
                                  << " is dead in\n"
                                  << random.text();
      if (u != v && says) ++*telling_yes;
      if (truth && !says) ++*missed_yes;
    }
  }
}

TEST(ControlFlowTest, NeverSaysDeadWhereBruteForceFindsALife) {
  int yes = 0, missed = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFlow random(seed, 40, 30);
    ASSERT_NO_FATAL_FAILURE(CompareWithTruth(random, &yes, &missed));
  }
  // The analysis must also be useful.
  EXPECT_GT(yes, 10'000);
  RecordProperty("yes", yes);
  RecordProperty("missed", missed);
}

TEST(ControlFlowTest, NeverSaysDeadInDeepNestsEither) {
  int yes = 0, missed = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFlow random(seed, 300, 60);
    ASSERT_NO_FATAL_FAILURE(CompareWithTruth(random, &yes, &missed));
  }
  EXPECT_GT(yes, 1'000);
}

TEST(ControlFlowTest, StopsWhenTold) {
  std::string text = "p = Placeholder() {dtype=bool}\nn0 = Switch(p, p) {T=bool}\n";
  for (int i = 1; i < 20'000; ++i) absl::StrAppend(&text, "n", i, " = Relu(n", i - 1, ")\n");
  const TestGraph graph(text);
  const Topology topology = testing::ValueOrDie(Topology::Build(*graph, StopToken()), "topology");
  const StopToken stop = StopToken::AfterStepsForTest(2'000);
  EXPECT_EQ(GetErrorReason(ControlFlowAnalysis::Build(*graph, topology, stop).status()),
            v1::ERROR_REASON_STOPPED);
  EXPECT_LT(stop.steps(), 2'000 + 2 * StopPoller::kStride);
}

}  // namespace
}  // namespace spillway::core
