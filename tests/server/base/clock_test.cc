// The real clock. No test depends on how late it fires.
#include "server/base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

constexpr absl::Duration kSoon = absl::Milliseconds(5);

TEST(ClockTest, CallsBackAtItsTimeAndAgainUntilThatIsNever) {
  Clock& clock = RealClock();
  const absl::Time begin = clock.Now();
  std::mutex mu;
  std::vector<absl::Time> calls;  // Guarded by mu.
  const auto timer = clock.CallAt(begin + kSoon, [&] {
    const std::lock_guard lock(mu);
    calls.push_back(clock.Now());
    return calls.size() < 3 ? calls.back() + kSoon : absl::InfiniteFuture();
  });
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(mu);
    return calls.size() == 3;
  }));
  // gRPC's alarms have a resolution of a millisecond.
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(calls[i], (i == 0 ? begin : calls[i - 1]) + kSoon - absl::Milliseconds(2)) << i;
  }
}

TEST(ClockTest, SleepsForAsLongAsAsked) {
  const absl::Time begin = RealClock().Now();
  RealClock().SleepFor(absl::ZeroDuration());
  RealClock().SleepFor(-kSoon);
  RealClock().SleepFor(kSoon);
  EXPECT_GT(RealClock().Now() - begin, kSoon - absl::Milliseconds(2));
}

TEST(ClockTest, ManyThatAreDestroyedAtOnceDoNotCallAfterwards) {
  Clock& clock = RealClock();
  for (int i = 0; i < 2000; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    std::atomic<bool> bad{false};
    // Calls at about the time of its destruction, repeatedly.
    auto timer = clock.CallAt(clock.Now(), [&] {
      bad = bad || !*alive;
      return clock.Now();
    });
    const absl::Time end = clock.Now() + absl::Microseconds(i % 50);
    while (clock.Now() < end) continue;
    timer.reset();
    *alive = false;
    EXPECT_FALSE(bad);
  }
}

}  // namespace
}  // namespace spillway::server
