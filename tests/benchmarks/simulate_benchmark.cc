// Simulates synthetic training steps of 5,000 and 100,000 operations, and prints for each mode,
// with ample memory and with swaps under a budget that makes operations wait, the time per
// operation, and both modes and the lower bounds in floors (see floor.h) of a training graph of so
// many nodes.
//
//   build/tests/benchmarks/simulate_benchmark [--quick] [OPERATIONS...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/training_graph.h"
#include "tests/testing/workload_maker.h"

namespace spillway::core {
namespace {

using benchmarks::Median;
using testing::WorkloadMaker;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kKernelNs = 100'000;
constexpr int64_t kLaunchNs = 5'000;

// Layers of a kernel, a bookkeeping operation and an elementwise kernel in place, forward; backward
// two kernels and an update. Every `swap_every`-th layer's activation is swapped.
Workload TrainingStep(int64_t num_ops, int swap_every) {
  WorkloadMaker maker;
  const int per_layer = 6;
  const int layers = static_cast<int>(num_ops / per_layer);
  std::vector<BufferId> kept(layers), on_host(layers, core::kNoBufferId), weights(layers);
  std::vector<OpId> made(layers), swapped_out(layers, kNoOp);
  OpId last = kNoOp;
  BufferId flowing = core::kNoBufferId;
  const auto add = [&](int64_t ns, std::vector<OpId> waits, std::vector<BufferId> reads,
                       std::vector<BufferId> writes, std::vector<BufferId> reuses,
                       int64_t workspace) {
    if (last != kNoOp && std::find(waits.begin(), waits.end(), last) == waits.end()) {
      waits.push_back(last);
    }
    last = maker.Add({OpKind::kCompute, 0, ns, waits, reads, writes, reuses, workspace});
    return last;
  };
  for (int i = 0; i < layers; ++i) {
    weights[i] = maker.Resident(0, kMiB / 4);
    const BufferId y = maker.Buffer(0, kMiB);
    std::vector<BufferId> reads = {weights[i]};
    if (i > 0) reads.push_back(flowing);
    add(kKernelNs, {}, reads, {y}, {}, kMiB / 2);
    add(0, {}, {}, {}, {}, 0);
    kept[i] = maker.Buffer(0, kMiB);
    made[i] = add(kKernelNs / 4, {}, {y}, {kept[i]}, {y}, 0);
    flowing = kept[i];
    if (swap_every > 0 && i % swap_every == 0) {
      on_host[i] = maker.Buffer(-1, kMiB);
      const OpId out = maker.CopyOut(kKernelNs, {made[i]}, kept[i], on_host[i]);
      swapped_out[i] = maker.Host(0, {out});
    }
  }
  std::vector<OpId> passed;  // Backward kernels: triggers.
  flowing = core::kNoBufferId;
  for (int i = layers - 1; i >= 0; --i) {
    std::vector<OpId> waits = {made[i]};
    BufferId activation = kept[i];
    if (on_host[i] >= 0) {
      activation = maker.Buffer(0, kMiB);
      std::vector<OpId> host_waits = {swapped_out[i]};
      if (passed.size() > 8) host_waits.push_back(passed[passed.size() - 8]);
      const OpId in = maker.CopyIn(kKernelNs, {maker.Host(0, host_waits)}, on_host[i], activation);
      waits = {in};
    }
    const BufferId gradient = maker.Buffer(0, kMiB), of_weights = maker.Buffer(0, kMiB / 4);
    std::vector<BufferId> reads = {activation, weights[i]};
    if (flowing >= 0) reads.push_back(flowing);
    passed.push_back(add(kKernelNs, waits, reads, {gradient}, {}, 0));
    const OpId weight_gradient = add(kKernelNs, {}, {gradient}, {of_weights}, {}, kMiB / 2);
    maker.Compute(kKernelNs / 10, {weight_gradient}, {of_weights, weights[i]}, {});
    flowing = gradient;
  }
  return maker.Make();
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void Measure(int64_t num_ops, int swap_every, int repetitions) {
  const Workload workload = TrainingStep(num_ops, swap_every);
  const double ops = static_cast<double>(workload.ops.size());
  SimulationOptions options;
  options.launch_ns = kLaunchNs;
  auto ample = Simulate(workload, options, StopToken());
  if (!ample.ok()) Fail(ample.status());
  if (swap_every > 0) {
    // So that launches wait: they may run ahead by much less than they would.
    const DeviceUse& use = ample->devices[0];
    options.device_budget_bytes = {use.resident_bytes +
                                   (use.peak_bytes - use.resident_bytes) * 9 / 10};
  }
  testing::TrainingGraphOptions graph_options;
  graph_options.nodes = num_ops;
  const std::string graph = testing::MakeTrainingGraph(graph_options);
  std::vector<double> ahead, synchronous, both, bounds, floors;
  bool fits = true;
  for (int i = 0; i < repetitions; ++i) {
    floors.push_back(benchmarks::FloorSeconds(graph));
    const auto time = [](const auto& call, std::vector<double>* seconds) {
      const auto begin = benchmarks::Clock::now();
      auto result = call();
      seconds->push_back(benchmarks::SecondsSince(begin));
      if (!result.ok()) Fail(result.status());
      return *std::move(result);
    };
    SimulationOptions one = options;
    const auto simulate = [&] { return Simulate(workload, one, StopToken()); };
    fits = time(simulate, &ahead).fits() && fits;
    one.mode = SimulationMode::kSynchronous;
    fits = time(simulate, &synchronous).fits() && fits;
    time([&] { return SimulateBothModes(workload, options, StopToken()); }, &both);
    LowerBoundOptions bound_options;
    bound_options.device_budget_bytes = {ample->devices[0].peak_bytes * 3 / 4};
    bound_options.copy_out_bytes_per_s = bound_options.copy_in_bytes_per_s = 12e9;
    time([&] { return ComputeLowerBounds(workload, ample->order, bound_options, StopToken()); },
         &bounds);
  }
  const double floor = Median(floors);
  std::printf("%8.0f  %-6s %-4s %10.0f %12.0f %9.2f %7.2f %9.2f %7.2f\n", ops,
              swap_every > 0 ? "swaps" : "ample", fits ? "yes" : "no", 1e9 * Median(ahead) / ops,
              1e9 * Median(synchronous) / ops, 1e3 * Median(both), Median(both) / floor,
              1e3 * Median(bounds), Median(bounds) / floor);
  std::fflush(stdout);
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) {
  std::vector<int64_t> sizes;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    int64_t ops = 0;
    if (absl::string_view(argv[i]) == "--quick") {
      quick = true;
    } else if (absl::SimpleAtoi(argv[i], &ops) &&
               ops >= spillway::testing::kMinTrainingGraphNodes) {
      sizes.push_back(ops);
    } else {
      std::fprintf(stderr, "Usage: %s [--quick] [OPERATIONS...]\n", argv[0]);
      return 2;
    }
  }
  if (sizes.empty()) sizes = {5'000, 100'000};
  std::printf(
      "     ops  memory fits   ahead ns  synchronous   both ms  floors bounds ms  floors\n"
      "                          /op        ns/op\n");
  for (int64_t ops : sizes) {
    const int repetitions =
        quick ? 3 : static_cast<int>(std::clamp<int64_t>(2'000'000 / ops, 15, 200));
    for (int swap_every : {0, 4}) spillway::core::Measure(ops, swap_every, repetitions);
  }
  return 0;
}
