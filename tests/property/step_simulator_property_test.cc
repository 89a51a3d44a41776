// Plans patched into the workload of the unswapped step, beside the workload that BuildWorkload
// makes of graph and plan: random plans on random graphs (predicates known or not) and on recorded
// ones, with memory from ample to too little, counted and placed. Every figure is the same; and, on
// small graphs, the same as the naive simulator's.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/simulate/plan_patch.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/naive_simulator.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::NaiveSimulate;
using testing::PrintPlan;
using testing::Random;
using testing::TestGraph;
using testing::TestStep;
using testing::ValueOrDie;

// An operation's identity; ids differ between the two workloads.
std::string Key(const WorkloadOp& op) {
  return absl::StrCat(static_cast<int>(op.kind), "/", op.device.value(), "/", op.node.value(), "/",
                      op.swap, "/", op.swap_in, "/", op.duration_ns);
}

std::string Key(const WorkloadBuffer& buffer) {
  return absl::StrCat(buffer.device.value(), "/", buffer.tensor.node.value(), ":",
                      buffer.tensor.port, "/", buffer.bytes, "/", buffer.resident, "/", buffer.swap,
                      "/", buffer.swap_in);
}

// Everything in a result, as text.
std::string Text(const SimulationResult& result, const std::vector<WorkloadOp>& ops,
                 const std::vector<WorkloadBuffer>& buffers) {
  const auto key = [&](OpId id) { return id == kNoOp ? "none" : Key(ops[id]); };
  std::string text = absl::StrCat("time ", result.step_time_ns, " host ", result.host_peak_bytes,
                                  " busy ", result.host_ns, result.waited ? " waited" : "", "\n");
  if (!result.fits()) {
    const OutOfMemory& oom = *result.out_of_memory;
    absl::StrAppend(&text, "out of memory: ", oom.device.value(), " ", key(oom.op), " ",
                    oom.node.value(), " ", oom.requested_bytes, " ", oom.in_use_bytes, " ",
                    oom.budget_bytes, " ", oom.time_ns, oom.fragmented ? " fragmented " : " ",
                    oom.missing_bytes, "\n");
  }
  for (const DeviceUse& use : result.devices) {
    absl::StrAppend(&text, "resident ", use.resident_bytes, " peak ", use.peak_bytes, " by ",
                    key(use.peak_op), " ", use.peak_node.value(), " compute ", use.compute_ns,
                    " out ", use.copy_out_ns, " in ", use.copy_in_ns, " stall ", use.stall_ns,
                    " bytes ", use.copy_out_bytes, " ", use.copy_in_bytes, "\n");
    for (const MemoryPoint& point : use.timeline) {
      absl::StrAppend(&text, " ", point.time_ns, ":", point.high_bytes, "/", point.bytes);
    }
    std::vector<std::string> alive;
    for (BufferId id : use.at_peak) alive.push_back(Key(buffers[id]));
    std::sort(alive.begin(), alive.end());
    absl::StrAppend(&text, "\nalive ", absl::StrJoin(alive, " "), "\n");
  }
  text += "order";
  for (OpId id : result.order) absl::StrAppend(&text, " ", key(id));
  std::vector<std::string> times;
  for (size_t i = 0; i < result.times.size(); ++i) {
    const OpTimes& at = result.times[i];
    times.push_back(absl::StrCat(Key(ops[i]), "@", at.given_ns, "-", at.start_ns, "-", at.end_ns));
  }
  std::sort(times.begin(), times.end());
  return absl::StrCat(text, "\ntimes ", absl::StrJoin(times, " "), "\n");
}

