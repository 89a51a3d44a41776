#include "client_lib/internal/host_rate.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace spillway::internal {
namespace {

// The best of so many passes: others use the machine, too.
constexpr int kPasses = 5;

int CountProcessors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

void InThreads(int threads, int64_t count, void (*part)(float*, float*, int64_t), float* to,
               float* from) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    const int64_t begin = count * i / threads, end = count * (i + 1) / threads;
    running.emplace_back(part, to + begin, from + begin, end - begin);
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace

double MeasureHostRate(int64_t bytes) {
  const int64_t count = bytes / int64_t{2 * sizeof(float)};
  const std::unique_ptr<float[]> to(new (std::nothrow) float[count]);
  const std::unique_ptr<float[]> from(new (std::nothrow) float[count]);
  if (to == nullptr || from == nullptr) return 0;
  const int threads = CountProcessors();
  // Each page is mapped beside the thread that first writes it.
  const auto fill = [](float* a, float* b, int64_t n) {
    std::fill_n(a, n, 0.0F);
    std::fill_n(b, n, 1.0F);
  };
  const auto add = [](float* a, float* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] += b[i];
  };
  InThreads(threads, count, fill, to.get(), from.get());
  absl::Duration best = absl::InfiniteDuration();
  for (int pass = 0; pass < kPasses; ++pass) {
    const absl::Time begin = absl::Now();
    InThreads(threads, count, add, to.get(), from.get());
    best = std::min(best, absl::Now() - begin);
  }
  return 3.0 * sizeof(float) * static_cast<double>(count) / absl::ToDoubleSeconds(best);
}

}  // namespace spillway::internal
