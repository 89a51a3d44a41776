#include "server/work/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace spillway::server {
namespace {

using Verdict = WorkQueue::Verdict;

constexpr absl::Duration kTarget = absl::Milliseconds(100);
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
const auto kAny = [](const Work&) { return true; };
const auto kShort = [](const Work& work) { return !work.is_long(); };

Work WorkOf(const std::string& peer, absl::Duration expected, uint64_t id = 0) {
  Work work;
  work.caller = peer;
  work.expected = expected;
  work.id = id;
  return work;
}

// The ids in the order in which they would run.
std::vector<uint64_t> Drain(WorkQueue& queue) {
  std::vector<uint64_t> ids;
  for (Work work; queue.Pop(kAny, kStart, &work);) {
    ids.push_back(work.id);
    queue.Done(work);
  }
  return ids;
}

TEST(WorkQueueTest, OnePeerIsServedInOrder) {
  WorkQueue queue(1, 100, kTarget);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(queue.Push(WorkOf("a", absl::Milliseconds(10), i), 0, false, kStart),
              Verdict::kWaits);
  }
  EXPECT_EQ(Drain(queue), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

// Twenty requests from one peer, then one from another.
TEST(WorkQueueTest, WhoSendsMuchWaitsForItself) {
  WorkQueue queue(1, 100, absl::InfiniteDuration());
  for (int i = 1; i <= 20; ++i) {
    ASSERT_EQ(queue.Push(WorkOf("a", absl::Milliseconds(10), i), 0, false, kStart),
              Verdict::kWaits);
  }
  ASSERT_EQ(queue.Push(WorkOf("b", absl::Milliseconds(10), 100), 0, false, kStart),
            Verdict::kWaits);
  const std::vector<uint64_t> order = Drain(queue);
  EXPECT_EQ(order[1], 100u) << "after one of the other's, which came first";
}

TEST(WorkQueueTest, ShortGoesBeforeLongOfTheSamePeer) {
  WorkQueue queue(1, 100, absl::InfiniteDuration());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(queue.Push(WorkOf("a", absl::Seconds(5), i), 0, false, kStart), Verdict::kWaits);
  }
  ASSERT_EQ(queue.Push(WorkOf("a", absl::Milliseconds(5), 100), 0, false, kStart), Verdict::kWaits);
  EXPECT_TRUE(queue.Has(kShort));
  Work work;
  ASSERT_TRUE(queue.Pop(kShort, kStart, &work));
  EXPECT_EQ(work.id, 100u);
  EXPECT_FALSE(queue.Has(kShort));
  EXPECT_FALSE(queue.Pop(kShort, kStart, &work));
  EXPECT_EQ(Drain(queue), (std::vector<uint64_t>{1, 2, 3}));
}

// Peers that always have requests waiting get equal amounts of work, for any requests.
TEST(WorkQueueTest, SharesAreEqual) {
  WorkQueue queue(1, 1000, absl::InfiniteDuration());
  const std::vector<std::pair<std::string, absl::Duration>> peers = {
      {"a", absl::Milliseconds(5)}, {"b", absl::Milliseconds(50)}, {"c", absl::Milliseconds(200)}};
  std::map<std::string, absl::Duration> done;
  const auto push = [&](const std::string& peer, absl::Duration expected) {
    ASSERT_EQ(queue.Push(WorkOf(peer, expected), 0, false, kStart), Verdict::kWaits);
  };
  for (const auto& [peer, expected] : peers) {
    for (int i = 0; i < 3; ++i) push(peer, expected);
  }
  for (int i = 0; i < 5000; ++i) {
    Work work;
    ASSERT_TRUE(queue.Pop(kAny, kStart, &work));
    queue.Done(work);
    done[work.caller] += work.expected;
    push(work.caller, work.expected);
  }
  EXPECT_LT(absl::AbsDuration(done["a"] - done["b"]), absl::Milliseconds(500));
  EXPECT_LT(absl::AbsDuration(done["a"] - done["c"]), absl::Milliseconds(500));
  EXPECT_GT(done["a"], absl::Seconds(10));
}

TEST(WorkQueueTest, CountIsBounded) {
  WorkQueue queue(1, 2, absl::InfiniteDuration());
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget, 1), 1, false, kStart), Verdict::kWaits)
      << "a worker takes it";
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget, 2), 1, false, kStart), Verdict::kWaits);
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget, 3), 1, false, kStart), Verdict::kWaits);
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget, 4), 1, false, kStart), Verdict::kFull);
  Work removed;
  EXPECT_TRUE(queue.Remove(2, kStart, &removed));
  EXPECT_EQ(removed.id, 2u);
  EXPECT_FALSE(queue.Remove(2, kStart, &removed));
  EXPECT_FALSE(queue.Remove(0, kStart, &removed));
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget, 5), 1, false, kStart), Verdict::kWaits);
  EXPECT_EQ(Drain(queue), (std::vector<uint64_t>{1, 3, 5}));
  EXPECT_EQ(queue.expected_wait(), absl::ZeroDuration());
}