// A plan that keeps the graph acyclic: each edge that it adds leads to a higher level.
class RandomPlan {
 public:
  RandomPlan(const TestStep& step, Random* random)
      : step_(step), graph_(*step.graph), random_(*random) {
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (Runs(id) || random_.OneIn(50)) nodes_.push_back(id);
    }
  }

  SwapPlan Make(int swaps) {
    SwapPlan plan;
    if (nodes_.empty()) return plan;
    for (int i = 0; i < swaps; ++i) AddSwap(&plan);
    while (random_.OneIn(2)) {
      const NodeId from = random_.Pick(nodes_), to = random_.Pick(nodes_);
      if (Level(from) < Level(to)) plan.controls.push_back({from, to});
    }
    if (random_.OneIn(10)) plan.cpu_device = "/cpu:0";
    if (random_.OneIn(30)) plan.cpu_device = "/gpu:0";
    return plan;
  }

 private:
  bool Runs(NodeId id) const { return step_.facts.active_nodes().flags[id]; }
  int32_t Level(NodeId id) const { return step_.facts.topology().level(id); }

  void AddSwap(SwapPlan* plan) {
    PlannedSwap swap;
    const NodeId node = random_.Pick(nodes_);
    std::vector<std::pair<InputPosition, int32_t>> readers;
    const Graph::Readers of = graph_.readers(node);
    for (uint32_t i = 0; i < of.size(); ++i) {
      const auto [reader, index, port] = of[i];
      if (port == kControl || Level(reader) <= Level(node)) continue;
      readers.push_back({{reader, index}, port});
    }
    if (readers.empty()) return;
    swap.tensor = {node, random_.Pick(readers).second};
    for (const PlannedSwap& other : plan->swaps) {
      if (other.tensor == swap.tensor) return;
    }
    random_.Shuffle(&readers);
    for (const auto& [consumer, port] : readers) {
      if (port != swap.tensor.port || random_.OneIn(4)) continue;
      if (swap.swap_ins.empty() || random_.OneIn(2)) swap.swap_ins.emplace_back();
      swap.swap_ins.back().consumers.push_back(consumer);
    }
    for (PlannedSwapIn& swap_in : swap.swap_ins) {
      int32_t first = step_.facts.topology().level(swap_in.consumers[0].node);
      for (const InputPosition& consumer : swap_in.consumers) {
        first = std::min(first, Level(consumer.node));
      }
      int32_t last = Level(node);
      while (random_.OneIn(2)) {
        const NodeId trigger = random_.Pick(nodes_);
        if (Level(trigger) >= first) continue;
        swap_in.triggers.push_back(trigger);
        last = std::max(last, Level(trigger));
      }
      while (random_.OneIn(3)) {
        const NodeId paced = random_.Pick(nodes_);
        if (Level(paced) > last) swap_in.paces.push_back(paced);
      }
    }
    while (random_.OneIn(3)) {
      const NodeId waiting = random_.Pick(nodes_);
      if (Level(waiting) > Level(node)) swap.deadlines.push_back(waiting);
    }
    plan->swaps.push_back(std::move(swap));
  }

  const TestStep& step_;
  const Graph& graph_;
  Random& random_;
  std::vector<NodeId> nodes_;
};

// The ladder, rung by rung, on the workload of graph and plan.
class Reference {
 public:
  Reference(const TestStep& step, const SwapPlan& plan)
      : step_(step), workload_(step.Build(&plan)) {}

  SimulationOptions Options(const StepTerms& terms) const {
    SimulationOptions options;
    options.launch_ns = ToNanoseconds(step_.facts.hardware().launch_s);
    const size_t gpus = std::max<size_t>(workload_.devices.size(), 1);
    options.device_budget_bytes.assign(gpus, kUnlimited);
    if (terms.budgets != StepTerms::Budgets::kNone) {
      options.host_budget_bytes = step_.facts.hardware().host_memory_bytes;
    }
    if (terms.budgets == StepTerms::Budgets::kOneGpu) {
      options.device_budget_bytes[terms.gpu] = terms.budget_bytes;
      options.host_budget_bytes /= static_cast<int64_t>(gpus);
    }
    if (terms.budgets == StepTerms::Budgets::kAllGpus) {
      options.device_budget_bytes.assign(gpus, terms.budget_bytes);
    }
    options.record_timeline = options.record_times = true;
    options.ready_order = terms.variation.ready_order;
    options.ready_seed = terms.variation.seed;
    options.copy_percent = terms.variation.copy_percent;
    options.spread_percent = terms.variation.spread_percent;
    options.late_ns = terms.variation.late_ns;
    options.initializer_seed = terms.variation.initializer_seed;
    return options;
  }

