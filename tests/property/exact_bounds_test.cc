// The lower bounds beside the exact minimum, which another program finds (integer_program.h), on
// random workloads of up to 60 operations: too many for brute force, which
// lower_bounds_property_test.cc uses. Whole buffers, the order of the unswapped step, memory
// counted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/testing/device_steps.h"
#include "tests/testing/integer_program.h"
#include "tests/testing/random.h"
#include "tests/testing/random_workload.h"

namespace spillway::core {
namespace {

using ::spillway::testing::DeviceSteps;
using ::spillway::testing::GapSet;
using ::spillway::testing::GapsOfBits;
using ::spillway::testing::IntegerProgram;
using ::spillway::testing::Random;
using ::spillway::testing::RandomWorkload;
using ::spillway::testing::RandomWorkloadOptions;

// A byte takes so many nanoseconds: between hidden copies and copies for which all others wait.
constexpr double kNsPerByte[] = {0.02, 1};

enum class Least { kBytesIn, kBytesOut, kTime };

// The least of its kind over all sets of gaps that keep each step within the budget. -1: none does;
// -2: not found in time.
class ExactLeast {
 public:
  ExactLeast(const DeviceSteps& steps, int64_t budget, Least least, double ns_per_byte = 0)
      : steps_(steps), least_(least), ns_per_byte_(ns_per_byte) {
    for (const DeviceSteps::Gap& gap : steps.gaps) {
      const double bytes = static_cast<double>(steps.w.buffers[gap.buffer].bytes);
      away_.push_back(program_.AddChoice(least == Least::kBytesIn ? bytes : 0));
    }
    // Bytes freed per step: the reduction in use with that gap alone.
    const GapSet none = steps.no_gaps();
    const int num_steps = static_cast<int>(steps.order.size());
    spans_.assign(away_.size(), {num_steps, -1});
    std::vector<std::vector<std::pair<int, double>>> freed(num_steps);
    for (size_t g = 0; g < away_.size(); ++g) {
      GapSet one = none;
      one[g] = true;
      for (int t = std::max(0, steps.gaps[g].from); t < steps.gaps[g].to; ++t) {
        const int64_t bytes = steps.InUse(none, t) - steps.InUse(one, t);
        if (bytes == 0) continue;
        freed[t].emplace_back(away_[g], static_cast<double>(bytes) / kAllocationBytes);
        spans_[g] = {std::min(spans_[g].first, t), t};
      }
    }
    for (int t = 0; t < num_steps; ++t) {
      const int64_t lacking = steps.InUse(none, t) - budget;
      // In whole pieces, as the allocator's.
      if (lacking > 0) {
        program_.AddRow(freed[t], std::ceil(static_cast<double>(lacking) / kAllocationBytes));
      }
    }
    if (least != Least::kBytesIn) AddBuffers();
    if (least == Least::kTime) AddTimes();
  }

  int64_t Find() {
    switch (program_.Minimize()) {
      case IntegerProgram::Outcome::kImpossible:
        return -1;
      case IntegerProgram::Outcome::kGivenUp:
        return -2;
      case IntegerProgram::Outcome::kOptimal:
        break;
    }
    return std::llround(program_.cost());
  }

  GapSet Away() const {
    GapSet away;
    for (int gap : away_) away.push_back(program_.is_chosen(gap));
    return away;
  }

 private:
  double Bytes(BufferId b) const { return static_cast<double>(steps_.w.buffers[b].bytes); }

  // A buffer travels out if one of its gaps is used.
  void AddBuffers() {
    for (size_t g = 0; g < away_.size(); ++g) {
      const BufferId b = steps_.gaps[g].buffer;
      if (steps_.on_host.count(b) > 0) continue;
      const auto [it, is_new] = out_.try_emplace(b, 0);
      if (is_new) it->second = program_.AddChoice(least_ == Least::kBytesOut ? Bytes(b) : 0);
      program_.AddRow({{it->second, 1}, {away_[g], -1}}, 0);
    }
  }

