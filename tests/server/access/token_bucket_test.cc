#include "server/access/token_bucket.h"

#include <gtest/gtest.h>

namespace spillway::server {
namespace {

class TokenBucketTest : public testing::Test {
 protected:
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  TokenBucket bucket_{/*per_second=*/2, /*most=*/10, now_};
};

TEST_F(TokenBucketTest, IsFullAtFirstAndHoldsNoMoreThanItsMost) {
  EXPECT_EQ(bucket_.WaitFor(10, now_), absl::ZeroDuration());
  now_ += absl::Seconds(3600);
  bucket_.Take(10, now_);
  EXPECT_EQ(bucket_.WaitFor(1, now_), absl::Milliseconds(500)) << "an hour of rest saved 10";
}

TEST_F(TokenBucketTest, FillsAtItsRate) {
  bucket_.Take(10, now_);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::ZeroDuration());
  now_ += absl::Milliseconds(499);
  EXPECT_GT(bucket_.WaitFor(1, now_), absl::ZeroDuration());
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(bucket_.WaitFor(1, now_), absl::ZeroDuration());
}

TEST_F(TokenBucketTest, WhatIsOwedIsPaidOffFirst) {
  bucket_.Take(30, now_);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::Seconds(10));
  now_ += absl::Seconds(4);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::Seconds(6));
  bucket_.Take(2, now_);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::Seconds(7));
  now_ += absl::Seconds(7);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::ZeroDuration());
}

// A caller that waits as long as advised is admitted, however fractions accumulate.
TEST_F(TokenBucketTest, TheWaitIsEnough) {
  TokenBucket thirds(/*per_second=*/1.0 / 3, /*most=*/1, now_);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration wait = thirds.WaitFor(1, now_);
    now_ += absl::Trunc(wait, absl::Nanoseconds(1));
    ASSERT_EQ(thirds.WaitFor(1, now_), absl::ZeroDuration()) << i;
    thirds.Take(1, now_);
  }
}

TEST_F(TokenBucketTest, AnotherRateKeepsWhatItHoldsAndOwes) {
  bucket_.Take(14, now_);
  bucket_.SetRate(4, 100, now_);
  EXPECT_EQ(bucket_.WaitFor(0, now_), absl::Seconds(1));
  now_ += absl::Seconds(1000);
  EXPECT_EQ(bucket_.WaitFor(100, now_), absl::ZeroDuration());
  bucket_.SetRate(1, 5, now_);
  EXPECT_EQ(bucket_.WaitFor(6, now_), absl::Seconds(1)) << "it has room for 5 now";
}

}  // namespace
}  // namespace spillway::server
