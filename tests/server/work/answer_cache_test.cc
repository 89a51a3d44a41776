#include "server/work/answer_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace spillway::server {
namespace {

constexpr int64_t kBudget = 1 << 20;

std::shared_ptr<RewriteAnswer> Answer(size_t bytes) {
  auto answer = std::make_shared<RewriteAnswer>();
  answer->graph.assign(bytes, 'a');
  return answer;
}

TEST(AnswerCacheTest, FindsWhatItKeeps) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  EXPECT_EQ(cache.Find("graph", "o"), nullptr);
  const auto answer = Answer(1000);
  cache.Keep("graph", "o", "", answer);
  EXPECT_EQ(cache.Find("graph", "o"), answer);
  EXPECT_TRUE(answer->is_shared);
  EXPECT_GE(cache.bytes(), 1000);
  EXPECT_LE(cache.bytes(), 10'000);
}

TEST(AnswerCacheTest, EveryByteCounts) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(100'000, admission);
  cache.Keep("graph", "o", "", Answer(1000));
  EXPECT_EQ(cache.Find("grapg", "o"), nullptr);
  EXPECT_EQ(cache.Find("graph", "p"), nullptr);
  EXPECT_EQ(cache.Find("grapho", ""), nullptr) << "where the graph ends counts, too";
}

TEST(AnswerCacheTest, OfNothingItKeepsNothing) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(0, admission);
  cache.Keep("graph", "o", "", Answer(1));
  EXPECT_EQ(cache.Find("graph", "o"), nullptr);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(AnswerCacheTest, TheLeastRecentlyAskedForGoesFirst) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  cache.Keep("1", "", "", Answer(3000));
  cache.Keep("2", "", "", Answer(3000));
  ASSERT_NE(cache.Find("1", ""), nullptr);
  cache.Keep("3", "", "", Answer(3000));
  EXPECT_NE(cache.Find("1", ""), nullptr);
  EXPECT_EQ(cache.Find("2", ""), nullptr);
  EXPECT_NE(cache.Find("3", ""), nullptr);
  EXPECT_LE(cache.bytes(), 10'000);
}

TEST(AnswerCacheTest, WhatIsTooLargeDisplacesNothing) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  cache.Keep("1", "", "", Answer(3000));
  cache.Keep("2", "", "", Answer(10'001));
  cache.Keep(std::string(10'001, 'g'), "", "", Answer(1));
  EXPECT_NE(cache.Find("1", ""), nullptr);
  EXPECT_EQ(cache.Find("2", ""), nullptr);
}

TEST(AnswerCacheTest, OneThatIsHereIsNotKeptTwice) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  cache.Keep("graph", "", "", Answer(1000));
  const int64_t once = cache.bytes();
  cache.Keep("graph", "", "", Answer(1000));
  EXPECT_EQ(cache.bytes(), once);
}

// Cached answers count in the budget, and are evicted when requests need the memory.
TEST(AnswerCacheTest, RequestsComeFirst) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(kBudget, admission);
  for (int i = 0; i < 8; ++i)
    cache.Keep(std::string(100'000, static_cast<char>('0' + i)), "", "", Answer(1));
  ASSERT_GE(admission.memory_bytes(), 800'000);
  auto ticket = admission.Reserve(kBudget - 500'000);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_NE(cache.Find(std::string(100'000, '7'), ""), nullptr) << "no more went than had to";
  EXPECT_TRUE(ticket->AddWork(400'000));
  EXPECT_FALSE(ticket->AddWork(200'000));
  EXPECT_EQ(cache.bytes(), 0);
  ticket->Release();
  EXPECT_EQ(admission.memory_bytes(), 0);
}

TEST(AnswerCacheTest, PlansGoWithTheirAnswers) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  const auto planned = Answer(3000);
  planned->plan = std::make_shared<core::PlannedStep>();
  cache.Keep("1", "", "plan", planned);
  cache.Keep("2", "", "none", Answer(3000));
  EXPECT_EQ(cache.FindPlan("none"), nullptr);
  EXPECT_EQ(cache.FindPlan("plan"), planned->plan);
  cache.Keep("3", "", "", Answer(3000));  // The plan was requested later than "2".
  EXPECT_EQ(cache.Find("2", ""), nullptr);
  EXPECT_EQ(cache.FindPlan("plan"), planned->plan);
  cache.GiveUp(kBudget);
  EXPECT_EQ(cache.FindPlan("plan"), nullptr);
}

TEST(AnswerCacheTest, WhoHasAnAnswerKeepsIt) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(10'000, admission);
  cache.Keep("graph", "", "", Answer(1000));
  const auto held = cache.Find("graph", "");
  EXPECT_TRUE(cache.GiveUp(1));
  EXPECT_EQ(cache.Find("graph", ""), nullptr);
  EXPECT_EQ(held->graph.size(), 1000);
  EXPECT_FALSE(cache.GiveUp(1)) << "there is nothing left";
}

TEST(AnswerCacheTest, ManyThreads) {
  Admission admission(kBudget, kBudget);
  AnswerCache cache(20'000, admission);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const size_t n = static_cast<size_t>((i * 7 + t) % 13);
        const std::string graph(n, 'g');
        if (const auto found = cache.Find(graph, "")) {
          wrong += found->graph.size() != 1000 + n;
        } else {
          cache.Keep(graph, "", "", Answer(1000 + n));
        }
        if (i % 100 == t) cache.GiveUp(5000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.bytes(), 20'000);
  cache.GiveUp(kBudget);
  EXPECT_EQ(admission.memory_bytes(), 0);
}

}  // namespace
}  // namespace spillway::server
