// The lower bounds beside brute force on small random workloads: no set of swapped gaps that fits
// moves less; the sweep finds the least; and no simulated run of a workload with swaps in it takes
// less memory, fewer copies or less time than the bounds of the workload without them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/testing/device_steps.h"
#include "tests/testing/random.h"
#include "tests/testing/random_workload.h"
#include "tests/testing/workload_maker.h"

namespace spillway::core {
namespace {

using ::spillway::testing::DeviceSteps;
using ::spillway::testing::GapSet;
using ::spillway::testing::GapsOfBits;
using ::spillway::testing::MadeOp;
using ::spillway::testing::Random;
using ::spillway::testing::RandomWorkload;
using ::spillway::testing::RandomWorkloadOptions;
using ::spillway::testing::WorkloadMaker;

TEST(LeastCoverPropertyTest, NoOtherChoiceIsSmaller) {
  // Demands and bytes are whole numbers and intervals make a totally unimodular system, so a least
  // cover in whole bytes is a least one in fractions too.
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 3'000 && !HasFailure(); ++seed) {
    Random random(seed);
    const int steps = random.Between(1, 6), count = random.Below(7);
    std::vector<StepInterval> intervals;
    for (int i = 0; i < count; ++i) {
      const int first = random.Below(steps);
      intervals.push_back({first, random.Between(first, steps - 1), random.Below(5)});
    }
    std::vector<int64_t> demand;
    for (int step = 0; step < steps; ++step) {
      int64_t over = 0;
      for (const StepInterval& i : intervals) {
        if (i.first <= step && step <= i.last) over += i.bytes;
      }
      demand.push_back(random.OneIn(3) ? 0 : random.Below(static_cast<int>(over) + 1));
    }
    // Every choice of bytes, and which steps it serves.
    std::vector<int64_t> least(steps, std::numeric_limits<int64_t>::max());
    std::vector<int64_t> choice(count, 0);
    while (true) {
      int64_t sum = 0;
      for (int64_t bytes : choice) sum += bytes;
      for (int step = 0; step < steps; ++step) {
        int64_t over = 0;
        for (int i = 0; i < count; ++i) {
          if (intervals[i].first <= step && step <= intervals[i].last) over += choice[i];
        }
        if (over < demand[step]) break;
        least[step] = std::min(least[step], sum);
      }
      int i = 0;
      while (i < count && choice[i] == intervals[i].bytes) choice[i++] = 0;
      if (i == count) break;
      ++choice[i];
    }
    EXPECT_EQ(LeastCover(intervals, demand), least) << seed;
    compared += steps;
  }
  EXPECT_GT(compared, 5'000);
}

// ---- All sets of gaps, with copies that take no time.

SimulationResult RunStep(const Workload& workload, const SimulationOptions& options) {
  auto result = Simulate(workload, options, StopToken());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimulationResult();
}

DeviceBounds Bounds(const Workload& workload, const std::vector<OpId>& order, int device,
                    int64_t budget, double rate) {
  LowerBoundOptions options;
  options.device_budget_bytes.assign(workload.devices.size(), kUnlimited);
  options.device_budget_bytes[device] = budget;
  options.copy_out_bytes_per_s = options.copy_in_bytes_per_s = rate;
  auto bounds = ComputeLowerBounds(workload, order, options, StopToken());
  EXPECT_TRUE(bounds.ok()) << bounds.status();
  return bounds.ok() ? (*bounds)[device] : DeviceBounds();
}

TEST(LowerBoundsPropertyTest, NoSetOfGapsMovesLess) {
  int64_t budgets = 0, forced = 0, exact_out = 0, exact_in = 0, devices = 0, ones = 0;
  for (uint64_t seed = 0; seed < 4'000 && !HasFailure(); ++seed) {
    Random random(seed);
    RandomWorkloadOptions options;
    options.max_devices = 2;
    options.kernels_only = random.OneIn(2);
    options.max_steps = 11;
    // If all buffers are of one size, parts of buffers are no better than whole ones, so the bound
    // is exact: always for swap-ins, and for swap-outs if no buffer has two gaps.
    const bool one_size = random.OneIn(2);
    options.max_units = one_size ? 1 : 3;
    options.odd_sizes = !one_size;
    const Workload workload = RandomWorkload(options, &random);
    const std::vector<OpId> order = RunStep(workload, SimulationOptions()).order;
    for (int device = 0; device < static_cast<int>(workload.devices.size()); ++device) {
      const DeviceSteps steps(workload, device, order);
      if (steps.gaps.empty() || steps.gaps.size() > 9) continue;
      const uint32_t sets = 1u << steps.gaps.size();
      std::vector<GapSet> away;
      std::vector<int64_t> peaks;
      for (uint32_t set = 0; set < sets; ++set) {
        away.push_back(GapsOfBits(set, steps.gaps.size()));
        peaks.push_back(steps.Peak(away[set]));
      }
      const int64_t least = *std::min_element(peaks.begin(), peaks.end());
      ++devices;
      for (int i = 0; i < 3; ++i) {
        // From the smallest feasible budget to the unswapped peak.
        int64_t budget =
            i == 0 ? least : random.Between(static_cast<int>(least), static_cast<int>(peaks[0]));
        if (one_size) budget -= budget % 256;  // Of which `least` is a multiple.
        const DeviceBounds bounds = Bounds(workload, order, device, budget, 1e9);
        int64_t out = std::numeric_limits<int64_t>::max(), in = out;
        for (uint32_t set = 0; set < sets; ++set) {
          if (peaks[set] > budget) continue;
          out = std::min(out, steps.BytesOut(away[set]));
          in = std::min(in, steps.BytesIn(away[set]));
        }
        ASSERT_LE(bounds.swap_out_bytes, out) << seed << " budget " << budget;
        ASSERT_LE(bounds.swap_in_bytes, in) << seed << " budget " << budget;
        // Bound A is the weaker one.
        ASSERT_LE(bounds.excess_bytes, bounds.swap_in_bytes) << seed;
        ++budgets;
        forced += in > 0;
        exact_out += in > 0 && bounds.swap_out_bytes == out;
        exact_in += in > 0 && bounds.swap_in_bytes == in;
        if (one_size) {
          ones += in > 0;
          ASSERT_EQ(bounds.swap_in_bytes, in) << seed;
          std::set<BufferId> with_gaps;
          for (const DeviceSteps::Gap& gap : steps.gaps) with_gaps.insert(gap.buffer);
          if (with_gaps.size() == steps.gaps.size()) {
            ASSERT_EQ(bounds.swap_out_bytes, out) << seed;
          }
        }
        if (options.kernels_only) {
          // Otherwise a copy in that no kernel reads may determine the peak.
          ASSERT_EQ(bounds.memory_bytes, least) << seed;
        } else {
          ASSERT_GE(bounds.memory_bytes, least) << seed;
        }
      }
    }
  }
  std::cout << devices << " devices, " << budgets << " budgets, " << forced
            << " force swaps: exact out " << exact_out << ", in " << exact_in << "; " << ones
            << " with buffers of one size\n";
  EXPECT_GT(devices, 1'000);
  EXPECT_GT(forced, budgets / 20);
  EXPECT_GT(ones, forced / 10);
}

// ---- Plans that are simulated.

// `workload` with its compute operations held in `order`, and the gaps of `set` swapped: the
// readers after each read a copy. A copy back starts when a step within its gap is done.
Workload WithSwaps(const Workload& workload, const DeviceSteps& steps, uint32_t set, double rate,
                   int64_t latency_ns, Random* random) {
  WorkloadMaker maker(static_cast<int>(workload.devices.size()));
  for (const WorkloadBuffer& buffer : workload.buffers) {
    buffer.resident ? maker.Resident(buffer.device, buffer.bytes)
                    : maker.Buffer(buffer.device, buffer.bytes);
  }
  const auto list = [](auto items) { return std::vector(items.begin(), items.end()); };
  for (OpId id(0); id < static_cast<int32_t>(workload.ops.size()); ++id) {
    const WorkloadOp& op = workload.ops[id];
    maker.Add({op.kind, op.device, op.duration_ns, list(workload.waits_for[id]),
               list(workload.reads[id]), list(workload.writes[id]), list(workload.reuses[id]),
               op.workspace_bytes});
  }
  for (size_t t = 1; t < steps.order.size(); ++t) {
    std::vector<OpId>& waits = maker.op(steps.order[t]).waits_for;
    if (std::count(waits.begin(), waits.end(), steps.order[t - 1]) == 0) {
      waits.push_back(steps.order[t - 1]);
    }
  }
  std::map<BufferId, OpId> swapped_out;
  std::map<BufferId, BufferId> on_host;
  for (size_t g = 0; g < steps.gaps.size(); ++g) {
    if ((set >> g & 1) == 0) continue;
    const DeviceSteps::Gap& gap = steps.gaps[g];
    const int64_t bytes = workload.buffers[gap.buffer].bytes;
    const int64_t copy_ns =
        latency_ns + static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / rate * 1e9));
    const OpId first_use = steps.order[steps.uses.at(gap.buffer)[0]];
    if (swapped_out.count(gap.buffer) == 0) {
      on_host[gap.buffer] = maker.Buffer(-1, bytes);
      const OpId out = maker.CopyOut(copy_ns, {first_use}, gap.buffer, on_host[gap.buffer]);
      swapped_out[gap.buffer] = maker.Host(0, {out});
    }
    const BufferId back = maker.Buffer(steps.device, bytes);
    std::vector<OpId> waits = {swapped_out[gap.buffer]};
    waits.push_back(steps.order[random->Between(gap.from, gap.to - 1)]);
    const OpId in = maker.CopyIn(copy_ns, {maker.Host(0, waits)}, on_host[gap.buffer], back);
    for (int t : steps.uses.at(gap.buffer)) {
      if (t < gap.to) continue;
      MadeOp& reader = maker.op(steps.order[t]);
      // The copy that the last of the gaps before it made.
      const bool later_gap = [&] {
        for (size_t h = 0; h < steps.gaps.size(); ++h) {
          if ((set >> h & 1) != 0 && steps.gaps[h].buffer == gap.buffer &&
              steps.gaps[h].from >= gap.to && steps.gaps[h].to <= t) {
            return true;
          }
        }
        return false;
      }();
      if (later_gap) continue;
      std::replace(reader.reads.begin(), reader.reads.end(), gap.buffer, back);
      std::replace(reader.reuses.begin(), reader.reuses.end(), gap.buffer, back);
      if (std::count(reader.waits_for.begin(), reader.waits_for.end(), in) == 0) {
        reader.waits_for.push_back(in);
      }
    }
  }
  return maker.Make();
}

TEST(LowerBoundsPropertyTest, NoPlayedPlanIsBelow) {
  int64_t plans = 0, with_excess = 0, time_near = 0;
  for (uint64_t seed = 0; seed < 3'000 && !HasFailure(); ++seed) {
    Random random(seed);
    RandomWorkloadOptions options;
    options.max_devices = 1;
    options.kernels_only = true;
    options.max_steps = 14;
    const Workload workload = RandomWorkload(options, &random);
    const std::vector<OpId> order = RunStep(workload, SimulationOptions()).order;
    const DeviceSteps steps(workload, 0, order);
    if (steps.gaps.empty() || steps.gaps.size() > 20) continue;
    for (int i = 0; i < 6; ++i) {
      const uint32_t set =
          i == 0 ? (1u << steps.gaps.size()) - 1
                 : static_cast<uint32_t>(random.Next()) & ((1u << steps.gaps.size()) - 1);
      const double rate = random.Pick(std::vector<double>{1e9, 20e9, 100e9, 333e9});
      const Workload simulated =
          WithSwaps(workload, steps, set, rate, random.Pick(std::vector<int64_t>{0, 5}), &random);
      for (const SimulationMode mode :
           {SimulationMode::kLaunchAhead, SimulationMode::kSynchronous}) {
        SimulationOptions settings;
        settings.mode = mode;
        settings.launch_ns = random.Below(3);
        SimulationResult result = RunStep(simulated, settings);
        // The same with less memory, as long as it fits: then it waits.
        for (int64_t budget = result.devices[0].peak_bytes; result.fits(); budget -= 256) {
          ASSERT_EQ(result.order, order) << seed;
          const DeviceUse& use = result.devices[0];
          const DeviceBounds bounds = Bounds(workload, order, 0, budget, rate);
          ASSERT_LE(bounds.memory_bytes, budget) << seed;
          ASSERT_LE(bounds.swap_out_bytes, use.copy_out_bytes) << seed;
          ASSERT_LE(bounds.swap_in_bytes, use.copy_in_bytes) << seed;
          ASSERT_LE(bounds.step_time_ns, result.step_time_ns) << seed;
          ++plans;
          with_excess += bounds.excess_bytes > 0;
          time_near +=
              bounds.excess_bytes > 0 && static_cast<double>(result.step_time_ns) <=
                                             1.25 * static_cast<double>(bounds.step_time_ns);
          if (budget < 256) break;
          settings.device_budget_bytes = {budget - 256};
          result = RunStep(simulated, settings);
        }
      }
    }
  }
  std::cout << plans << " plans that fit, " << with_excess
            << " with less memory than the unswapped step takes, " << time_near
            << " of them within 25% of the time bound\n";
  EXPECT_GT(with_excess, 2'000);
  EXPECT_GT(time_near, with_excess / 20);
}

}  // namespace
}  // namespace spillway::core
