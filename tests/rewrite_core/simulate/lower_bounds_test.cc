#include "rewrite_core/simulate/lower_bounds.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/testing/workload_maker.h"

namespace spillway::core {
namespace {

using ::spillway::testing::WorkloadMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kUnit = 1024;

DeviceBounds Bounds(const WorkloadMaker& maker, const std::vector<OpId>& order, int64_t budget,
                    double rate = 1e9) {  // A byte takes a nanosecond.
  LowerBoundOptions options;
  options.device_budget_bytes = {budget};
  options.copy_out_bytes_per_s = options.copy_in_bytes_per_s = rate;
  auto bounds = ComputeLowerBounds(maker.Make(), order, options, StopToken());
  EXPECT_TRUE(bounds.ok()) << bounds.status();
  return bounds.ok() ? (*bounds)[0] : DeviceBounds();
}

// Forward f0, f1, f2, each writing 1 KiB; backward b2, b1, b0, each reading one of them. 1,000 ns
// each.
struct Training {
  Training() {
    for (int i = 0; i < 3; ++i) {
      x[i] = maker.Buffer(0, kUnit);
      maker.Compute(1'000, i == 0 ? std::vector<OpId>() : std::vector<OpId>{OpId(i - 1)}, {},
                    {x[i]});
    }
    for (int i = 0; i < 3; ++i) {
      maker.Compute(1'000, {OpId(i == 2 ? 2 : 2 + i)}, {x[2 - i]}, {});
    }
  }
  WorkloadMaker maker;
  BufferId x[3];
  const std::vector<OpId> order = {OpId(0), OpId(1), OpId(2), OpId(3), OpId(4), OpId(5)};
};

TEST(LowerBoundsTest, NothingTravelsWhereThereIsRoom) {
  const DeviceBounds bounds = Bounds(Training().maker, Training().order, 3 * kUnit);
  EXPECT_EQ(bounds.memory_bytes, kUnit);
  EXPECT_EQ(bounds.memory_op, 0);
  EXPECT_EQ(bounds.excess_bytes, 0);
  EXPECT_EQ(bounds.swap_out_bytes, 0);
  EXPECT_EQ(bounds.swap_in_bytes, 0);
  EXPECT_EQ(bounds.step_time_ns, 6'000);
}

// The host's engine runs one operation after another; all others may run at once.
TEST(LowerBoundsTest, TheHostsEngineBoundsTheStep) {
  Training training;
  for (int i = 0; i < 3; ++i) {
    training.maker.op(training.maker.Host(2'500, {OpId(5)})).on_host_engine = true;
    training.maker.Host(9'000, {OpId(5)});
  }
  EXPECT_EQ(Bounds(training.maker, training.order, 3 * kUnit).step_time_ns, 7'500);
}

TEST(LowerBoundsTest, WhatStaysTakesMemoryBetweenItsUses) {
  Training training;
  training.maker.buffer(training.x[0]).stays = true;
  // At f2, x2 is written and x0 stays, while x1 can be away; at b2 the same; and then only x1 must
  // be copied.
  EXPECT_EQ(Bounds(training.maker, training.order, 3 * kUnit).memory_bytes, 2 * kUnit);
  const DeviceBounds bounds = Bounds(training.maker, training.order, 2 * kUnit);
  EXPECT_EQ(bounds.memory_op, 1);
  EXPECT_EQ(bounds.swap_out_bytes, kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, kUnit);
}

TEST(LowerBoundsTest, WhatIsTooMuchMustTravel) {
  // With 2 KiB, at f2 and b2 three are alive and one of x0 and x1 must be away. Both have their gap
  // over f2 and b2; so 1 KiB goes out, and comes back.
  DeviceBounds bounds = Bounds(Training().maker, Training().order, 2 * kUnit);
  EXPECT_EQ(bounds.excess_bytes, kUnit);
  EXPECT_EQ(bounds.swap_out_bytes, kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, kUnit);
  // A byte a nanosecond. x0 is made at 1,000 ns and has left at 2,024, when f2 begins; b2 has run
  // at 4,024; x0 is back at 5,048, and b0 reads it.
  EXPECT_EQ(bounds.step_time_ns, 6'048);
  // At a quarter of that, 4,096 ns: f2 begins at 5,096, b2 has run at 7,096, b0 begins at 11,192.
  bounds = Bounds(Training().maker, Training().order, 2 * kUnit, 0.25e9);
  EXPECT_EQ(bounds.step_time_ns, 12'192);
  // With 1 KiB, x0 is away from f1 to b1, and x1 from f2 to b2.
  bounds = Bounds(Training().maker, Training().order, kUnit);
  EXPECT_EQ(bounds.excess_bytes, 2 * kUnit);
  EXPECT_EQ(bounds.swap_out_bytes, 2 * kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, 2 * kUnit);
}

// With 2 KiB, 1 KiB must be away at f2 and b2. A byte back takes 100 ns. The kernels take 6,000.
TEST(LowerBoundsTest, WhatRunsAgainNeedsNoCopy) {
  const auto time_ns = [](const std::vector<bool>& may_run_again, double rate = 1e7) {
    LowerBoundOptions options;
    options.device_budget_bytes = {2 * kUnit};
    options.copy_out_bytes_per_s = options.copy_in_bytes_per_s = rate;
    options.may_run_again = may_run_again;
    auto bounds =
        ComputeLowerBounds(Training().maker.Make(), Training().order, options, StopToken());
    EXPECT_TRUE(bounds.ok()) << bounds.status();
    return bounds.ok() ? (*bounds)[0].step_time_ns : 0;
  };
  const int64_t copied = kUnit * 100;
  EXPECT_EQ(time_ns({false, false, false, false, false, false}), copied);
  // b bytes recomputed, in 1,000 / 1,024 ns each, so that both engines take as long:
  // 6,000 + 0.9765625 b = 100 (1,024 - b), b = 954.7, 6,932.3 ns.
  EXPECT_EQ(time_ns({true, false, false, false, false, false}), 6'932) << "x0 alone";
  EXPECT_EQ(time_ns({true, true, true, true, true, true}), 6'932) << "it, or x1";
  EXPECT_EQ(time_ns({false, false, true, true, true, true}), copied)
      << "x2 is written where memory is short, and has no gap there";
  EXPECT_EQ(time_ns({true, true, true, true, true, true}, 1e9), 5'999)
      << "copies are hidden: the kernels' own, rounded down";
}

// An engine with 50,000 ns of the graph's own copies runs the swaps after or before them.
TEST(LowerBoundsTest, SwapsComeOnTopOfTheCopiesThatThereAre) {
  for (const bool out : {true, false}) {
    Training training;
    const BufferId flag = training.maker.Buffer(0, 0), on_host = training.maker.Buffer(-1, 0);
    std::vector<OpId> order = training.order;
    if (out) {
      const OpId writer = training.maker.Compute(0, {OpId(5)}, {}, {flag});
      order.push_back(writer);
      training.maker.CopyOut(50'000, {writer}, flag, on_host);
    } else {
      const OpId writer = training.maker.Host(0, {}, {}, {on_host});
      training.maker.CopyIn(50'000, {writer}, on_host, flag);
    }
    const DeviceBounds bounds = Bounds(training.maker, order, 2 * kUnit);
    EXPECT_EQ(bounds.swap_out_bytes, kUnit);
    EXPECT_EQ(bounds.step_time_ns, 50'000 + kUnit) << out;
  }
}

TEST(LowerBoundsTest, OutOncePerBufferInPerGap) {
  // x is written, and read after each of two large kernels: two gaps, one copy out, two back.
  WorkloadMaker maker;
  const BufferId x = maker.Buffer(0, kUnit);
  maker.Compute(1, {}, {}, {x});
  maker.Compute(1, {OpId(0)}, {}, {maker.Buffer(0, 4 * kUnit)});
  maker.Compute(1, {OpId(1)}, {x}, {});
  maker.Compute(1, {OpId(2)}, {}, {maker.Buffer(0, 4 * kUnit)});
  maker.Compute(1, {OpId(3)}, {x}, {});
  const DeviceBounds bounds =
      Bounds(maker, {OpId(0), OpId(1), OpId(2), OpId(3), OpId(4)}, 4 * kUnit);
  EXPECT_EQ(bounds.memory_bytes, 4 * kUnit);
  EXPECT_EQ(bounds.memory_op, 1);
  EXPECT_EQ(bounds.excess_bytes, kUnit);
  EXPECT_EQ(bounds.swap_out_bytes, kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, 2 * kUnit);
}

TEST(LowerBoundsTest, WhatIsOnTheHostAnywayNeedsNoTripOut) {
  for (const bool copied_in : {true, false}) {
    WorkloadMaker maker;
    const BufferId x = maker.Buffer(0, kUnit), host = maker.Buffer(-1, kUnit);
    if (copied_in) {
      maker.Host(1, {}, {}, {host});
      maker.CopyIn(700, {OpId(0)}, host, x);
    } else {
      maker.Compute(1, {}, {}, {x});
      maker.CopyOut(700, {OpId(0)}, x, host);
    }
    const OpId a = maker.Compute(1, {OpId(0), OpId(1)}, {x}, {});
    const OpId b = maker.Compute(1, {a}, {}, {maker.Buffer(0, 4 * kUnit)});
    const OpId c = maker.Compute(1, {b}, {x}, {});
    const DeviceBounds bounds =
        Bounds(maker, copied_in ? std::vector<OpId>{a, b, c} : std::vector<OpId>{OpId(0), a, b, c},
               4 * kUnit);
    EXPECT_EQ(bounds.excess_bytes, kUnit);
    EXPECT_EQ(bounds.swap_out_bytes, 0);
    EXPECT_EQ(bounds.swap_in_bytes, kUnit);
    // The copies in: 1,024 ns of the swap, besides 700 if there are any. Or x is made, read, b runs
    // (a nanosecond each), the copy of 1,024 ns, and c.
    EXPECT_EQ(bounds.step_time_ns, copied_in ? 1'724 : 1'028);
  }
}

TEST(LowerBoundsTest, MemoryCountsResidentBytesInputsOutputsAndWorkspaceOnce) {
  WorkloadMaker maker;
  const BufferId variable = maker.Resident(0, 2 * kUnit);
  const BufferId x = maker.Buffer(0, kUnit), y = maker.Buffer(0, kUnit), z = maker.Buffer(0, kUnit);
  maker.Compute(1, {}, {variable}, {x});
  const OpId b = maker.Add({OpKind::kCompute, 0, 1, {OpId(0)}, {variable, x}, {y, z}, {x, x}, 100});
  const DeviceBounds bounds = Bounds(maker, {OpId(0), b}, kUnlimited);
  // x, whose buffer y may take over, z, and 100 bytes rounded up.
  EXPECT_EQ(bounds.memory_bytes, 2 * kUnit + kUnit + kUnit + 256);
  EXPECT_EQ(bounds.memory_op, b);
}

TEST(LowerBoundsTest, WhatIsTakenOverAndReadAgainMustComeBack) {
  // y may take over x, which c reads later: at b there is room for only one of them.
  WorkloadMaker maker;
  const BufferId x = maker.Buffer(0, kUnit), y = maker.Buffer(0, kUnit);
  maker.Compute(1, {}, {}, {x});
  maker.Add({OpKind::kCompute, 0, 1, {OpId(0)}, {x}, {y}, {x}, 0});
  maker.Compute(1, {OpId(1)}, {y}, {});
  maker.Compute(1, {OpId(2)}, {x}, {});
  const DeviceBounds bounds = Bounds(maker, {OpId(0), OpId(1), OpId(2), OpId(3)}, kUnit);
  EXPECT_EQ(bounds.memory_bytes, kUnit);
  EXPECT_EQ(bounds.swap_out_bytes, kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, kUnit);
}

TEST(LowerBoundsTest, BudgetBelowTheLargestOperation) {
  // All tensors that wait over f2 and b2 can be swapped out, but that makes no room for f2 itself.
  const DeviceBounds bounds = Bounds(Training().maker, Training().order, kUnit - 1);
  EXPECT_GT(bounds.memory_bytes, kUnit - 1);
  EXPECT_EQ(bounds.excess_bytes, 2 * kUnit + 1);
  EXPECT_EQ(bounds.swap_out_bytes, 2 * kUnit);
  EXPECT_EQ(bounds.swap_in_bytes, 2 * kUnit);
}

TEST(LowerBoundsTest, OrderMustBeOfComputeOperations) {
  WorkloadMaker maker;
  maker.Compute(1, {}, {}, {});
  maker.Host(1, {});
  for (const std::vector<OpId>& order :
       {std::vector<OpId>{OpId(1)}, {OpId(0), OpId(0)}, {OpId(2)}, {kNoOp}}) {
    const auto bounds = ComputeLowerBounds(maker.Make(), order, LowerBoundOptions(), StopToken());
    EXPECT_EQ(bounds.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(bounds.status().message(), HasSubstr("has no place in an order"));
  }
}

TEST(LeastCoverTest, TakesFromWhatEndsLast) {
  // 3 at step 1, 4 at step 3. The interval that reaches the end covers both.
  EXPECT_THAT(LeastCover({{0, 1, 5}, {1, 3, 3}, {3, 3, 9}}, {0, 3, 0, 4}), ElementsAre(0, 3, 3, 4));
  // There is not enough: all of it is used.
  EXPECT_THAT(LeastCover({{0, 0, 5}}, {7, 1}), ElementsAre(5, 5));
  EXPECT_THAT(LeastCover({}, {}), ElementsAre());
}

}  // namespace
}  // namespace spillway::core
