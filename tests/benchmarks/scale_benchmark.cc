// Rewrites synthetic training graphs of 10,000, 100,000 and 1,000,000 nodes, bytes to bytes and
// verified, and prints for each the time in floors (see rewrite_benchmark.cc), the time per node,
// and the peak of the heap beyond the input in units of the graph's bytes.
//
//   build/tests/benchmarks/scale_benchmark [--quick] [NODES...]
//   build/tests/benchmarks/scale_benchmark --write FILE NODES    (such a graph, for other tools)
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/rewriter.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/training_graph.h"

namespace {

// The heap as operator new and delete see it: all of the core's and of protobuf's memory.
std::atomic<int64_t> heap_now{0};
std::atomic<int64_t> heap_peak{0};

void Count(int64_t bytes) {
  const int64_t now = heap_now += bytes;
  if (now > heap_peak) heap_peak = now;
}

}  // namespace

// Not inlined: GCC would warn that malloc's memory goes to operator delete.
[[gnu::noinline]] void* operator new(size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  Count(static_cast<int64_t>(malloc_usable_size(p)));
  return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  Count(-static_cast<int64_t>(malloc_usable_size(p)));
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }

namespace spillway::core {
namespace {

using benchmarks::Median;

v1::RewriteOptions Options(bool structure) {
  v1::RewriteOptions options;
  options.mutable_scope();
  if (!structure) {
    options.mutable_scope()->add_optimizer_scopes("gradients");
    options.mutable_scope()->add_optimizer_scopes("train");
  }
  return options;
}

// One line of the table. Returns nanoseconds per node.
double Measure(int64_t nodes, int repetitions, bool structure) {
  testing::TrainingGraphOptions graph_options;
  graph_options.nodes = nodes;
  const std::string bytes = testing::MakeTrainingGraph(graph_options);
  const v1::RewriteOptions options = Options(structure);
  std::vector<double> ratios, seconds;
  std::map<std::string, double> stages;
  int64_t peak = 0, swaps = 0;
  for (int i = 0; i < repetitions; ++i) {
    const double floor = benchmarks::FloorSeconds(bytes);
    const int64_t before = heap_now;
    heap_peak = before;
    const auto begin = benchmarks::Clock::now();
    auto response = Rewrite(bytes, options, DefaultLimits(), StopToken());
    const double took = benchmarks::SecondsSince(begin);
    peak = std::max<int64_t>(peak, heap_peak - before);
    if (!response.ok() || response->report().outcome() != v1::OUTCOME_REWRITTEN) {
      std::fprintf(stderr, "%s\n", response.status().ToString().c_str());
      std::exit(1);
    }
    ratios.push_back(took / floor);
    seconds.push_back(took);
    swaps = response->report().swaps_size();
    for (const auto& stage : response->report().stages()) {
      stages[core::StageName(stage.stage())] += stage.duration_ns() * 1e-9 / floor / repetitions;
    }
  }
  std::printf("%9lld %7.1f %7lld  %-9s %8.1f %7.2f %9.0f %6.2f  ", static_cast<long long>(nodes),
              bytes.size() / 1e6, static_cast<long long>(swaps), structure ? "structure" : "names",
              1e3 * Median(seconds), Median(ratios), 1e9 * Median(seconds) / nodes,
              static_cast<double>(peak) / bytes.size());
  for (const auto& [stage, floors] : stages) std::printf(" %s %.2f", stage.c_str(), floors);
  std::printf("\n");
  std::fflush(stdout);
  return 1e9 * Median(seconds) / nodes;
}

int Run(const std::vector<int64_t>& sizes, bool quick) {
  std::printf(
      "    nodes      MB   swaps  backward        ms  floors   ns/node   heap   floors by "
      "stage\n");
  for (const bool structure : {false, true}) {
    std::map<int64_t, double> per_node;
    for (int64_t nodes : sizes) {
      const int repetitions =
          quick ? 1 : static_cast<int>(std::clamp<int64_t>(2'000'000 / nodes, 5, 50));
      per_node[nodes] = Measure(nodes, repetitions, structure);
    }
    if (per_node.count(100'000) > 0 && per_node.count(1'000'000) > 0) {
      std::printf("time per node, 1,000,000 : 100,000 nodes = %.2f\n",
                  per_node[1'000'000] / per_node[100'000]);
    }
  }
  return 0;
}

int WriteGraph(const char* file, int64_t nodes) {
  testing::TrainingGraphOptions options;
  options.nodes = nodes;
  std::ofstream out(file, std::ios::binary);
  out << testing::MakeTrainingGraph(options) << std::flush;
  if (!out) std::fprintf(stderr, "scale_benchmark: cannot write '%s'\n", file);
  return out ? 0 : 1;
}

bool ParseNodes(const char* text, int64_t* nodes) {
  return absl::SimpleAtoi(text, nodes) && *nodes >= testing::kMinTrainingGraphNodes;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) {
  int64_t to_write = 0;
  if (argc == 4 && absl::string_view(argv[1]) == "--write" &&
      spillway::core::ParseNodes(argv[3], &to_write)) {
    return spillway::core::WriteGraph(argv[2], to_write);
  }
  std::vector<int64_t> sizes;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    int64_t nodes = 0;
    if (absl::string_view(argv[i]) == "--quick") {
      quick = true;
    } else if (spillway::core::ParseNodes(argv[i], &nodes)) {
      sizes.push_back(nodes);
    } else {
      std::fprintf(stderr, "Usage: %s [--quick] [NODES...]\n       %s --write FILE NODES\n",
                   argv[0], argv[0]);
      return 2;
    }
  }
  if (sizes.empty()) sizes = {10'000, 100'000, 1'000'000};
  return spillway::core::Run(sizes, quick);
}
