#include "server/idle_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "absl/time/clock.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

constexpr absl::Duration kIdleTimeout = absl::Milliseconds(20);

TEST(IdleTimerTest, FiresOnceWhileWaiting) {
  std::atomic<int> fired{0};
  IdleTimer timer(kIdleTimeout, [&] { ++fired; });
  timer.Wait();
  EXPECT_TRUE(Eventually([&] { return fired == 1; }));
  absl::SleepFor(3 * kIdleTimeout);
  EXPECT_EQ(fired, 1);
}

TEST(IdleTimerTest, NotWhilePausedOrStopped) {
  std::atomic<int> fired{0};
  IdleTimer paused(kIdleTimeout, [&] { ++fired; });
  IdleTimer stopped(kIdleTimeout, [&] { ++fired; });
  IdleTimer never(absl::InfiniteDuration(), [&] { ++fired; });
  stopped.Wait();
  stopped.Stop();
  never.Wait();
  absl::SleepFor(3 * kIdleTimeout);
  EXPECT_EQ(fired, 0);
  paused.Wait();
  EXPECT_TRUE(Eventually([&] { return fired == 1; })) << "a pause ends";
}

TEST(IdleTimerTest, ManyThatAreStoppedAtOnceDoNotFireAfterwards) {
  for (int i = 0; i < 200; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    std::atomic<bool> bad{false};
    {
      // Fires at about the time it is stopped.
      IdleTimer timer(absl::Microseconds(50), [&] { bad = !*alive; });
      timer.Wait();
      absl::SleepFor(absl::Microseconds(40 + i % 20));
    }
    *alive = false;
    EXPECT_FALSE(bad);
  }
}

}  // namespace
}  // namespace spillway::server