// The numbers admitted and refused by a server that works at full speed.
struct Load {
  int refused = 0, admitted = 0;
  std::vector<absl::Duration> waits;
};

// A server with `workers`; a request that takes `takes` arrives every `every`, for `length`.
Load Simulate(int workers, absl::Duration takes, absl::Duration every, absl::Duration length) {
  WorkQueue queue(workers, 100'000, kTarget);
  std::mt19937 random(1);
  std::exponential_distribution<double> gap(1 / absl::ToDoubleSeconds(every));
  std::vector<absl::Time> busy_until(workers, kStart);
  std::vector<Work> running(workers);
  std::map<uint64_t, absl::Time> came;
  Load load;
  uint64_t id = 0;
  absl::Time next = kStart;
  while (next < kStart + length) {
    // The first worker to finish before the next request arrives takes the waiting work.
    const auto first = std::min_element(busy_until.begin(), busy_until.end());
    const int worker = static_cast<int>(first - busy_until.begin());
    const absl::Time free = *first;
    if (free <= next && queue.size() > 0) {
      if (running[worker].id != 0) queue.Done(std::exchange(running[worker], Work()));
      const absl::Time now = std::max(free, kStart);
      if (queue.Pop(kAny, now, &running[worker])) {
        load.waits.push_back(now - came[running[worker].id]);
        busy_until[worker] = std::max(now, came[running[worker].id]) + takes;
      }
      continue;
    }
    for (int i = 0; i < workers; ++i) {
      if (busy_until[i] <= next && running[i].id != 0)
        queue.Done(std::exchange(running[i], Work()));
      busy_until[i] = std::max(busy_until[i], next);
    }
    const size_t idle = std::count(busy_until.begin(), busy_until.end(), next);
    came[++id] = next;
    const Verdict verdict = queue.Push(WorkOf("a", takes, id), idle, false, next);
    ++(verdict == Verdict::kWaits ? load.admitted : load.refused);
    next += absl::Seconds(gap(random));
  }
  std::sort(load.waits.begin(), load.waits.end());
  return load;
}

TEST(WorkQueueTest, StandingOverloadIsRefusedAndWaitsStayShort) {
  const absl::Duration takes = absl::Milliseconds(60);
  const Load load = Simulate(2, takes, takes / 4, absl::Seconds(60));  // Twice the capacity.
  EXPECT_GT(load.refused, load.admitted * 8 / 10);
  EXPECT_GT(load.admitted, 60 / 0.06 * 2 * 0.95) << "and the workers are busy";
  // Three times the service time, plus the effect of the next arrivals.
  EXPECT_LT(load.waits[load.waits.size() * 99 / 100], 4 * takes);
}

TEST(WorkQueueTest, WhatCanBeServedIsNotRefused) {
  const absl::Duration takes = absl::Milliseconds(60);
  const Load load = Simulate(2, takes, takes, absl::Seconds(60));  // Half of the capacity.
  EXPECT_EQ(load.refused, 0);
}

// An array job: all requests together, then nothing; and the same again minutes later.
TEST(WorkQueueTest, EachBurstWaits) {
  const absl::Duration takes = absl::Milliseconds(100);
  WorkQueue queue(2, 1000, kTarget);
  for (int burst = 0; burst < 3; ++burst) {
    absl::Time now = kStart + absl::Minutes(5 * burst);
    for (int i = 1; i <= 200; ++i) {
      now += absl::Microseconds(200);
      ASSERT_EQ(queue.Push(WorkOf("a", takes, i), 0, false, now), Verdict::kWaits)
          << burst << ", " << i;
    }
    EXPECT_GT(queue.expected_wait(), absl::Seconds(9));
    for (Work work; queue.Pop(kAny, now, &work); now += takes / 2) queue.Done(work);
  }
}

// One peer floods; the requests of another, which are served immediately, do not hide that.
TEST(WorkQueueTest, FairnessDoesNotHideOverload) {
  const absl::Duration takes = absl::Milliseconds(60);
  WorkQueue queue(1, 1000, kTarget);
  int refused = 0;
  for (int ms = 0; ms < 30'000; ++ms) {
    const absl::Time now = kStart + absl::Milliseconds(ms);
    if (ms % 30 == 0) {
      refused += queue.Push(WorkOf("flood", takes), 0, false, now) == Verdict::kOverloaded;
    }
    if (ms % 100 == 0) {
      EXPECT_EQ(queue.Push(WorkOf("calm", absl::Milliseconds(1)), 0, false, now), Verdict::kWaits);
    }
    Work work;
    if (ms % 60 == 0 && queue.Pop(kAny, now, &work)) queue.Done(work);
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(queue.size(), 50u);
}

TEST(WorkQueueTest, WhoFillsTheQueueKeepsNobodyOut) {
  WorkQueue queue(1, 8, absl::InfiniteDuration());
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(queue.Push(WorkOf("a", kTarget), 0, false, kStart), Verdict::kWaits);
  }
  EXPECT_EQ(queue.Push(WorkOf("a", kTarget), 0, false, kStart), Verdict::kFull);
  EXPECT_EQ(queue.Push(WorkOf("b", kTarget), 0, false, kStart), Verdict::kWaits);
  EXPECT_EQ(queue.Push(WorkOf("b", kTarget), 0, false, kStart), Verdict::kFull);
  EXPECT_EQ(queue.Push(WorkOf("c", kTarget), 0, false, kStart), Verdict::kWaits);
  EXPECT_EQ(queue.Push(WorkOf("d", kTarget), 0, false, kStart), Verdict::kFull)
      << "bounded all the same";
}

// Work that was never done does not count against a caller that gave up.
TEST(WorkQueueTest, WhoGivesUpIsNotPunished) {
  WorkQueue queue(1, 100, absl::InfiniteDuration());
  Work removed;
  ASSERT_EQ(queue.Push(WorkOf("b", absl::Milliseconds(100), 1), 0, false, kStart), Verdict::kWaits);
  ASSERT_EQ(queue.Push(WorkOf("b", absl::Milliseconds(100), 2), 0, false, kStart), Verdict::kWaits);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(queue.Push(WorkOf("a", absl::Milliseconds(100), 100), 0, false, kStart),
              Verdict::kWaits);
    ASSERT_TRUE(queue.Remove(100, kStart, &removed));
  }
  ASSERT_EQ(queue.Push(WorkOf("a", absl::Milliseconds(100), 3), 0, false, kStart), Verdict::kWaits);
  EXPECT_EQ(Drain(queue), (std::vector<uint64_t>{1, 3, 2}));
}

}  // namespace
}  // namespace spillway::server
