#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"

namespace spillway::server {
namespace {

TEST(WorkerPoolTest, RunsAsManyAtOnceAsItHasWorkers) {
  WorkerPool pool(3, 10);
  // Passes only when three tasks are in it together.
  auto* barrier = new absl::Barrier(3);
  absl::BlockingCounter done(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&] {
      if (barrier->Block()) delete barrier;
      done.DecrementCount();
    }));
  }
  done.Wait();
}

TEST(WorkerPoolTest, RefusesWhenTheQueueIsFullAndRecovers) {
  WorkerPool pool(1, 2);
  absl::Notification started, release;
  ASSERT_TRUE(pool.TrySubmit([&] {
    started.Notify();
    release.WaitForNotification();
  }));
  started.WaitForNotification();
  std::atomic<int> ran{0};
  absl::BlockingCounter two(2);
  const auto count = [&] {
    ++ran;
    two.DecrementCount();
  };
  EXPECT_TRUE(pool.TrySubmit(count));
  EXPECT_TRUE(pool.TrySubmit(count));
  EXPECT_EQ(pool.queued(), 2u);
  EXPECT_FALSE(pool.TrySubmit([&] { ran += 100; }));
  EXPECT_EQ(pool.queued(), 2u);
  release.Notify();
  two.Wait();
  EXPECT_EQ(pool.queued(), 0u);
  absl::Notification again;
  EXPECT_TRUE(pool.TrySubmit([&] { again.Notify(); }));
  again.WaitForNotification();
  EXPECT_EQ(ran, 2) << "a refused task never runs";
}

TEST(WorkerPoolTest, FirstInFirstOut) {
  std::vector<int> order;
  {
    WorkerPool pool(1, 100);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(pool.TrySubmit([&order, i] { order.push_back(i); }));
    }
  }  // Runs what is queued, then joins.
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace spillway::server
