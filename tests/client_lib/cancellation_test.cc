#include "spillway/cancellation.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace spillway {
namespace {

TEST(CancellationTest, CopiesShareTheFlagAndFreshTokensDoNot) {
  CancellationToken token;
  const CancellationToken copy = token;
  const CancellationToken other;
  EXPECT_FALSE(copy.cancelled());
  token.Cancel();
  EXPECT_TRUE(copy.cancelled());
  EXPECT_TRUE(*copy.flag());
  EXPECT_FALSE(other.cancelled());
}

TEST(CancellationTest, ACallbackRunsOnce) {
  CancellationToken token;
  int calls = 0;
  CancellationCallback callback(token, [&calls] { ++calls; });
  EXPECT_EQ(calls, 0);
  token.Cancel();
  token.Cancel();
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTest, ACallbackOnACancelledTokenRunsAtOnce) {
  CancellationToken token;
  token.Cancel();
  int calls = 0;
  CancellationCallback callback(token, [&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTest, ACallbackThatIsGoneDoesNotRun) {
  CancellationToken token;
  int gone = 0;
  int there = 0;
  CancellationCallback second(token, [&there] { ++there; });
  {
    CancellationCallback first(token, [&gone] { ++gone; });
  }
  token.Cancel();
  EXPECT_EQ(gone, 0);
  EXPECT_EQ(there, 1);
}

// Objects used by a callback may go with the callback object (run under asan and tsan).
TEST(CancellationTest, DestructionWaitsForARunningCallback) {
  for (int i = 0; i < 200; ++i) {
    CancellationToken token;
    auto used = std::make_unique<std::atomic<int>>(0);
    auto callback =
        std::make_unique<CancellationCallback>(token, [p = used.get()] { p->fetch_add(1); });
    std::thread canceller([&token] { token.Cancel(); });
    callback.reset();
    used.reset();
    canceller.join();
  }
}

}  // namespace
}  // namespace spillway
