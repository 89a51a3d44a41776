// Recomputation on random graphs: for any target, every node of the graph computes the same values
// from the same inputs as before, the verifier finds the clones sound, strip removes them, and a
// naive count of the memory, event by event, never exceeds the target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/apply/verifier.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/plan/clone_writer.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/order/ordered_step.h"
#include "rewrite_core/strategy/recompute/clone_planner.h"
#include "rewrite_core/strategy/recompute/postpone.h"
#include "rewrite_core/strategy/recompute/recompute_sweep.h"
#include "tests/property/properties.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/testing/naive_executor.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/sanitizers.h"

namespace spillway::core {
namespace {

using testing::Random;
using testing::TestGpuStep;
using testing::TestGraph;
using testing::ValueOrDie;

// The peak memory if nodes and clones run one after the other in the order of the sweep: a buffer
// lives from its maker to the last reader of that maker.
int64_t NaivePeak(const StepOrder& order, const Sweep& sweep) {
  struct Event {
    Slot slot;      // Its node.
    int32_t clone;  // -1: the node itself.
  };
  std::vector<Event> events;
  size_t next = 0;
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    for (; next < sweep.clones.size() && sweep.clones[next].at == slot; ++next) {
      events.push_back({sweep.clones[next].original, static_cast<int32_t>(next)});
    }
    events.push_back({slot, -1});
  }
  // By buffer and the clone that made it (-1: its maker): the events that make it and read it last.
  std::map<std::pair<int32_t, int32_t>, std::pair<size_t, size_t>> live;
  std::map<std::pair<int32_t, int32_t>, int32_t>
      from;  // By reader, -1 - slot or clone, and buffer.
  for (const Sweep::Read& read : sweep.reads) {
    from[{read.clone < 0 ? -1 - read.slot : read.clone, read.buffer}] = read.from;
  }
  for (size_t i = 0; i < events.size(); ++i) {
    const auto [slot, clone] = events[i];
    for (OrderBuffer b(0); b < order.num_buffers(); ++b) {
      for (const StepOrder::Use& use : order.uses(b)) {
        if (use.slot != slot) continue;
        const auto found = from.find({clone < 0 ? -1 - slot : clone, b});
        auto& of = live.at({b, found == from.end() ? -1 : found->second});
        of.second = i;
      }
      if (order.made(b) == slot) live[{b, clone}] = {i, i};
    }
  }
  int64_t peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    int64_t bytes = order.resident_bytes() + order.workspace_bytes(events[i].slot);
    for (const auto& [key, when] : live) {
      const OrderBuffer buffer(key.first);
      if (when.first > i || when.second < i) continue;
      // A buffer made in place of another one at the latter's last read.
      const OrderBuffer taken = order.takes_over(buffer);
      if (when.first == i && taken != kNoOrderBuffer) {
        const auto found = from.find({key.second < 0 ? -1 - events[i].slot : key.second, taken});
        const auto& of = live.at({taken, found == from.end() ? -1 : found->second});
        if (of.second == i) continue;
      }
      bytes += order.bytes(buffer);
    }
    for (const StepOrder::CopyIn& copy : order.copies_in()) {
      if (copy.first <= events[i].slot && events[i].slot <= copy.last && events[i].clone < 0) {
        bytes += copy.bytes;
      }
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

struct Seen {
  int sweeps = 0, fit = 0, clones = 0, plans = 0, postponed = 0;
};

void Check(const TestGpuStep& step, const OrderedStep& ordered, const testing::GraphDef& graph,
           const Sweep& sweep, const RecomputeStep& recompute, int64_t target, Seen* seen) {
  EXPECT_LE(sweep.peak_bytes, target);
  EXPECT_LE(NaivePeak(recompute.order(), sweep), target);
  ClonePlan plan = ValueOrDie(PlanClones(recompute, sweep, step.needs, ordered.ranks, {}), "plan");
  if (plan.clones.empty()) return;
  ++seen->plans;
  const size_t num_clones = plan.clones.size();
  std::vector<ControlEdge> edges = ordered.base.controls;
  EXPECT_THAT(PostponeOriginals(step.facts, step.needs, ordered.ranks, &plan, &edges, {}),
              testing::IsOk());
  seen->postponed += static_cast<int>(num_clones - plan.clones.size());
  GraphEdit edit(*step.graph);
  for (const ControlEdge& edge : edges) {
    edit.AddControlInput(edge.to, step.graph->name(edge.from));
  }
  const std::vector<std::string> names =
      ValueOrDie(WriteClones(*step.graph, plan, {}, &edit), "write");
  const std::string after = ValueOrDie(edit.Apply({}), "apply");
  EXPECT_THAT(VerifyRewrite(*step.graph, step.facts.control_flow(), after, step.step, {},
                            step.facts.active_nodes().targets),
              testing::IsOk());
  if (::testing::Test::HasFailure()) std::cout << testing::DescribeGraph(after) << "\n";
  const TestGraph written = TestGraph::FromBytes(after);
  EXPECT_EQ(ValueOrDie(Strip(*written, {}), "strip"), step.graph.bytes());
  testing::Originals originals;
  for (size_t i = 0; i < names.size(); ++i) {
    originals[names[i]] = std::string(step.graph->name(plan.clones[i].original));
  }
  EXPECT_EQ(testing::CompareAllOutcomes(graph, testing::ReadProto(after), originals), "");
}

void Try(uint64_t seed, const testing::RandomGraphOptions& kind, Seen* seen) {
  const testing::GraphDef graph = testing::MakeRandomGraph(seed, kind);
  const TestGpuStep step(TestGraph::FromBytes(testing::WriteProto(graph)));
  if (step.order.num_slots() == 0) return;
  const CloneRules rules = ValueOrDie(CloneRules::Find(step.facts, {}), "rules");
  Random random(seed);
  RecomputeTerms terms;
  terms.least = random.OneIn(2) ? RunAgain::kSameBits : RunAgain::kSameValue;
  std::vector<OrderEdgeTerms> order_terms;
  if (random.OneIn(2)) order_terms.push_back(kLargeOutputs);
  const OrderedStep ordered =
      ValueOrDie(OrderedStep::Create(step.facts, {}, step.unswapped, {GpuIndex(0)}, order_terms,
                                     2 * step.unswapped.step_time_ns(), step.simulator.get(), {}),
                 "order");
  const StepOrder order =
      ValueOrDie(StepOrder::Create(step.facts, GpuIndex(0), ordered.step, {}), "order");
  const RecomputeStep recompute =
      ValueOrDie(RecomputeStep::Create(step.facts, order, rules, terms, {}), "step");
  const auto& live = order.live_bytes();
  const int64_t peak = *std::max_element(live.begin(), live.end());
  for (int percent = 95; percent > 30; percent -= random.Between(3, 15)) {
    const int64_t target = peak * percent / 100;
    const int64_t region = random.OneIn(2) ? target : 0;
    const SweepTerms of{target, region, random.OneIn(2) ? 1.0 : 0.3};
    const Sweep sweep = ValueOrDie(SweepStep(recompute, of, {}), "sweep");
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", percent, " %"));
    ++seen->sweeps;
    if (!sweep.fits) continue;
    ++seen->fit;
    seen->clones += static_cast<int>(sweep.clones.size());
    Check(step, ordered, graph, sweep, recompute, target, seen);
    if (::testing::Test::HasFailure()) return;
  }
}

void TryAll(const testing::RandomGraphOptions& kind, int seeds) {
  Seen seen;
  for (int i = 0; i < seeds * testing::LongRunFactor(20) && !::testing::Test::HasFailure(); ++i) {
    Try(static_cast<uint64_t>(i), kind, &seen);
  }
  std::cout << seen.sweeps << " sweeps, " << seen.fit << " fit, with " << seen.clones << " clones; "
            << seen.plans << " plans, " << seen.postponed << " clones postponed instead\n";
  EXPECT_GT(seen.fit, seeds / 10);
  EXPECT_GT(seen.plans, seeds / 20);
  EXPECT_GE(seen.postponed, seeds / 20);
}

// A training step of activations of one size, some of which are sums of siblings: one of these may
// wait for another.
std::string SumsOfSiblings(Random* random) {
  const std::string type = " @/gpu:0 {T=float32, _output_shapes=[(64,56,56,16)]}\n";
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(64,56,56,16)}\n"
      "v = VariableV2() @/gpu:0 {dtype=float32, shape=(64,56,56,16)}\n"
      "lr = Const() @/gpu:0 {dtype=float32, _output_shapes=[()]}\n"
      "r = Identity(v) @/gpu:0 {T=float32, _output_shapes=[(64,56,56,16)]}\n";
  std::vector<std::string> made = {"x"}, kept;  // Kept: read backward.
  const auto add = [&](const std::string& made_by, absl::string_view more = "") {
    const std::string name = absl::StrCat("f", made.size());
    absl::StrAppend(&text, name, " = ", made_by, " @/gpu:0 {T=float32", more,
                    ", _output_shapes=[(64,56,56,16)]}\n");
    made.push_back(name);
  };
  for (int i = random->Between(8, 25); i > 0; --i) {
    const std::string last = made.back();
    if (random->OneIn(3)) {
      std::vector<std::string> siblings;
      for (int k = random->Between(2, 4); k > 0; --k) {
        add(absl::StrCat(random->OneIn(2) ? "Sigmoid(" : "Tanh(", last, ")"));
        siblings.push_back(made.back());
      }
      add(absl::StrCat("AddN(", absl::StrJoin(siblings, ", "), ")"),
          absl::StrCat(", N=", siblings.size()));
    } else if (random->OneIn(3)) {
      add(absl::StrCat("Mul(", last, ", ",
                       random->OneIn(2) || kept.empty() ? "r" : random->Pick(kept), ")"));
    } else {
      add(absl::StrCat(random->OneIn(2) ? "Tanh(" : "Neg(", last, ")"));
    }
    kept.push_back(made.back());
  }
  std::string last = made.back();
  for (size_t i = kept.size(); i-- > 0;) {
    if (random->OneIn(4)) continue;
    const std::string name = absl::StrCat("gradients/g", i);
    absl::StrAppend(&text, name, " = Mul(", last, ", ", kept[i], ")", type);
    last = name;
  }
  return testing::GraphBytes(
      absl::StrCat(text, "u = ApplyGradientDescent(v, lr, ", last, ")", type));
}

// Returns whether the plan has clones. Saved and applied, it gives the same bytes.
bool ApplySaved(uint64_t seed) {
  Random random(seed);
  const std::string bytes = SumsOfSiblings(&random);
  v1::RewriteOptions options;
  options.mutable_step()->add_targets("u");
  v1::Hardware& hardware = *options.mutable_step()->mutable_hardware();
  hardware.set_preset(random.OneIn(2) ? "p100_pcie" : "a100_40gb_pcie4");
  hardware.set_allocator_reserve(0);
  hardware.set_gpu_memory_bytes(int64_t{1} << 50);
  v1::SimulateOptions ample;
  *ample.mutable_step() = options.step();
  const int64_t peak = ValueOrDie(SimulateGraph(bytes, ample, DefaultLimits(), {}), "simulate")
                           .forecast()
                           .devices(0)
                           .peak_bytes();
  hardware.set_gpu_memory_bytes(peak * random.Between(25, 90) / 100);
  v1::BudgetStrategy& budget = *options.mutable_budget();
  budget.set_recompute(random.OneIn(2) ? v1::RECOMPUTE_CHEAP : v1::RECOMPUTE_ALL);
  budget.set_planning_effort(v1::PLANNING_EFFORT_LOW);
  for (v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_PLAN}) options.add_outputs(output);
  const auto made = Rewrite(bytes, options, DefaultLimits(), {});
  if (!made.ok()) {
    EXPECT_FALSE(absl::IsInternal(made.status())) << made.status();
    return false;
  }
  if (made->plan().clones().empty()) return false;
  v1::RewriteOptions apply;
  apply.add_outputs(v1::OUTPUT_GRAPH);
  made->plan().SerializeToString(apply.mutable_apply()->mutable_plan());
  const auto applied = Rewrite(bytes, apply, DefaultLimits(), {});
  EXPECT_THAT(applied.status(), testing::IsOk()) << "seed " << seed;
  if (applied.ok()) {
    EXPECT_TRUE(applied->graph_def() == made->graph_def()) << "seed " << seed;
  }
  return true;
}

TEST(RecomputePropertyTest, SavedPlansApply) {
  int plans = 0;
  const int seeds = (testing::kAddressSanitizer ? 50 : 300) * testing::LongRunFactor(10);
  for (int i = 0; i < seeds; ++i) plans += ApplySaved(i);
  std::cout << plans << " plans with clones\n";
  EXPECT_GT(plans, seeds / 4);
}

TEST(RecomputePropertyTest, Plain) { TryAll({40, false, false, true, false}, 200); }
TEST(RecomputePropertyTest, Conditionals) { TryAll({30, true, false, true, false}, 200); }
TEST(RecomputePropertyTest, SeveralDevices) { TryAll({40, false, false, true, true}, 100); }
TEST(RecomputePropertyTest, Large) { TryAll({300, false, false, true, false}, 5); }

}  // namespace
}  // namespace spillway::core
