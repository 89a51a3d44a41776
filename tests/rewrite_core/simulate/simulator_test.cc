#include "rewrite_core/simulate/simulator.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/testing/workload_maker.h"

namespace spillway::core {
namespace {

using ::spillway::testing::WorkloadMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kK = 1024;  // Four times the unit to which sizes are rounded.

SimulationOptions Ahead(int64_t budget = kUnlimited, int64_t launch_ns = 0) {
  SimulationOptions options;
  options.device_budget_bytes = {budget};
  options.launch_ns = launch_ns;
  options.record_timeline = true;
  return options;
}

SimulationOptions Synchronous(int64_t budget = kUnlimited) {
  SimulationOptions options = Ahead(budget);
  options.mode = SimulationMode::kSynchronous;
  return options;
}

SimulationResult RunStep(const WorkloadMaker& maker, const SimulationOptions& options) {
  auto result = Simulate(maker.Make(), options, StopToken());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimulationResult();
}

std::vector<std::vector<int64_t>> Points(const DeviceUse& use) {
  std::vector<std::vector<int64_t>> points;
  for (const MemoryPoint& point : use.timeline) {
    points.push_back({point.time_ns, point.high_bytes, point.bytes});
  }
  return points;
}

// Three kernels in a row, 100 ns each, a -> b -> c; each writes 1 KiB, which nothing reads in the
// case of c.
struct Chain {
  Chain() {
    x = maker.Buffer(0, kK);
    y = maker.Buffer(0, kK);
    z = maker.Buffer(0, kK);
    a = maker.Compute(100, {}, {}, {x});
    b = maker.Compute(100, {a}, {x}, {y});
    c = maker.Compute(100, {b}, {y}, {z});
  }
  WorkloadMaker maker;
  BufferId x, y, z;
  OpId a, b, c;
};

TEST(SimulatorTest, SynchronousTakesMemoryAtTheStartAndLetsGoAtTheEnd) {
  const SimulationResult result = RunStep(Chain().maker, Synchronous());
  EXPECT_TRUE(result.fits());
  EXPECT_EQ(result.step_time_ns, 300);
  const DeviceUse& use = result.devices[0];
  // x and y while b runs; at 200 x is freed and z allocated, with no change of the total.
  EXPECT_EQ(use.peak_bytes, 2 * kK);
  EXPECT_EQ(use.peak_op, 1);
  EXPECT_THAT(use.at_peak, ElementsAre(0, 1));
  EXPECT_THAT(Points(use), ElementsAre(ElementsAre(0, kK, kK), ElementsAre(100, 2 * kK, 2 * kK),
                                       ElementsAre(300, 0, 0)));
  EXPECT_EQ(use.compute_ns, 300);
  EXPECT_EQ(use.stall_ns, 0);
  EXPECT_THAT(result.order, ElementsAre(0, 1, 2));
}

TEST(SimulatorTest, LaunchedAheadMemoryIsLetGoAtTheLaunch) {
  // Launches at 0, 10 and 20: all memory has been allocated and freed while the first kernel runs.
  const SimulationResult result = RunStep(Chain().maker, Ahead(kUnlimited, 10));
  EXPECT_EQ(result.step_time_ns, 300);
  const DeviceUse& use = result.devices[0];
  EXPECT_EQ(use.peak_bytes, 2 * kK);
  EXPECT_THAT(Points(use), ElementsAre(ElementsAre(0, kK, kK), ElementsAre(10, 2 * kK, kK),
                                       ElementsAre(20, 2 * kK, 0)));
  EXPECT_EQ(use.stall_ns, 0);
  EXPECT_THAT(result.order, ElementsAre(0, 1, 2));
}

TEST(SimulatorTest, WorkspaceIsThereWhileTheKernelRunsOrAtItsLaunch) {
  Chain chain;
  chain.maker.op(chain.b).workspace_bytes = 3 * kK + 1;  // Rounded up: 3 KiB and 256 bytes.
  for (const auto& options : {Ahead(), Synchronous()}) {
    const SimulationResult result = RunStep(chain.maker, options);
    EXPECT_EQ(result.devices[0].peak_bytes, 5 * kK + 256);
    EXPECT_EQ(result.devices[0].peak_op, chain.b);
  }
}

TEST(SimulatorTest, SizesAreRoundedUpTo256) {
  WorkloadMaker maker;
  maker.Resident(0, 1);
  maker.Compute(
      1, {}, {},
      {maker.Buffer(0, 0), maker.Buffer(0, 1), maker.Buffer(0, 256), maker.Buffer(0, 257)});
  const SimulationResult result = RunStep(maker, Ahead());
  EXPECT_EQ(result.devices[0].resident_bytes, 256);
  EXPECT_EQ(result.devices[0].peak_bytes, 256 + 0 + 256 + 256 + 512);
}

TEST(SimulatorTest, ReadyOperationsQueueInOrderOfIdsAtOneMoment) {
  // 3 makes 2 ready and 4 makes 0 ready, both at 10; 1 is ready from the start, and so before both;
  // 5 becomes ready a moment later.
  WorkloadMaker maker;
  maker.Compute(50, {OpId(4)}, {}, {});
  maker.Compute(50, {}, {}, {});
  maker.Compute(50, {OpId(3)}, {}, {});
  maker.Host(10, {});
  maker.Host(10, {});
  maker.Compute(50, {OpId(6)}, {}, {});
  maker.Host(11, {});
  EXPECT_THAT(RunStep(maker, Ahead(kUnlimited, 20)).order, ElementsAre(1, 0, 2, 5));
  EXPECT_THAT(RunStep(maker, Synchronous()).order, ElementsAre(1, 0, 2, 5));
}

TEST(SimulatorTest, TheLastReadyGoesOnWithWhatItBegan) {
  // Two chains of two kernels with 2 KiB in between. With first ready, both are started.
  WorkloadMaker maker;
  for (int i = 0; i < 2; ++i) {
    const BufferId between = maker.Buffer(0, 2 * kK);
    const OpId begin = maker.Compute(100, {}, {}, {between});
    maker.Compute(100, {begin}, {between}, {});
  }
  for (SimulationOptions options : {Ahead(), Synchronous()}) {
    SimulationResult result = RunStep(maker, options);
    EXPECT_THAT(result.order, ElementsAre(0, 2, 1, 3));
    EXPECT_EQ(result.devices[0].peak_bytes, 4 * kK);
    options.ready_order = ReadyOrder::kLastReady;
    result = RunStep(maker, options);
    EXPECT_THAT(result.order, ElementsAre(2, 3, 0, 1));
    EXPECT_EQ(result.devices[0].peak_bytes, 2 * kK);
    options.device_budget_bytes = {2 * kK};
    EXPECT_TRUE(RunStep(maker, options).fits());
    // In synchronous execution, 1 is behind 2, which waits for the memory that 1 holds.
    options.ready_order = ReadyOrder::kFirstReady;
    EXPECT_FALSE(RunStep(maker, options).fits());
  }
}

// The generator's published numbers, by their last digit: for the seed 1234567 they begin with
// 6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431 and
// 16408922859458223821.
TEST(SimulatorTest, ReadyDrawsAreSplitMix64) {
  ReadyDraws draws(0, GpuIndex(1234567));
  for (const size_t digit : {7, 3, 3, 1, 1}) EXPECT_EQ(draws.Next(10), digit);
}

TEST(SimulatorTest, MixedOrder) {
  // The generator's first numbers for the seed 0: e220a8397b1dcdaf, 6e789e6aa1b965f4,
  // 06c45d188009454f in hexadecimal; 3 modulo 4, 0 modulo 3, 1 modulo 2. So 3 is drawn from 0, 1,
  // 2, 3; 0 from 0, 1, 2, and 2 takes its place; 1 from 2, 1.
  WorkloadMaker maker;
  for (int i = 0; i < 4; ++i) maker.Compute(50, {}, {}, {});
  for (SimulationOptions options : {Ahead(kUnlimited, 20), Synchronous()}) {
    options.ready_order = ReadyOrder::kMixed;
    EXPECT_THAT(RunStep(maker, options).order, ElementsAre(3, 0, 1, 2));
    // Each of the 24 orders comes from some seed.
    std::set<std::vector<OpId>> orders;
    for (options.ready_seed = 1; options.ready_seed <= 500; ++options.ready_seed) {
      orders.insert(RunStep(maker, options).order);
    }
    EXPECT_EQ(orders.size(), 24u);
  }
}

// A variable whose value was copied lies behind the hole that the temporary left.
TEST(SimulatorTest, InitializersLeaveHoles) {
  for (const bool copied : {false, true}) {
    WorkloadMaker maker;
    maker.Resident(0, 4 * kK, copied);
    maker.Compute(50, {}, {}, {maker.Buffer(0, 6 * kK)});
    SimulationOptions options = Ahead(10 * kK);
    options.placed = true;
    EXPECT_TRUE(RunStep(maker, options).fits());
    options.initializer_seed = 1;
    const SimulationResult result = RunStep(maker, options);
    EXPECT_EQ(result.fits(), !copied);
    if (!copied) continue;
    EXPECT_TRUE(result.out_of_memory->fragmented);
    EXPECT_EQ(result.out_of_memory->missing_bytes, 2 * kK);  // 4 KiB are free before it.
    // The variable has a chunk of 6 KiB, unless such chunks are split.
    EXPECT_TRUE(result.out_of_memory->in_chunks);
    options.max_fragmentation_bytes = kK;
    EXPECT_FALSE(RunStep(maker, options).out_of_memory->in_chunks);
    options.device_budget_bytes = {14 * kK};
    EXPECT_TRUE(RunStep(maker, options).fits());
  }
}

// A chunk of less than twice the request is not split: 4 KiB take all of the 7.
TEST(SimulatorTest, MemoryIsLostInChunks) {
  WorkloadMaker maker;
  const auto large = maker.Buffer(0, 4 * kK), small = maker.Buffer(0, 2 * kK);
  const auto first = maker.Compute(50, {}, {}, {large});
  maker.Compute(50, {first}, {large}, {small});
  SimulationOptions options = Ahead(7 * kK);
  options.placed = true;
  const SimulationResult result = RunStep(maker, options);
  ASSERT_FALSE(result.fits());
  EXPECT_TRUE(result.out_of_memory->fragmented);
  EXPECT_TRUE(result.out_of_memory->in_chunks);
  options.max_fragmentation_bytes = kK;
  EXPECT_TRUE(RunStep(maker, options).fits());
}

TEST(SimulatorTest, OutputTakesOverTheInputThatNobodyElseReads) {
  for (const auto& options : {Ahead(), Synchronous()}) {
    Chain chain;
    chain.maker.op(chain.b).reuses = {chain.x};
    chain.maker.op(chain.c).reuses = {chain.y};
    SimulationResult result = RunStep(chain.maker, options);
    EXPECT_EQ(result.devices[0].peak_bytes, kK);
    EXPECT_EQ(result.devices[0].timeline.back().bytes, 0);
    EXPECT_THAT(result.devices[0].at_peak, ElementsAre(chain.x));
    // A later operation also reads x.
    chain.maker.Compute(100, {chain.c}, {chain.x}, {});
    result = RunStep(chain.maker, options);
    EXPECT_EQ(result.devices[0].peak_bytes, 2 * kK);
  }
}

// A swap: a writes x, which is copied out (40 ns), passes two host nodes and is copied in (40 ns)
// for d; b is beside it, and c waits only for b. Trigger: b.
struct Swap {
  Swap() {
    x = maker.Buffer(0, kK);
    host = maker.Buffer(-1, kK);
    back = maker.Buffer(0, kK);
    y = maker.Buffer(0, kK);
    a = maker.Compute(100, {}, {}, {x});
    out = maker.CopyOut(40, {a}, x, host);
    swap_out = maker.Host(0, {out});
    b = maker.Compute(100, {a}, {}, {y});
    swap_in = maker.Host(0, {swap_out, b});
    in = maker.CopyIn(40, {swap_in}, host, back);
    c = maker.Compute(100, {b}, {y}, {});
    d = maker.Compute(100, {c, in}, {back}, {});
  }
  WorkloadMaker maker;
  BufferId x, host, back, y;
  OpId a, out, swap_out, b, swap_in, in, c, d;
};

TEST(SimulatorTest, SynchronousCopiesOverlapWithCompute) {
  const SimulationResult result = RunStep(Swap().maker, Synchronous());
  // a 0-100, b 100-200, out 100-140, in 200-240 beside c 200-300, d 300-400.
  EXPECT_EQ(result.step_time_ns, 400);
  const DeviceUse& use = result.devices[0];
  EXPECT_EQ(use.stall_ns, 0);
  EXPECT_EQ(use.copy_out_ns, 40);
  EXPECT_EQ(use.copy_in_ns, 40);
  EXPECT_EQ(use.copy_out_bytes, kK);
  EXPECT_EQ(use.copy_in_bytes, kK);
  EXPECT_EQ(result.host_peak_bytes, kK);
  EXPECT_EQ(use.peak_bytes, 2 * kK);
}

// a 0-100 on the GPU; then on the host's engine 100-400 and 400-700, beside others at once:
// 100-300.
TEST(SimulatorTest, TheHostsEngineRunsOneOperationAfterAnother) {
  WorkloadMaker maker;
  const OpId a = maker.Compute(100, {}, {}, {});
  for (int i = 0; i < 2; ++i) {
    maker.op(maker.Host(300, {a})).on_host_engine = true;
    maker.Host(200, {a});
  }
  for (SimulationOptions options : {Synchronous(), Ahead()}) {
    options.record_times = true;
    const SimulationResult result = RunStep(maker, options);
    EXPECT_EQ(result.step_time_ns, 700);
    EXPECT_EQ(result.host_ns, 600);
    EXPECT_EQ(result.times[1].end_ns, 400);
    EXPECT_EQ(result.times[2].end_ns, 300);
    EXPECT_EQ(result.times[3].start_ns, 400);
    EXPECT_EQ(result.times[4].end_ns, 300);
  }
}

TEST(SimulatorTest, CopyInWaitsForAllThatWasLaunched) {
  const SimulationResult result = RunStep(Swap().maker, Ahead());
  // a, b and c are launched at 0. b ends at 200: the copy is issued and waits for c: 300-340. d is
  // launched when the copy has ended.
  EXPECT_EQ(result.step_time_ns, 440);
  EXPECT_EQ(result.devices[0].stall_ns, 40);
  // x is held until its copy has ended; y was allocated and freed at 0; `back` is freed when d is
  // launched.
  EXPECT_THAT(Points(result.devices[0]),
              ElementsAre(ElementsAre(0, 2 * kK, kK), ElementsAre(140, 0, 0),
                          ElementsAre(200, kK, kK), ElementsAre(340, 0, 0)));
}

// Of a chain of 40 kernels of 1,000 ns and a copy of 10,000: each from a fifth to five times.
TEST(SimulatorTest, SpreadPercentIsDrawnForEachOperation) {
  WorkloadMaker maker;
  OpId last = maker.CopyOut(10'000, {}, maker.Resident(0, kK), maker.Buffer(-1, kK));
  for (int i = 0; i < 40; ++i) last = maker.Compute(1'000, {last}, {}, {});
  for (SimulationOptions options : {Ahead(), Synchronous()}) {
    options.spread_percent = 500;
    options.record_times = true;
    std::set<int64_t> times;
    int longer = 0;
    for (options.ready_seed = 0; options.ready_seed < 10; ++options.ready_seed) {
      const SimulationResult result = RunStep(maker, options);
      for (size_t i = 0; i < result.times.size(); ++i) {
        const int64_t usual = i == 0 ? 10'000 : 1'000;
        const int64_t time = result.times[OpId(i)].end_ns - result.times[OpId(i)].start_ns;
        EXPECT_GE(time, usual / 5);
        EXPECT_LE(time, usual * 5);
        longer += time > usual;
        times.insert(time);
      }
      EXPECT_EQ(result.devices[0].compute_ns + result.devices[0].copy_out_ns, result.step_time_ns);
    }
    EXPECT_GT(longer, 150) << "of 410, half";
    EXPECT_LT(longer, 260);
    EXPECT_GT(times.size(), 200u);
  }
}

TEST(SimulatorTest, SpreadPercentHasARange) {
  WorkloadMaker maker;
  maker.Compute(int64_t{1} << 60, {}, {}, {});
  const auto step = [&maker](int32_t percent) {
    SimulationOptions options = Ahead();
    options.spread_percent = percent;
    return Simulate(maker.Make(), options, StopToken()).status();
  };
  EXPECT_TRUE(step(100).ok());
  EXPECT_THAT(step(99).message(), HasSubstr("from 100 to 1000"));
  EXPECT_THAT(step(1001).message(), HasSubstr("from 100 to 1000"));
  EXPECT_EQ(GetErrorReason(step(1000)), v1::ERROR_REASON_LIMIT_EXCEEDED);
}

// Only copies ready before late_ns come late, by 1 to late_ns.
TEST(SimulatorTest, CopiesInOfTheStartComeLate) {
  WorkloadMaker maker;
  const BufferId host = maker.Buffer(-1, kK), weight = maker.Buffer(0, kK);
  const OpId read = maker.Host(0, {}, {}, {host});
  const OpId in = maker.CopyIn(40, {read}, host, weight);
  maker.Compute(100, {in}, {weight}, {});
  for (SimulationOptions options : {Ahead(), Synchronous()}) {
    options.late_ns = 1;
    EXPECT_EQ(RunStep(maker, options).step_time_ns, 141);
    options.late_ns = 30;
    std::set<int64_t> times;
    for (options.ready_seed = 0; options.ready_seed < 100; ++options.ready_seed) {
      times.insert(RunStep(maker, options).step_time_ns);
    }
    EXPECT_GE(*times.begin(), 141);
    EXPECT_LE(*times.rbegin(), 170);
    EXPECT_GT(times.size(), 20u);
  }
  SimulationOptions options = Ahead();
  options.late_ns = 200;  // The swap-in is ready at 200.
  EXPECT_EQ(RunStep(Swap().maker, options).step_time_ns, 440);
  options.late_ns = 201;
  int64_t longest = 0;
  for (options.ready_seed = 0; options.ready_seed < 20; ++options.ready_seed) {
    longest = std::max(longest, RunStep(Swap().maker, options).step_time_ns);
  }
  EXPECT_GT(longest, 440) << "it waits for c until 300 anyway";
}

// A plan for which a weight that comes first has room runs out if it comes behind the first output:
// of 10 KiB, 4 are taken by x, which a makes at 1 ns, and then 8 are wanted in one piece.
TEST(SimulatorTest, WhatComesLateLiesBehindTheFirstOutputs) {
  WorkloadMaker maker;
  const BufferId host = maker.Buffer(-1, kK), weight = maker.Buffer(0, kK);
  const BufferId x = maker.Buffer(0, 4 * kK), y = maker.Buffer(0, 8 * kK);
  const OpId in = maker.CopyIn(1, {maker.Host(0, {}, {}, {host})}, host, weight);
  const OpId a = maker.Compute(100, {maker.Host(1, {})}, {}, {x});
  const OpId b = maker.Compute(100, {a, in}, {x}, {});
  const OpId c = maker.Compute(100, {b}, {}, {y});
  maker.Compute(100, {c}, {y, weight}, {});
  for (SimulationOptions options : {Ahead(), Synchronous()}) {
    options.device_budget_bytes = {10 * kK};
    options.placed = true;
    EXPECT_TRUE(RunStep(maker, options).fits());
    options.late_ns = 50;
    EXPECT_FALSE(RunStep(maker, options).fits());
  }
}

TEST(SimulatorTest, CopyPercentHasARange) {
  const auto step = [](int64_t copy_ns, int32_t percent) {
    WorkloadMaker maker;
    maker.CopyOut(copy_ns, {}, maker.Resident(0, kK), maker.Buffer(-1, kK));
    SimulationOptions options = Ahead();
    options.copy_percent = percent;
    return Simulate(maker.Make(), options, StopToken());
  };
  for (const int32_t percent : {-1, 0, 10'001}) {
    const absl::Status status = step(1, percent).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("from 1 to 10000"));
  }
  EXPECT_TRUE(step(int64_t{1} << 60, 100).ok());
  const auto slow = step(int64_t{1} << 54, 10'000);
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_EQ(slow->step_time_ns, (int64_t{1} << 54) * 100);
  EXPECT_EQ(GetErrorReason(step(int64_t{1} << 55, 10'000).status()),
            v1::ERROR_REASON_LIMIT_EXCEEDED);
}

TEST(SimulatorTest, PaceEdgeLetsTheCopyStartBeforeWhatItHoldsBack) {
  Swap swap;
  swap.maker.op(swap.c).waits_for = {swap.b, swap.swap_in};
  const SimulationResult result = RunStep(swap.maker, Ahead());
  // c is launched when swap_in is done, at 200, in the same round in which the copy asks. The copy
  // asks first, so nothing is ahead of it.
  EXPECT_EQ(result.step_time_ns, 400);
  EXPECT_EQ(result.devices[0].stall_ns, 0);
}

// A gate: two swap-ins with the trigger b, and c, which waits for the first of them. d reads both
// copies. The ids are as in a workload of a graph: kernels, swap-ins, copies.
struct Gate {
  Gate() {
    y = maker.Buffer(0, kK);
    b = maker.Compute(100, {}, {}, {y});
    c = maker.Compute(100, {}, {y}, {});
    d = maker.Compute(100, {}, {}, {});
    swap_in = maker.Host(0, {b});
    const OpId other_swap_in = maker.Host(0, {b});
    in = CopyOf(swap_in);
    other_in = CopyOf(other_swap_in);
    maker.op(c).waits_for = {b, swap_in};
    maker.op(d).waits_for = {c, in, other_in};
  }
  // A copy in of a buffer on the host from the start.
  OpId CopyOf(OpId after) {
    const BufferId back = maker.Buffer(0, kK);
    maker.op(d).reads.push_back(back);
    return maker.CopyIn(40, {after}, maker.Resident(-1, kK), back);
  }
  WorkloadMaker maker;
  BufferId y;
  OpId b, c, d, swap_in, in, other_in;
};

TEST(SimulatorTest, CopiesAreIssuedBeforeWhatTheirGateLetsThrough) {
  SimulationOptions options = Ahead();
  options.record_times = true;
  for (const ReadyOrder order :
       {ReadyOrder::kFirstReady, ReadyOrder::kLastReady, ReadyOrder::kMixed}) {
    options.ready_order = order;
    const Gate gate;
    const SimulationResult result = RunStep(gate.maker, options);
    // b ends at 100. Both copies are issued, then c is launched, all at 100; so c runs beside them,
    // 100-200. d is launched at 180. With c first: copies 200-280, d 280-380.
    EXPECT_EQ(result.times[gate.in].start_ns, 100);
    EXPECT_EQ(result.times[gate.other_in].start_ns, 140);
    EXPECT_EQ(result.times[gate.c].given_ns, 100);
    EXPECT_EQ(result.step_time_ns, 300);
    EXPECT_EQ(result.devices[0].stall_ns, 0);
  }
}

TEST(SimulatorTest, CopyWithoutMemoryIsIssuedAfterWhatItsGateLetsThrough) {
  // Room for y and one copy. The other copy gets the memory of y when c is launched, at 100, too,
  // and so waits for c: 200-240.
  const Gate gate;
  SimulationOptions options = Ahead(2 * kK);
  options.record_times = true;
  const SimulationResult result = RunStep(gate.maker, options);
  EXPECT_EQ(result.times[gate.in].start_ns, 100);
  EXPECT_EQ(result.times[gate.other_in].given_ns, 100);
  EXPECT_EQ(result.times[gate.other_in].start_ns, 200);
  EXPECT_EQ(result.times[gate.d].start_ns, 240);
}

TEST(SimulatorTest, CopyIsIssuedAfterWhatIsReadyOneHostNodeEarlier) {
  // e becomes ready at 100, too, but by the end of a host operation, while the copies wait for
  // their swap-ins, which end at 100 as well. So e is launched first: e 100-200, the copies
  // 200-280, c 200-300, d 300-400.
  Gate gate;
  const OpId e = gate.maker.Compute(100, {gate.maker.Host(100, {})}, {}, {});
  SimulationOptions options = Ahead();
  options.record_times = true;
  const SimulationResult result = RunStep(gate.maker, options);
  EXPECT_EQ(result.times[e].start_ns, 100);
  EXPECT_EQ(result.times[gate.in].start_ns, 200);
  EXPECT_EQ(result.times[gate.c].start_ns, 200);
  EXPECT_EQ(result.step_time_ns, 400);
}

TEST(SimulatorTest, DeadlineEdgeHoldsBackTheLaunchUntilTheCopyOutHasEnded) {
  // Without the edge, b is launched at 0 while x is live; with it, when x is gone.
  Swap swap;
  SimulationResult result = RunStep(swap.maker, Ahead(2 * kK - 1));
  EXPECT_TRUE(result.fits());  // b waits for memory until 140.
  EXPECT_EQ(result.devices[0].stall_ns, 40 + 40);
  swap.maker.op(swap.b).waits_for = {swap.a, swap.swap_out};
  result = RunStep(swap.maker, Ahead());
  EXPECT_EQ(result.devices[0].peak_bytes, kK);
  // b 140-240, c 240-340 (launched at 140), the copy in 340-380, d 380-480.
  EXPECT_EQ(result.step_time_ns, 480);
  EXPECT_EQ(result.devices[0].stall_ns, 80);
}

TEST(SimulatorTest, OutOfMemoryNamesTheOperationAndTheNumbers) {
  Chain chain;
  chain.maker.Resident(0, kK);
  for (const auto& options : {Ahead(3 * kK - 1, 10), Synchronous(3 * kK - 1)}) {
    const SimulationResult result = RunStep(chain.maker, options);
    ASSERT_FALSE(result.fits());
    EXPECT_EQ(result.out_of_memory->device, 0);
    EXPECT_EQ(result.out_of_memory->op, chain.b);
    EXPECT_EQ(result.out_of_memory->requested_bytes, kK);
    EXPECT_EQ(result.out_of_memory->in_use_bytes, 2 * kK);
    EXPECT_EQ(result.out_of_memory->budget_bytes, 3 * kK - 1);
    // The failure is known when a has ended and nothing is running.
    EXPECT_EQ(result.out_of_memory->time_ns, 100);
    EXPECT_EQ(result.step_time_ns, 100);
  }
  EXPECT_TRUE(RunStep(chain.maker, Ahead(3 * kK)).fits());
}

TEST(SimulatorTest, ResidentBuffersAloneMayBeTooMuch) {
  Chain chain;
  chain.maker.Resident(0, 5 * kK);
  const SimulationResult result = RunStep(chain.maker, Ahead(5 * kK - 1));
  ASSERT_FALSE(result.fits());
  EXPECT_EQ(result.out_of_memory->op, kNoOp);
  EXPECT_EQ(result.out_of_memory->requested_bytes, 5 * kK);
  EXPECT_EQ(result.out_of_memory->time_ns, 0);
}

TEST(SimulatorTest, LaunchWaitsTenSecondsForMemoryAndNoLonger) {
  // x is copied out until 100 + copy; b, launched at 0, needs its memory.
  for (const auto& [copy_ns, fits] : std::vector<std::pair<int64_t, bool>>{
           {kMemoryWaitNs - 100, true}, {kMemoryWaitNs - 99, false}}) {
    Swap swap;
    swap.maker.op(swap.out).duration_ns = copy_ns;
    const SimulationResult result = RunStep(swap.maker, Ahead(2 * kK - 1));
    EXPECT_EQ(result.fits(), fits) << copy_ns;
    if (!fits) {
      EXPECT_EQ(result.out_of_memory->op, swap.b);
      EXPECT_EQ(result.out_of_memory->time_ns, kMemoryWaitNs);
    }
  }
}

TEST(SimulatorTest, CopyOutWaitsForHostMemory) {
  // Two swaps of 1 KiB with room for one: the second copy out starts when the first buffer has been
  // copied back.
  for (const bool ahead : {true, false}) {
    WorkloadMaker maker;
    std::vector<OpId> last = {};
    for (int i = 0; i < 2; ++i) {
      const BufferId x = maker.Buffer(0, kK), host = maker.Buffer(-1, kK);
      const OpId a = maker.Compute(100, {}, {}, {x});
      const OpId out = maker.CopyOut(50, {a}, x, host);
      maker.CopyIn(50, {out}, host, maker.Buffer(0, kK));
    }
    SimulationOptions options = ahead ? Ahead() : Synchronous();
    options.host_budget_bytes = kK;
    SimulationResult result = RunStep(maker, options);
    // Kernels 0-100 and 100-200; out 100-150; back 150-200 or, if launched ahead, after the second
    // kernel, 200-250. Then out and in again.
    EXPECT_EQ(result.step_time_ns, ahead ? 250 + 50 + 50 : 200 + 50 + 50);
    EXPECT_EQ(result.host_peak_bytes, kK);
    options.host_budget_bytes = kK - 1;
    result = RunStep(maker, options);
    ASSERT_FALSE(result.fits());
    EXPECT_EQ(result.out_of_memory->device, -1);
    EXPECT_EQ(result.out_of_memory->op, 1);
    EXPECT_EQ(result.out_of_memory->requested_bytes, kK);
    EXPECT_EQ(result.out_of_memory->in_use_bytes, 0);
    EXPECT_EQ(result.out_of_memory->time_ns, 200);
  }
}

TEST(SimulatorTest, BothModesMustFit) {
  // Launched ahead, y is allocated while x is copied out, and waits until that ends. Synchronous
  // execution does not fit below 2 KiB either, since both are live together.
  Swap swap;
  auto both = SimulateBothModes(swap.maker.Make(), Ahead(2 * kK), StopToken());
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_TRUE(both->fits());
  EXPECT_EQ(both->launch_ahead.step_time_ns, 440);
  EXPECT_EQ(both->synchronous.step_time_ns, 400);
  both = SimulateBothModes(swap.maker.Make(), Ahead(kK - 1), StopToken());
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_FALSE(both->fits());
  EXPECT_EQ(both->launch_ahead.out_of_memory->op, swap.a);
}

TEST(SimulatorTest, NothingToDo) {
  const SimulationResult result = RunStep(WorkloadMaker(), Ahead());
  EXPECT_TRUE(result.fits());
  EXPECT_EQ(result.step_time_ns, 0);
  EXPECT_EQ(result.devices[0].peak_bytes, 0);
  EXPECT_EQ(result.devices[0].peak_op, kNoOp);
}

TEST(SimulatorTest, BrokenWorkloadsAreErrors) {
  Chain cycle;
  cycle.maker.op(cycle.b).waits_for = {cycle.c};
  auto result = Simulate(cycle.maker.Make(), Ahead(), StopToken());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(result.status().message(), HasSubstr("2 of the workload's 3 operations wait"));

  Chain afar;
  afar.maker.Host(1, {afar.a}, {afar.x});
  result = Simulate(afar.maker.Make(), Ahead(), StopToken());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(result.status().message(), HasSubstr("operation 3 reads from afar"));

  WorkloadMaker huge;
  for (int i = 0; i < 3; ++i) huge.Compute(1, {}, {}, {huge.Buffer(0, int64_t{1} << 60)});
  result = Simulate(huge.Make(), Ahead(), StopToken());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorReason(result.status()), v1::ERROR_REASON_LIMIT_EXCEEDED);

  WorkloadMaker slow;
  for (int i = 0; i < 3; ++i) slow.Compute(int64_t{1} << 60, {}, {}, {});
  result = Simulate(slow.Make(), Ahead(), StopToken());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spillway::core
