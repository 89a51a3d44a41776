#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace spillway::server {
namespace {

TEST(WorkerPoolTest, RunsAsManyAtOnceAsItHasWorkers) {
  std::atomic<int> together{0};
  {
    WorkerPool pool(3, 10);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(pool.TrySubmit([&] {
        ++together;
        while (together < 3) std::this_thread::yield();  // Ends only if all three run.
      }));
    }
  }
  EXPECT_EQ(together, 3);
}

TEST(WorkerPoolTest, RefusesWhenTheQueueIsFullAndRecovers) {
  std::atomic<int> ran{0};
  std::promise<void> started, release, again;
  WorkerPool pool(1, 2);
  ASSERT_TRUE(pool.TrySubmit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(pool.TrySubmit([&] { ++ran; }));
  EXPECT_TRUE(pool.TrySubmit([&] { ++ran; }));
  EXPECT_EQ(pool.queued(), 2u);
  EXPECT_FALSE(pool.TrySubmit([&] { ran += 100; }));
  EXPECT_EQ(pool.queued(), 2u);
  release.set_value();
  while (pool.queued() != 0) std::this_thread::yield();
  EXPECT_TRUE(pool.TrySubmit([&] { again.set_value(); }));
  again.get_future().wait();
  EXPECT_EQ(ran, 2) << "a refused task never runs";
}

TEST(WorkerPoolTest, WhatWaitsCanBeRemovedAndMakesRoom) {
  std::atomic<int> ran{0};
  std::promise<void> started, release, last;
  WorkerPool pool(1, 1);
  const uint64_t running = pool.NewId(), waiting = pool.NewId();
  ASSERT_TRUE(pool.TrySubmit(
      [&] {
        started.set_value();
        release.get_future().wait();
      },
      running));
  started.get_future().wait();
  ASSERT_TRUE(pool.TrySubmit([&] { ran += 100; }, waiting));
  EXPECT_FALSE(pool.Remove(running)) << "it runs";
  EXPECT_FALSE(pool.Remove(pool.NewId())) << "never queued";
  EXPECT_FALSE(pool.Remove(0));
  EXPECT_TRUE(pool.Remove(waiting));
  EXPECT_FALSE(pool.Remove(waiting)) << "only once";
  EXPECT_EQ(pool.queued(), 0u);
  EXPECT_TRUE(pool.TrySubmit([&] {
    ++ran;
    last.set_value();
  }));
  release.set_value();
  last.get_future().wait();
  EXPECT_EQ(ran, 1);
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
