// The simulator beside the naive one of tests/testing, on thousands of small random workloads:
// every figure the same, with memory from ample to too little, in every order of ready operations,
// and with copies of every speed; and what must hold for each run.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/testing/naive_simulator.h"
#include "tests/testing/random.h"
#include "tests/testing/random_workload.h"

namespace spillway::core {
namespace {

using ::spillway::testing::NaiveSimulate;
using ::spillway::testing::Random;
using ::spillway::testing::RandomWorkload;
using ::spillway::testing::RandomWorkloadOptions;

constexpr int kWorkloads = 4'000;

template <typename Ids>
std::string Joined(const Ids& ids) {
  return absl::StrJoin(ids, ",", absl::StreamFormatter());
}

// Everything in a result, as text: differences are seen at once.
std::string Text(const SimulationResult& result) {
  std::string text = absl::StrCat("time ", result.step_time_ns, " host ", result.host_peak_bytes,
                                  " busy ", result.host_ns, " order ", Joined(result.order), "\n");
  if (result.out_of_memory.has_value()) {
    const OutOfMemory& out = *result.out_of_memory;
    absl::StrAppend(&text, "out of memory: device ", out.device.value(), " op ", out.op.value(),
                    " requested ", out.requested_bytes, " in use ", out.in_use_bytes, " budget ",
                    out.budget_bytes, " at ", out.time_ns, out.fragmented ? " fragmented" : "",
                    " missing ", out.missing_bytes, "\n");
  }
  if (result.waited) text += "waited\n";
  for (const OpTimes& at : result.times) {
    absl::StrAppend(&text, at.given_ns, ":", at.start_ns, "-", at.end_ns, " ");
    // An operation out of memory was given none.
    if (at.given_ns != OpTimes::kNeverRun) absl::StrAppend(&text, "asked ", at.asked_ns, " ");
  }
  for (const DeviceUse& use : result.devices) {
    absl::StrAppend(&text, "resident ", use.resident_bytes, " peak ", use.peak_bytes, " by ",
                    use.peak_op.value(), " (", Joined(use.at_peak), ") compute ", use.compute_ns,
                    " out ", use.copy_out_ns, " in ", use.copy_in_ns, " stall ", use.stall_ns,
                    " bytes out ", use.copy_out_bytes, " in ", use.copy_in_bytes, " slowed ",
                    absl::StrJoin(use.slowed_ns, ","), "\n ");
    for (const MemoryPoint& point : use.timeline) {
      absl::StrAppend(&text, " ", point.time_ns, ":", point.high_bytes, "/", point.bytes);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string Text(const Workload& workload) {
  std::string text;
  for (OpId id(0); id < static_cast<int32_t>(workload.ops.size()); ++id) {
    const WorkloadOp& op = workload.ops[id];
    absl::StrAppend(&text, id.value(), ": kind ", static_cast<int>(op.kind), " device ",
                    op.device.value(), " ns ", op.duration_ns, " workspace ", op.workspace_bytes,
                    " wanted ", workload.wanted_bytes[id], " waits ",
                    Joined(workload.waits_for[id]), " reads ", Joined(workload.reads[id]),
                    " writes ", Joined(workload.writes[id]), " reuses ",
                    Joined(workload.reuses[id]), "\n");
  }
  for (size_t i = 0; i < workload.buffers.size(); ++i) {
    const WorkloadBuffer& buffer = workload.buffers[i];
    absl::StrAppend(&text, "buffer ", i, ": device ", buffer.device.value(), " bytes ",
                    buffer.bytes, buffer.resident ? " resident\n" : "\n");
  }
  return text;
}

SimulationResult RunStep(const Workload& workload, const SimulationOptions& options) {
  auto result = Simulate(workload, options, StopToken());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimulationResult();
}

// Useful budgets for a `peak` without one.
int64_t SomeBudget(int64_t resident, int64_t peak, Random* random) {
  switch (random->Below(8)) {
    case 0:
    case 1:
    case 2:
      return kUnlimited;
    case 3:
      return peak;
    case 4:
      return std::max<int64_t>(0, peak - 1);
    case 5:
    case 6:
      return peak - static_cast<int64_t>(random->Next() % ((peak - resident) / 3 + 1));
    default:
      return resident + static_cast<int64_t>(random->Next() % (peak - resident + 1));
  }
}

int64_t DurationNs(const WorkloadOp& op, int32_t copy_percent) {
  const bool is_copy = op.kind == OpKind::kCopyOut || op.kind == OpKind::kCopyIn;
  return is_copy ? op.duration_ns * copy_percent / 100 : op.duration_ns;
}

// The longest chain of durations, each waiting for the one before it.
int64_t LongestChainNs(const Workload& workload, int32_t copy_percent) {
  const int32_t num_ops = static_cast<int32_t>(workload.ops.size());
  std::vector<int64_t> end(num_ops, 0);
  for (OpId again(0); again < num_ops; ++again) {
    for (OpId id(0); id < num_ops; ++id) {
      int64_t start = 0;
      for (OpId before : workload.waits_for[id]) start = std::max(start, end[before]);
      end[id] = start + DurationNs(workload.ops[id], copy_percent);
    }
  }
  return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
}

// These must hold for any order.
void CheckFigures(const Workload& workload, const SimulationResult& result,
                  int32_t copy_percent = 100) {
  const int devices = static_cast<int>(workload.devices.size());
  std::vector<int64_t> compute(devices, 0), out(devices, 0), in(devices, 0), largest(devices, 0);
  std::vector<int64_t> resident(devices, 0);
  for (const WorkloadBuffer& buffer : workload.buffers) {
    if (buffer.resident) resident[buffer.device] += AllocatedBytes(buffer.bytes);
  }
  for (OpId id(0); id < static_cast<int32_t>(workload.ops.size()); ++id) {
    const WorkloadOp& op = workload.ops[id];
    if (op.device < 0) continue;
    (op.kind == OpKind::kCompute   ? compute
     : op.kind == OpKind::kCopyOut ? out
                                   : in)[op.device] += DurationNs(op, copy_percent);
    // An operation's inputs are in memory when it allocates outputs that take nothing over.
    int64_t need = AllocatedBytes(op.workspace_bytes);
    for (BufferId read : workload.reads[id]) {
      const WorkloadBuffer& buffer = workload.buffers[read];
      if (buffer.device == op.device && !buffer.resident) need += AllocatedBytes(buffer.bytes);
    }
    for (size_t i = 0; i < workload.writes[id].size(); ++i) {
      const WorkloadBuffer& buffer = workload.buffers[workload.writes[id][i]];
      const bool may_take_over = i < workload.reuses[id].size() && workload.reuses[id][i] >= 0;
      if (buffer.device == op.device && !may_take_over) need += AllocatedBytes(buffer.bytes);
    }
    largest[op.device] = std::max(largest[op.device], need);
  }
  EXPECT_GE(result.step_time_ns, LongestChainNs(workload, copy_percent));
  for (int d = 0; d < devices; ++d) {
    const DeviceUse& use = result.devices[d];
    EXPECT_EQ(use.resident_bytes, resident[d]);
    EXPECT_GE(use.peak_bytes, resident[d] + largest[d]);
    EXPECT_EQ(use.compute_ns, compute[d]);
    EXPECT_EQ(use.copy_out_ns, out[d]);
    EXPECT_EQ(use.copy_in_ns, in[d]);
    EXPECT_GE(result.step_time_ns, std::max({compute[d] + use.stall_ns, out[d], in[d]}));
    int64_t high = 0;
    for (const MemoryPoint& point : use.timeline) high = std::max(high, point.high_bytes);
    EXPECT_EQ(high, use.peak_bytes);
    // All that is not resident has been given back.
    EXPECT_EQ(use.timeline.back().bytes, resident[d]);
    int64_t at_peak = resident[d];
    for (BufferId id : use.at_peak) at_peak += AllocatedBytes(workload.buffers[id].bytes);
    const int64_t workspace =
        use.peak_op == kNoOp ? 0 : AllocatedBytes(workload.ops[use.peak_op].workspace_bytes);
    if (result.order.size() <= 1 || workspace == 0) {
      EXPECT_LE(at_peak, use.peak_bytes);
    } else {
      EXPECT_LE(at_peak + workspace, use.peak_bytes);
    }
  }
}

TEST(SimulatorPropertyTest, SameAsTheNaiveSimulator) {
  int64_t runs = 0, tight = 0, out_of_device = 0, out_of_host = 0, after_ten_seconds = 0;
  int64_t stalled = 0, taken_over = 0, in_pieces = 0, waited_for_place = 0;
  for (uint64_t seed = 0; seed < kWorkloads && !HasFailure(); ++seed) {
    Random random(seed);
    RandomWorkloadOptions workload_options;
    if (seed % 200 == 0) workload_options.max_steps = 50;
    const Workload workload = RandomWorkload(workload_options, &random);
    for (const SimulationMode mode : {SimulationMode::kLaunchAhead, SimulationMode::kSynchronous}) {
      SimulationOptions options;
      options.mode = mode;
      options.launch_ns = random.Pick(std::vector<int64_t>{0, 1, 4, 7});
      options.record_timeline = options.record_times = true;
      const SimulationResult ample = RunStep(workload, options);
      ASSERT_TRUE(ample.fits());
      CheckFigures(workload, ample);
      ASSERT_EQ(Text(ample), Text(NaiveSimulate(workload, options))) << "seed " << seed << "\n"
                                                                     << Text(workload);
      ASSERT_EQ(Text(ample), Text(RunStep(workload, options))) << seed;
      // The peaks as budgets are as good as any more.
      options.host_budget_bytes = ample.host_peak_bytes;
      for (const DeviceUse& use : ample.devices) {
        options.device_budget_bytes.push_back(use.peak_bytes);
      }
      ASSERT_EQ(Text(ample), Text(RunStep(workload, options))) << seed;
      for (int i = 0; i < 4; ++i) {
        options.device_budget_bytes.clear();
        for (const DeviceUse& use : ample.devices) {
          options.device_budget_bytes.push_back(
              SomeBudget(use.resident_bytes - (random.OneIn(20) && use.resident_bytes > 0 ? 1 : 0),
                         use.peak_bytes, &random));
        }
        options.host_budget_bytes = SomeBudget(0, ample.host_peak_bytes, &random);
        const SimulationResult result = RunStep(workload, options);
        ASSERT_EQ(Text(result), Text(NaiveSimulate(workload, options)))
            << "seed " << seed << " budgets " << absl::StrJoin(options.device_budget_bytes, ",")
            << " host " << options.host_budget_bytes << " launch " << options.launch_ns << " mode "
            << static_cast<int>(mode) << "\n"
            << Text(workload);
        if (result.fits()) CheckFigures(workload, result);
        SimulationOptions placing = options;
        placing.placed = true;
        if (random.OneIn(3)) placing.max_fragmentation_bytes = 256 * random.Below(6);
        const SimulationResult placed = RunStep(workload, placing);
        ASSERT_EQ(Text(placed), Text(NaiveSimulate(workload, placing)))
            << "placed, seed " << seed << " budgets "
            << absl::StrJoin(options.device_budget_bytes, ",") << " mode " << static_cast<int>(mode)
            << "\n"
            << Text(workload);
        if (placed.fits()) CheckFigures(workload, placed);
        in_pieces += result.fits() && !placed.fits();
        waited_for_place += placed.fits() && Text(placed) != Text(result);
        for (size_t d = 0; d < result.devices.size(); ++d) {
          EXPECT_LE(result.devices[d].peak_bytes, options.device_budget_bytes[d]);
        }
        EXPECT_LE(result.host_peak_bytes, options.host_budget_bytes);
        // The test has met its cases.
        ++runs;
        tight += result.fits() && result.step_time_ns > ample.step_time_ns;
        for (const DeviceUse& use : result.devices) stalled += use.stall_ns > 0;
        if (!result.fits()) {
          ++(result.out_of_memory->device < 0 ? out_of_host : out_of_device);
          const bool waited = result.out_of_memory->time_ns >= kMemoryWaitNs;
          after_ten_seconds += waited;
        }
      }
      taken_over += workload.reuses.num_items() > 0;
    }
  }
  std::cout << runs << " runs: " << tight << " slower for want of memory, " << out_of_device
            << " out of device memory, " << out_of_host << " out of host memory, "
            << after_ten_seconds << " of them late, " << stalled << " stalls; placed, " << in_pieces
            << " out of memory that is in pieces, " << waited_for_place
            << " in other order or time\n";
  EXPECT_GT(in_pieces, runs / 100);
  EXPECT_GT(waited_for_place, runs / 1000);
  EXPECT_GT(tight, runs / 100);
  EXPECT_GT(out_of_device, runs / 20);
  EXPECT_GT(out_of_host, runs / 100);
  EXPECT_GT(after_ten_seconds, runs / 1000);
  EXPECT_GT(stalled, runs / 20);
  EXPECT_GT(taken_over, 0);
}

// The lower bound of a run's time never exceeds its time.
TEST(SimulatorPropertyTest, GivesUpWhatTakesLongerThanTheCutoff) {
  int given_up_early = 0;
  for (uint64_t seed = 0; seed < kWorkloads && !HasFailure(); ++seed) {
    Random random(seed);
    const Workload workload = RandomWorkload(RandomWorkloadOptions(), &random);
    SimulationOptions options;
    options.launch_ns = random.Pick(std::vector<int64_t>{0, 4});
    const SimulationResult whole = NaiveSimulate(workload, options);
    options.cutoff_ns = whole.step_time_ns;
    ASSERT_EQ(Text(RunStep(workload, options)), Text(whole)) << seed;
    for (const int64_t cutoff : {whole.step_time_ns - 1, whole.step_time_ns / 2}) {
      if (cutoff < 0 || cutoff == whole.step_time_ns) continue;
      options.cutoff_ns = cutoff;
      const SimulationResult given_up = RunStep(workload, options);
      EXPECT_GT(given_up.step_time_ns, cutoff) << seed;
      EXPECT_LE(given_up.step_time_ns, whole.step_time_ns) << seed;
      given_up_early += given_up.step_time_ns < whole.step_time_ns;
    }
  }
  EXPECT_GT(given_up_early, kWorkloads / 10);
}

TEST(SimulatorPropertyTest, SameAsTheNaiveSimulatorInOtherOrdersAndTimes) {
  int64_t runs = 0, other_order = 0, other_peak = 0, other_fate = 0, out_of_memory = 0;
  int64_t slowed = 0, slowed_less = 0;
  for (uint64_t seed = 0; seed < kWorkloads && !HasFailure(); ++seed) {
    Random random(seed);
    RandomWorkloadOptions workload_options;
    if (seed % 200 == 0) workload_options.max_steps = 50;
    const Workload workload = RandomWorkload(workload_options, &random);
    SimulationOptions options;
    options.mode = random.OneIn(2) ? SimulationMode::kLaunchAhead : SimulationMode::kSynchronous;
    options.launch_ns = random.Pick(std::vector<int64_t>{0, 1, 4, 7});
    options.record_timeline = options.record_times = true;
    for (int i = 0; i < 4; ++i) {
      options.device_budget_bytes.clear();
      options.host_budget_bytes = kUnlimited;
      const SimulationResult ample = RunStep(workload, options);
      for (const DeviceUse& use : ample.devices) {
        options.device_budget_bytes.push_back(
            SomeBudget(use.resident_bytes, use.peak_bytes, &random));
      }
      options.host_budget_bytes = SomeBudget(0, ample.host_peak_bytes, &random);
      options.placed = random.OneIn(2);
      options.workspace_limits = {1000, 300, 0};
      options.redzone_bytes = 256;
      options.spare_bytes.assign(seed % 3, seed % 2 * 256);
      options.max_fragmentation_bytes =
          random.OneIn(3) ? 256 * random.Below(6) : kDefaultMaxFragmentationBytes;
      const SimulationResult usual = RunStep(workload, options);
      SimulationOptions varied = options;
      varied.copy_percent = random.Pick(std::vector<int32_t>{1, 33, 90, 100, 100, 125, 10'000});
      varied.spread_percent = random.OneIn(2) ? 100 : random.Between(101, 1000);
      varied.late_ns = random.OneIn(2) ? 0 : random.Between(1, 200);
      varied.ready_seed = static_cast<uint32_t>(random.Next());
      varied.initializer_seed = random.OneIn(2) ? 0 : static_cast<uint32_t>(random.Next());
      varied.file_seed = random.OneIn(2) ? 0 : static_cast<uint32_t>(random.Between(1, 1 << 20));
      for (const ReadyOrder order :
           {ReadyOrder::kFirstReady, ReadyOrder::kLastReady, ReadyOrder::kMixed}) {
        varied.ready_order = order;
        const SimulationResult result = RunStep(workload, varied);
        ASSERT_EQ(Text(result), Text(NaiveSimulate(workload, varied)))
            << "seed " << seed << " order " << static_cast<int>(order) << " of seed "
            << varied.ready_seed << " copies " << varied.copy_percent << " % spread "
            << varied.spread_percent << " % late " << varied.late_ns << " file " << varied.file_seed
            << " budgets " << absl::StrJoin(varied.device_budget_bytes, ",") << " host "
            << varied.host_budget_bytes << " launch " << varied.launch_ns << " placed "
            << varied.placed << " mode " << static_cast<int>(varied.mode) << "\n"
            << Text(workload);
        if (result.fits() && varied.spread_percent == 100) {
          CheckFigures(workload, result, varied.copy_percent);
        }
        ++runs;
        other_order += result.order != usual.order;
        for (size_t d = 0; d < result.devices.size(); ++d) {
          other_peak += result.devices[d].peak_bytes != usual.devices[d].peak_bytes;
        }
        other_fate += result.fits() != usual.fits();
        out_of_memory += !result.fits();
        for (const DeviceUse& use : result.devices) {
          if (use.slowed_ns.empty()) continue;
          slowed += use.slowed_ns[1] > 0;
          slowed_less += use.slowed_ns[1] < use.slowed_ns[0];
          EXPECT_EQ(use.slowed_ns[2], 0);
        }
      }
    }
  }
  EXPECT_GT(slowed, runs / 20);
  EXPECT_GT(slowed_less, runs / 200);
  std::cout << runs << " runs: " << other_order << " in other order than usual, " << other_peak
            << " other peaks, " << out_of_memory << " out of memory, " << other_fate
            << " that fit only in one order\n";
  EXPECT_GT(other_order, runs / 10);
  EXPECT_GT(other_peak, runs / 20);
  EXPECT_GT(out_of_memory, runs / 20);
  EXPECT_GT(other_fate, runs / 100);
}

}  // namespace
}  // namespace spillway::core