  // As long as each engine alone; and the start of each step: behind the one before it, and behind
  // the copies out of buffers away at it or before. Copies out of outputs of steps from s on begin
  // when s has run. Copies in of buffers away at a step t or later begin when t has run, and those
  // of buffers used up to u end before u starts.
  void AddTimes() {
    const int time = program_.AddNumber(1);
    const int num_steps = static_cast<int>(steps_.order.size());
    double copies_out = 0, copies_in = 0;
    for (const WorkloadOp& op : steps_.w.ops) {
      if (op.device != steps_.device) continue;
      const double ns = static_cast<double>(op.duration_ns);
      if (op.kind == OpKind::kCopyOut) copies_out += ns;
      if (op.kind == OpKind::kCopyIn) copies_in += ns;
    }
    // From the start of one step (-1: of all) to that of another (or the end of all): so many ns,
    // and these copies.
    std::vector<int> starts;
    for (int t = 0; t < num_steps; ++t) starts.push_back(program_.AddNumber(0));
    starts.push_back(time);
    const auto add = [&](int from, int to, double ns, const std::vector<Copy>& copies) {
      std::vector<std::pair<int, double>> row = {{starts[to], 1}};
      if (from >= 0) row.emplace_back(starts[from], -1);
      for (const Copy& copy : copies) row.emplace_back(copy.variable, -copy.ns);
      program_.AddRow(row, ns);
    };
    const auto those = [](std::vector<Copy> copies, auto condition) {
      copies.erase(std::remove_if(copies.begin(), copies.end(),
                                  [&](const Copy& copy) { return !condition(copy); }),
                   copies.end());
      return copies;
    };
    add(-1, num_steps, copies_out, Out(num_steps));
    add(-1, num_steps, copies_in, In(0));
    for (int t = 0; t < num_steps; ++t) {
      const auto ns = [&](int step) {
        return static_cast<double>(steps_.w.ops[steps_.order[step]].duration_ns);
      };
      add(t, t + 1, ns(t), {});
      const std::vector<Copy> out = Out(t), in = In(t);
      add(-1, t, 0, out);
      for (int s = 0; s < t; ++s) {
        add(s, t, ns(s), those(out, [s](const Copy& copy) { return copy.made_at >= s; }));
      }
      for (int u = t + 1; u <= num_steps; ++u) {
        add(t, u, ns(t), those(in, [u](const Copy& copy) { return copy.wanted_at <= u; }));
      }
    }
  }

  struct Copy {
    int variable;
    double ns;
    int made_at, wanted_at;  // Of the copies out; of the copies in.
  };

  // The copies out of buffers that are away at a step up to t.
  std::vector<Copy> Out(int t) {
    std::map<BufferId, int> until;
    for (size_t g = 0; g < away_.size(); ++g) {
      const BufferId b = steps_.gaps[g].buffer;
      if (out_.count(b) == 0 || spans_[g].first > t) continue;
      // One variable for all of its gaps up to t.
      const auto [it, is_new] = until.try_emplace(b, 0);
      if (is_new) it->second = program_.AddChoice(0);
      program_.AddRow({{it->second, 1}, {away_[g], -1}}, 0);
    }
    std::vector<Copy> copies;
    for (const auto& [b, variable] : until) {
      copies.push_back({variable, Bytes(b) * ns_per_byte_, steps_.uses.at(b).front(), 0});
    }
    return copies;
  }
  // The copies in behind gaps that reach to t or further.
  std::vector<Copy> In(int t) const {
    std::vector<Copy> copies;
    for (size_t g = 0; g < away_.size(); ++g) {
      if (spans_[g].second < t) continue;
      copies.push_back(
          {away_[g], Bytes(steps_.gaps[g].buffer) * ns_per_byte_, 0, steps_.gaps[g].to});
    }
    return copies;
  }

