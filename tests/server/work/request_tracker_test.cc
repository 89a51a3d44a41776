#include "server/work/request_tracker.h"

#include <gtest/gtest.h>

#include <thread>

namespace spillway::server {
namespace {

TEST(RequestTrackerTest, AwaitNoneSaysWhetherAllHaveEnded) {
  RequestTracker tracker;
  EXPECT_TRUE(tracker.AwaitNone(absl::ZeroDuration()));
  tracker.Begin();
  tracker.Begin();
  EXPECT_EQ(tracker.inflight(), 2);
  tracker.End();
  EXPECT_FALSE(tracker.AwaitNone(absl::Milliseconds(1)));
  std::thread other([&] { tracker.End(); });
  EXPECT_TRUE(tracker.AwaitNone(absl::InfiniteDuration()));
  other.join();
  EXPECT_EQ(tracker.inflight(), 0);
}

TEST(RequestTrackerTest, DoorStaysClosed) {
  RequestTracker tracker;
  EXPECT_FALSE(tracker.closed());
  tracker.Close();
  EXPECT_TRUE(tracker.closed());
}

}  // namespace
}  // namespace spillway::server
