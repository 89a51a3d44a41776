#include "server/calls/idle_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "tests/server/manual_clock.h"

namespace spillway::server {
namespace {

constexpr absl::Duration kIdleTimeout = absl::Milliseconds(20);
constexpr absl::Duration kTick = absl::Nanoseconds(1);

class IdleTimerTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::atomic<int> fired_{0};
  const std::function<void()> on_idle_ = [this] { ++fired_; };
};

TEST_F(IdleTimerTest, FiresOnceWhileWaiting) {
  IdleTimer timer(clock_, kIdleTimeout, on_idle_);
  timer.Wait();
  clock_.Advance(kIdleTimeout - kTick);
  EXPECT_EQ(fired_, 0);
  clock_.Advance(kTick);
  EXPECT_EQ(fired_, 1);
  clock_.Advance(10 * kIdleTimeout);
  EXPECT_EQ(fired_, 1);
}

TEST_F(IdleTimerTest, EachWaitStartsAnew) {
  IdleTimer timer(clock_, kIdleTimeout, on_idle_);
  for (int i = 0; i < 10; ++i) {
    timer.Wait();
    clock_.Advance(kIdleTimeout - kTick);
  }
  EXPECT_EQ(fired_, 0);
  clock_.Advance(kTick);
  EXPECT_EQ(fired_, 1);
}

TEST_F(IdleTimerTest, NotWhilePausedOrDestroyed) {
  IdleTimer paused(clock_, kIdleTimeout, on_idle_);
  std::optional<IdleTimer> destroyed;
  destroyed.emplace(clock_, kIdleTimeout, on_idle_);
  IdleTimer never(clock_, absl::InfiniteDuration(), on_idle_);
  destroyed->Wait();
  destroyed.reset();
  never.Wait();
  paused.Wait();
  paused.Pause();
  clock_.Advance(10.5 * kIdleTimeout);
  EXPECT_EQ(fired_, 0);
  paused.Wait();
  clock_.Advance(kIdleTimeout - kTick);
  EXPECT_EQ(fired_, 0) << "it waits from now on";
  clock_.Advance(kTick);
  EXPECT_EQ(fired_, 1) << "a pause ends";
  paused.Wait();
  clock_.Advance(10 * kIdleTimeout);
  EXPECT_EQ(fired_, 1);
}

TEST_F(IdleTimerTest, AfterItsDestructorItDoesNotFire) {
  std::atomic<bool> done{false};
  std::thread time([&] {
    while (!done) clock_.Advance(kIdleTimeout);
  });
  for (int i = 0; i < 1000; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    std::atomic<bool> bad{false};
    {
      // Fires at about the time of its destruction.
      IdleTimer timer(clock_, kIdleTimeout, [&] { bad = !*alive; });
      timer.Wait();
    }
    *alive = false;
    EXPECT_FALSE(bad);
  }
  done = true;
  time.join();
}

}  // namespace
}  // namespace spillway::server