  const DeviceSteps& steps_;
  const Least least_;
  const double ns_per_byte_;
  IntegerProgram program_;
  std::vector<int> away_;                   // By gap.
  std::vector<std::pair<int, int>> spans_;  // By gap: the first and the last step that it frees.
  std::map<BufferId, int> out_;
};

Workload RandomKernels(int max_steps, Random* random) {
  RandomWorkloadOptions options;
  options.max_devices = 1;
  options.max_steps = max_steps;
  options.kernels_only = random->OneIn(2);
  options.long_copies = false;
  options.max_units = random->Pick(std::vector<int>{3, 9, 100});
  return RandomWorkload(options, random);
}

std::vector<OpId> OrderOf(const Workload& workload) {
  auto result = Simulate(workload, SimulationOptions(), StopToken());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->order : std::vector<OpId>();
}

// The oracle itself: with few gaps, no set of them is better, and its own fits.
TEST(ExactLeastTest, IsThatOfBruteForce) {
  int64_t compared = 0, impossible = 0;
  for (uint64_t seed = 0; seed < 1'500 && !HasFailure(); ++seed) {
    Random random(seed);
    const Workload workload = RandomKernels(12, &random);
    const DeviceSteps steps(workload, 0, OrderOf(workload));
    if (steps.gaps.empty() || steps.gaps.size() > 8) continue;
    std::vector<GapSet> sets;
    for (uint32_t bits = 0; bits < 1u << steps.gaps.size(); ++bits) {
      sets.push_back(GapsOfBits(bits, steps.gaps.size()));
    }
    const int64_t least = steps.Peak(sets.back()), most = steps.Peak(sets.front());
    const int64_t budget = random.Between(static_cast<int>(least) - 256, static_cast<int>(most));
    int64_t in = -1, out = -1;
    for (const GapSet& away : sets) {
      if (steps.Peak(away) > budget) continue;
      in = in < 0 ? steps.BytesIn(away) : std::min(in, steps.BytesIn(away));
      out = out < 0 ? steps.BytesOut(away) : std::min(out, steps.BytesOut(away));
    }
    ExactLeast least_in(steps, budget, Least::kBytesIn);
    ExactLeast least_out(steps, budget, Least::kBytesOut);
    ASSERT_EQ(least_in.Find(), in) << seed;
    ASSERT_EQ(least_out.Find(), out) << seed;
    if (in < 0) {
      ++impossible;
      continue;
    }
    ASSERT_LE(steps.Peak(least_in.Away()), budget) << seed;
    ASSERT_EQ(steps.BytesIn(least_in.Away()), in) << seed;
    ASSERT_LE(steps.Peak(least_out.Away()), budget) << seed;
    compared += in > 0;
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(impossible, 10);
}

TEST(ExactBoundsTest, NoPlanOfWholeBuffersIsBelowTheBounds) {
  int64_t budgets = 0, forced = 0, given_up = 0, most_gaps = 0;
  double in_share = 0, out_share = 0, time_share = 0;
  int64_t times = 0, longer = 0;
  for (uint64_t seed = 0; seed < 120 && !HasFailure(); ++seed) {
    Random random(seed);
    const Workload workload = RandomKernels(60, &random);
    const std::vector<OpId> order = OrderOf(workload);
    const DeviceSteps steps(workload, 0, order);
    if (steps.gaps.empty()) continue;
    most_gaps = std::max(most_gaps, static_cast<int64_t>(steps.gaps.size()));
    const int64_t most = steps.Peak(steps.no_gaps());
    const int64_t least = steps.Peak(GapSet(steps.gaps.size(), true));
    int64_t compute_ns = 0;
    for (OpId id : steps.order) compute_ns += workload.ops[id].duration_ns;
    for (const double share : {0.0, 0.35, 0.7}) {
      const int64_t budget =
          least + static_cast<int64_t>(share * static_cast<double>(most - least));
      LowerBoundOptions options;
      options.device_budget_bytes = {budget};
      for (const double ns_per_byte : kNsPerByte) {
        options.copy_out_bytes_per_s = options.copy_in_bytes_per_s = 1e9 / ns_per_byte;
        const auto bounds = ComputeLowerBounds(workload, order, options, StopToken());
        ASSERT_TRUE(bounds.ok()) << bounds.status();
        const DeviceBounds& bound = bounds->front();
        if (ns_per_byte == kNsPerByte[0]) {
          const int64_t in = ExactLeast(steps, budget, Least::kBytesIn).Find();
          const int64_t out = ExactLeast(steps, budget, Least::kBytesOut).Find();
          ASSERT_NE(in, -1) << seed << ": all gaps together suffice";
          ASSERT_NE(out, -1) << seed;
          ++budgets;
          if (in == -2 || out == -2) {
            ++given_up;
            continue;
          }
          ASSERT_LE(bound.swap_in_bytes, in) << seed << " budget " << budget;
          ASSERT_LE(bound.swap_out_bytes, out) << seed << " budget " << budget;
          if (in > 0) {
            ++forced;
            in_share += static_cast<double>(bound.swap_in_bytes) / static_cast<double>(in);
            out_share +=
                out == 0 ? 1 : static_cast<double>(bound.swap_out_bytes) / static_cast<double>(out);
          }
        }
        if (bound.excess_bytes == 0 || steps.order.size() > 30) continue;
        const int64_t time = ExactLeast(steps, budget, Least::kTime, ns_per_byte).Find();
        ++budgets;
        if (time == -2) {
          ++given_up;
          continue;
        }
        ASSERT_LE(bound.step_time_ns, time) << seed << " budget " << budget;
        ++times;
        longer += time > compute_ns;
        time_share += static_cast<double>(bound.step_time_ns) / static_cast<double>(time);
      }
    }
  }
  std::cout << forced << " budgets force swaps, with up to " << most_gaps
            << " gaps: of the least in whole buffers, bound B is "
            << in_share / static_cast<double>(forced) << " (in), "
            << out_share / static_cast<double>(forced) << " (out); the bound of time is "
            << time_share / static_cast<double>(times) << " of " << times << ", " << longer
            << " of them above the kernels' own; " << given_up << " of " << budgets
            << " programs not solved in time\n";
  EXPECT_GT(forced, 150);
  EXPECT_GT(times, 100);
  EXPECT_GT(longer, 50);
  EXPECT_LT(given_up, budgets / 20);
}

// The joint bound beside each way to keep, copy or recompute the whole buffers of few gaps.
TEST(ExactBoundsTest, NoPlanOfSwapsAndClonesIsBelowTheJointBound) {
  int64_t compared = 0, made_again = 0;
  double share = 0;
  for (uint64_t seed = 0; seed < 4'000 && !HasFailure(); ++seed) {
    Random random(seed);
    const Workload workload = RandomKernels(12, &random);
    const std::vector<OpId> order = OrderOf(workload);
    const DeviceSteps steps(workload, 0, order);
    const size_t num_gaps = steps.gaps.size();
    if (num_gaps == 0 || num_gaps > 7) continue;
    LowerBoundOptions options;
    std::map<BufferId, OpId> writer;
    double compute_ns = 0, in_ns = 0, out_ns = 0;
    for (OpId id(0); id < static_cast<int32_t>(workload.ops.size()); ++id) {
      const WorkloadOp& op = workload.ops[id];
      const double ns = static_cast<double>(op.duration_ns);
      options.may_run_again.push_back(op.kind == OpKind::kCompute && !random.OneIn(4));
      if (op.device == 0 && op.kind == OpKind::kCompute) compute_ns += ns;
      if (op.device == 0 && op.kind == OpKind::kCopyIn) in_ns += ns;
      if (op.device == 0 && op.kind == OpKind::kCopyOut) out_ns += ns;
      if (!options.may_run_again.back()) continue;
      for (BufferId b : workload.writes[id]) writer[b] = id;
    }
    const double ns_per_byte = kNsPerByte[random.OneIn(2)];
    const int64_t most = steps.Peak(steps.no_gaps());
    const int64_t least = steps.Peak(GapSet(num_gaps, true));
    options.device_budget_bytes = {random.Between(static_cast<int>(least), static_cast<int>(most))};
    options.copy_out_bytes_per_s = options.copy_in_bytes_per_s = 1e9 / ns_per_byte;
    const auto bounds = ComputeLowerBounds(workload, order, options, StopToken());
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    if (bounds->front().excess_bytes == 0) continue;
    double least_ns = -1;
    bool least_has_clones = false;
    const int num_plans = static_cast<int>(std::pow(3, num_gaps));
    for (int plan = 0; plan < num_plans; ++plan) {
      GapSet away(num_gaps, false);
      double copied_ns = in_ns;
      std::map<OpId, std::map<BufferId, int>> runs;  // One run makes all that an operation writes.
      bool is_possible = true;
      int digits = plan;
      for (size_t g = 0; g < num_gaps; ++g, digits /= 3) {
        if (digits % 3 == 0) continue;
        away[g] = true;
        const BufferId b = steps.gaps[g].buffer;
        if (digits % 3 == 1) {
          copied_ns += static_cast<double>(workload.buffers[b].bytes) * ns_per_byte;
        } else if (writer.count(b) > 0) {
          ++runs[writer[b]][b];
        } else {
          is_possible = false;
        }
      }
      if (!is_possible || steps.Peak(away) > options.device_budget_bytes[0]) continue;
      double run_ns = compute_ns;
      for (const auto& [op, gaps_by_buffer] : runs) {
        int most_gaps = 0;
        for (const auto& [b, gaps] : gaps_by_buffer) most_gaps = std::max(most_gaps, gaps);
        run_ns += most_gaps * static_cast<double>(workload.ops[op].duration_ns);
      }
      const double ns = std::max({run_ns, copied_ns, out_ns});
      if (least_ns >= 0 && ns >= least_ns) continue;
      least_ns = ns;
      least_has_clones = !runs.empty();
    }
    ASSERT_GE(least_ns, 0) << seed << ": all gaps together suffice";
    ASSERT_LE(static_cast<double>(bounds->front().step_time_ns), least_ns) << seed;
    ++compared;
    made_again += least_has_clones;
    if (least_ns > 0) share += static_cast<double>(bounds->front().step_time_ns) / least_ns;
  }
  std::cout << compared << " budgets force something, " << made_again
            << " of the best plans run something again: the joint bound is "
            << share / static_cast<double>(compared) << " of their time\n";
  EXPECT_GT(compared, 200);
  EXPECT_GT(made_again, 50);
}

}  // namespace
}  // namespace spillway::core