  BothModes Climb(const StepTerms& terms, bool* placed) const {
    SimulationOptions options = Options(terms);
    const auto run = [&](int64_t cutoff_ns) {
      auto both = terms.always_synchronous ? SimulateBothModes(workload_, options, {})
                                           : SimulateWithCutoff(workload_, options, cutoff_ns, {});
      return ValueOrDie(std::move(both), "simulation");
    };
    options.placed = *placed = terms.placed_alone;
    BothModes both = run(terms.cutoff_ns);
    if (terms.placed_alone) return both;
    if (!terms.place || !both.fits()) return both;
    for (size_t i = 0; i < workload_.devices.size(); ++i) {
      const int64_t peak =
          std::max(both.launch_ahead.devices[i].peak_bytes, both.synchronous.devices[i].peak_bytes);
      *placed = *placed || peak > options.device_budget_bytes[i] / 4;
    }
    if (!*placed) return both;
    options.placed = true;
    return run(kUnlimited);
  }

  const Workload& workload() const { return workload_; }

 private:
  const TestStep& step_;
  const Workload workload_;
};

struct Seen {
  int plans = 0, patched = 0, fits = 0, fails = 0, fragmented = 0, placed = 0, partial = 0;
  int paced = 0, placed_alone = 0, varied = 0, given_up = 0, dead = 0;
};

void Compare(StepSimulator* simulator, const SwapPlan& plan, const StepTerms& terms,
             const Reference& reference, bool naive, Seen* seen) {
  bool placed = false;
  const BothModes expected = reference.Climb(terms, &placed);
  const StepResult result = ValueOrDie(simulator->Simulate(plan, terms, {}), "step");
  const auto& ops = reference.workload().ops;
  const auto& buffers = reference.workload().buffers;
  if (terms.placed_alone && result.is_partial) {  // Given up: all that is known is that it is slow.
    ++seen->given_up;
    const SimulationResult& whole = expected.launch_ahead;
    ASSERT_GT(result.launch_ahead.step_time_ns, terms.cutoff_ns);
    ASSERT_FALSE(result.fits || result.has_synchronous);
    if (whole.fits()) {
      ASSERT_LE(result.launch_ahead.step_time_ns, whole.step_time_ns);
    }
    return;
  }
  ASSERT_EQ(Text(result.launch_ahead, result.ops, result.buffers),
            Text(expected.launch_ahead, ops, buffers));
  ASSERT_EQ(result.has_synchronous, !expected.is_partial);
  if (result.has_synchronous) {
    ASSERT_EQ(Text(result.synchronous, result.ops, result.buffers),
              Text(expected.synchronous, ops, buffers));
  }
  ASSERT_EQ(result.fits, expected.fits());
  ASSERT_EQ(result.is_partial, expected.is_partial && expected.launch_ahead.fits());
  ASSERT_EQ(result.is_placed, placed);
  if (result.is_unlimited) {
    StepTerms without_end;
    without_end.variation = terms.variation;
    const BothModes free = reference.Climb(without_end, &placed);
    ASSERT_EQ(Text(result.launch_ahead, result.ops, result.buffers),
              Text(free.launch_ahead, ops, buffers));
    ASSERT_EQ(Text(result.synchronous, result.ops, result.buffers),
              Text(free.synchronous, ops, buffers));
  }
  seen->fits += result.fits;
  seen->partial += result.is_partial;
  seen->placed += result.is_placed;
  seen->placed_alone += terms.placed_alone;
  seen->varied += !terms.variation.is_none();
  seen->fails += result.failure() != nullptr;
  seen->fragmented += result.failure() != nullptr && result.failure()->fragmented;
  if (!naive) return;
  SimulationOptions options = reference.Options(terms);
  options.placed = result.is_placed;
  ASSERT_EQ(Text(result.launch_ahead, result.ops, result.buffers),
            Text(NaiveSimulate(reference.workload(), options), ops, buffers));
  if (!result.has_synchronous) return;
  options.mode = SimulationMode::kSynchronous;
  ASSERT_EQ(Text(result.synchronous, result.ops, result.buffers),
            Text(NaiveSimulate(reference.workload(), options), ops, buffers));
}

