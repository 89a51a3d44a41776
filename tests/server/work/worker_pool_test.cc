#include "server/work/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/manual_clock.h"

namespace spillway::server {
namespace {

constexpr absl::Duration kNoTarget = absl::InfiniteDuration();

bool Submit(WorkerPool& pool, std::function<void()> run, uint64_t id = 0,
            absl::Duration expected = absl::Milliseconds(1)) {
  Work work;
  work.run = std::move(run);
  work.id = id;
  work.expected = expected;
  return pool.TrySubmit(std::move(work)) == WorkQueue::Verdict::kWaits;
}

TEST(WorkerPoolTest, RunsAsManyAtOnceAsItHasWorkers) {
  std::atomic<int> together{0};
  {
    WorkerPool pool(3, 10, kNoTarget, RealClock());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Submit(pool, [&] {
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
  WorkerPool pool(1, 2, kNoTarget, RealClock());
  ASSERT_TRUE(Submit(pool, [&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(Submit(pool, [&] { ++ran; }));
  EXPECT_TRUE(Submit(pool, [&] { ++ran; }));
  EXPECT_EQ(pool.queued(), 2u);
  EXPECT_FALSE(Submit(pool, [&] { ran += 100; }));
  EXPECT_EQ(pool.queued(), 2u);
  release.set_value();
  while (pool.queued() != 0) std::this_thread::yield();
  EXPECT_TRUE(Submit(pool, [&] { again.set_value(); }));
  again.get_future().wait();
  EXPECT_EQ(ran, 2) << "a refused task never runs";
}

TEST(WorkerPoolTest, WhatWaitsCanBeRemovedAndMakesRoom) {
  std::atomic<int> ran{0};
  std::promise<void> started, release, last;
  WorkerPool pool(1, 1, kNoTarget, RealClock());
  const uint64_t running = pool.NewId(), waiting = pool.NewId();
  ASSERT_TRUE(Submit(
      pool,
      [&] {
        started.set_value();
        release.get_future().wait();
      },
      running));
  started.get_future().wait();
  ASSERT_TRUE(Submit(
      pool, [&] { ran += 100; }, waiting));
  EXPECT_FALSE(pool.Remove(running)) << "it runs";
  EXPECT_FALSE(pool.Remove(pool.NewId())) << "never queued";
  EXPECT_FALSE(pool.Remove(0));
  EXPECT_TRUE(pool.Remove(waiting));
  EXPECT_FALSE(pool.Remove(waiting)) << "only once";
  EXPECT_EQ(pool.queued(), 0u);
  EXPECT_TRUE(Submit(pool, [&] {
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
    WorkerPool pool(1, 100, kNoTarget, RealClock());
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(Submit(pool, [&order, i] { order.push_back(i); }));
    }
  }  // Runs the queue, then joins.
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[i], i);
}

// All workers are busy with long work; short work is still done.
TEST(WorkerPoolTest, ShortWorkDoesNotWaitForLongWork) {
  std::promise<void> release, short_done;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> long_done{0};
  {
    WorkerPool pool(2, 100, kNoTarget, RealClock());
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(Submit(
          pool,
          [&] {
            released.wait();
            ++long_done;
          },
          0, absl::Seconds(10)));
    }
    while (pool.queued() != 2) std::this_thread::yield();
    ASSERT_TRUE(Submit(pool, [&] { short_done.set_value(); }));
    short_done.get_future().wait();
    EXPECT_EQ(long_done, 0);
    EXPECT_EQ(pool.queued(), 2u) << "and nothing long was taken beyond the workers";
    release.set_value();
  }
  EXPECT_EQ(long_done, 4);
}

// Work that holds its thread until it is released. Must outlive the pool, whose end runs the queued
// work.
class Holder {
 public:
  WorkQueue::Verdict Submit(WorkerPool& pool, const std::string& caller, absl::Duration expected) {
    Work work;
    work.caller = caller;
    work.expected = expected;
    work.run = [this, caller] {
      {
        const std::lock_guard lock(mu_);
        ++running_[caller];
      }
      released_.wait();
    };
    return pool.TrySubmit(std::move(work));
  }

  int running(const std::string& caller) {
    const std::lock_guard lock(mu_);
    return running_[caller];
  }
  // Waits until so many of its works have begun.
  void Await(const std::string& caller, int count) {
    while (running(caller) < count) std::this_thread::yield();
  }
  void Release() { release_.set_value(); }

 private:
  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
  std::mutex mu_;
  std::map<std::string, int> running_;
};

constexpr absl::Duration kShortWork = absl::Milliseconds(1), kLongWork = absl::Seconds(10);

TEST(WorkerPoolTest, OneCallerHoldsUpNobody) {
  for (const int workers : {1, 2, 3}) {
    for (const absl::Duration theirs : {kShortWork, kLongWork}) {
      for (const absl::Duration ours : {kShortWork, kLongWork}) {
        Holder holder;
        WorkerPool pool(workers, 100, absl::Milliseconds(1), RealClock());
        for (int i = 0; i < 20; ++i) (void)holder.Submit(pool, "attacker", theirs);
        holder.Await("attacker", workers);
        absl::SleepFor(2 * WorkQueue::kPatience);  // From now on others are rejected.
        EXPECT_EQ(holder.Submit(pool, "other", ours), WorkQueue::Verdict::kWaits) << "not rejected";
        holder.Await("other", 1);
        EXPECT_LE(holder.running("attacker"), workers + 1);
        holder.Release();
      }
    }
  }
}

// Each of two callers has a worker, with work that proves to be long.
TEST(WorkerPoolTest, ShortWorkOfAThirdCallerStillRuns) {
  ManualClock clock;
  Holder holder;
  WorkerPool pool(2, 100, kNoTarget, clock);
  for (const char* caller : {"a", "b"}) {
    (void)holder.Submit(pool, caller, kShortWork);
    holder.Await(caller, 1);
  }
  (void)holder.Submit(pool, "c", kShortWork);
  EXPECT_EQ(pool.queued(), 1u) << "what is short ends soon";
  clock.Advance(Work::kLong);
  holder.Await("c", 1);
  (void)holder.Submit(pool, "a", kShortWork);
  (void)holder.Submit(pool, "d", kLongWork);
  EXPECT_EQ(pool.queued(), 2u);
  holder.Release();
}

// No other caller has work, so the caller has the thread for short work, but only for work much
// shorter than the long one.
TEST(WorkerPoolTest, ShortWorkRunsBesideLongWorkOfItsOwnCaller) {
  constexpr absl::Duration kTurnsOutLong = absl::Milliseconds(100);
  ManualClock clock;
  Holder holder;
  WorkerPool pool(2, 100, absl::Milliseconds(1), clock);
  for (int i = 0; i < 2; ++i) (void)holder.Submit(pool, "a", kTurnsOutLong);
  holder.Await("a", 2);
  ASSERT_EQ(holder.Submit(pool, "a", kTurnsOutLong), WorkQueue::Verdict::kWaits);
  EXPECT_EQ(pool.queued(), 1u);
  clock.Advance(Work::kLong);
  (void)holder.Submit(pool, "a", kTurnsOutLong / 4 + absl::Milliseconds(1));
  EXPECT_EQ(holder.Submit(pool, "a", kTurnsOutLong / 4), WorkQueue::Verdict::kWaits)
      << "not rejected, as it does not wait";
  holder.Await("a", 3);
  EXPECT_EQ(holder.running("a"), 3);
  holder.Release();
}

// A wait is too long from the first moment here, but is only refused once that has lasted.
TEST(WorkerPoolTest, WaitsAreMeasuredByTheClockGiven) {
  ManualClock clock;
  std::promise<void> started, release;
  WorkerPool pool(1, 100, absl::Milliseconds(100), clock);
  Work running;
  running.expected = Work::kLong - absl::Milliseconds(1);
  running.run = [&] {
    started.set_value();
    release.get_future().wait();
  };
  ASSERT_EQ(pool.TrySubmit(std::move(running)), WorkQueue::Verdict::kWaits);
  started.get_future().wait();
  EXPECT_TRUE(Submit(pool, [] {}));
  clock.Advance(WorkQueue::kPatience - absl::Milliseconds(1));
  EXPECT_TRUE(Submit(pool, [] {}));
  clock.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(Submit(pool, [] {}));
  release.set_value();
}

}  // namespace
}  // namespace spillway::server