void Try(const TestStep& step, Random* random, int plans, bool naive, Seen* seen) {
  auto simulator = ValueOrDie(StepSimulator::Create(step.facts, {}), "simulator");
  for (int i = 0; i < plans; ++i) {
    const SwapPlan plan = RandomPlan(step, random).Make(1 << random->Below(6));
    SCOPED_TRACE(PrintPlan(*step.graph, plan));
    const Reference reference(step, plan);
    ++seen->plans;
    for (const PlannedSwap& swap : plan.swaps) {
      for (const PlannedSwapIn& swap_in : swap.swap_ins) seen->paced += !swap_in.paces.empty();
    }
    StepTerms terms;
    terms.record_operations = terms.record_memory = true;
    Compare(simulator.get(), plan, terms, reference, naive, seen);
    if (::testing::Test::HasFatalFailure()) return;
    bool placed = false;
    const BothModes free = reference.Climb(terms, &placed);
    if (free.launch_ahead.devices.empty()) continue;
    for (int j = 0; j < 4; ++j) {
      const GpuIndex gpu(random->Below(static_cast<int>(free.launch_ahead.devices.size())));
      const DeviceUse& use = free.launch_ahead.devices[gpu];
      const int64_t budget = use.peak_bytes -
                             (use.peak_bytes - use.resident_bytes) * random->Below(10) / 12 +
                             (random->OneIn(3) ? use.peak_bytes / 16 : 0);
      terms.budgets = random->OneIn(3) ? StepTerms::Budgets::kAllGpus : StepTerms::Budgets::kOneGpu;
      terms.gpu = gpu;
      terms.budget_bytes = random->OneIn(8) ? 5 * budget : budget;
      terms.place = !random->OneIn(3);
      terms.always_synchronous = random->OneIn(2);
      terms.placed_alone = random->OneIn(3);
      terms.variation = StepVariation();
      if (random->OneIn(2)) {
        terms.variation.ready_order = random->Pick(std::vector<ReadyOrder>{
            ReadyOrder::kFirstReady, ReadyOrder::kLastReady, ReadyOrder::kMixed});
        terms.variation.seed = static_cast<uint32_t>(random->Next());
        terms.variation.copy_percent = random->Between(50, 200);
        terms.variation.spread_percent = random->OneIn(2) ? 100 : random->Between(101, 400);
        terms.variation.late_ns = random->OneIn(2) ? 0 : random->Between(1, 1'000'000);
        terms.variation.initializer_seed = random->Below(3);
      }
      terms.cutoff_ns =
          random->OneIn(4) ? free.launch_ahead.step_time_ns - random->Below(2) : kUnlimited;
      Compare(simulator.get(), plan, terms, reference, naive, seen);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// How many of the plans are patched in, not rebuilt.
void CountPatched(const TestStep& step, Random* random, int plans, Seen* seen) {
  WorkloadNotes notes;
  WorkloadTrace trace;
  const Workload workload =
      ValueOrDie(BuildTracedWorkload(step.facts, &notes, &trace, {}), "workload");
  PreparedWorkload prepared = ValueOrDie(
      PreparedWorkload::Prepare(workload, 0, {}, LayoutOf(step.facts, workload, trace)), "prepare");
  PlanPatch patch(step.facts, workload, trace, &prepared);
  for (int i = 0; i < plans; ++i) {
    const SwapPlan plan = RandomPlan(step, random).Make(4);
    seen->patched += ValueOrDie(patch.Apply(plan, {}), "patch");
    patch.Undo();
  }
}

TEST(StepSimulatorPropertyTest, RandomGraphs) {
  Seen seen;
  int counted = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    testing::RandomGraphOptions options;
    options.forward_ops = random.Between(3, 25);
    options.conds = random.OneIn(2);
    options.loops = random.OneIn(4);
    options.devices = random.OneIn(2);
    testing::GraphDef graph = testing::MakeRandomGraph(seed, options);
    // Predicates are true, false or unknown: the side that is not taken is in no workload.
    v1::Step step_options;
    for (auto& node : *graph.mutable_node()) {
      if (node.name().rfind("pred", 0) != 0 || node.op() != "Placeholder" || random.OneIn(3)) {
        continue;
      }
      node.mutable_attr()->erase("_output_shapes");  // As random as the rest.
      v1::Feed* feed = step_options.add_feeds();
      feed->set_name(node.name());
      feed->add_values(random.OneIn(2));
    }
    const TestStep step(TestGraph::FromBytes(graph.SerializeAsString()), step_options);
    const ActiveNodes& nodes = step.facts.active_nodes();
    for (size_t id = 0; id < nodes.flags.size(); ++id) {
      seen.dead += nodes.needed[id] && !nodes.flags[id];
    }
    Try(step, &random, 6, options.forward_ops < 8, &seen);
    CountPatched(step, &random, 6, &seen);
    counted += 6;
  }
  std::cout << seen.plans << " plans: " << seen.fits << " fit, " << seen.partial << " slow, "
            << seen.placed << " placed, " << seen.fails << " fail, " << seen.fragmented
            << " in pieces, " << seen.paced << " with pace edges, " << seen.placed_alone
            << " only placed, " << seen.varied << " varied, " << seen.given_up << " given up; "
            << seen.dead << " nodes dead; patched " << seen.patched << " of " << counted << "\n";
  EXPECT_GT(seen.patched, counted / 2);
  for (int count : {seen.fits, seen.fails, seen.fragmented, seen.placed, seen.partial, seen.paced,
                    seen.placed_alone, seen.varied, seen.given_up, seen.dead}) {
    EXPECT_GT(count, 10);
  }
}

struct Recorded {
  const char* name;
  int plans;
};

class RecordedGraphsTest : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordedGraphsTest, SameAsMadeAnew) {
  const std::string bytes = testing::ReadTestGraph(absl::StrCat(GetParam().name, "/graph.pb"));
  // Without and with the layout pass's transposes.
  for (v1::KernelMemory memory : {v1::KERNEL_MEMORY_OFF, v1::KERNEL_MEMORY_AUTO}) {
    v1::Step options;
    options.set_kernel_memory(memory);
    Random random(1);
    Seen seen;
    const TestStep step(TestGraph::FromBytes(bytes), options);
    Try(step, &random, GetParam().plans, /*naive=*/false, &seen);
    CountPatched(step, &random, 4 * GetParam().plans, &seen);
    // A plan touching a loop is rebuilt.
    EXPECT_GT(seen.patched, step.facts.loops().empty() ? GetParam().plans : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, RecordedGraphsTest,
    ::testing::Values(Recorded{"cnn_mnist", 10}, Recorded{"resnet50_tf1_b4", 4},
                      Recorded{"mixed_fp16", 4}, Recorded{"lstm_while", 6}, Recorded{"cond_v1", 10},
                      Recorded{"resnet26_2tower_b2", 4}, Recorded{"tfcnn_resnet50_2gpu", 2},
                      Recorded{"bert_base", 2}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace spillway::core
