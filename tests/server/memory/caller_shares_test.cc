#include "server/memory/caller_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

TEST(CallerSharesTest, EachCallerHasItsOwn) {
  CallerShares shares(100);
  auto first = shares.Take("a", 60);
  ASSERT_TRUE(first.ok());
  const auto second = shares.Take("a", 41);
  EXPECT_EQ(core::GetErrorReason(second.status()), v1::ERROR_REASON_OVERLOADED);
  EXPECT_THAT(second.status().message(), ::testing::HasSubstr("--max-caller-bytes"));
  EXPECT_TRUE(shares.Take("a", 40).ok());
  EXPECT_TRUE(shares.Take("b", 100).ok());
  first->Release();
  first->Release();
  EXPECT_TRUE(shares.Take("a", 100).ok());
}

TEST(CallerSharesTest, OneRequestMayHaveMore) {
  CallerShares shares(100);
  auto large = shares.Take("a", 1000);
  ASSERT_TRUE(large.ok());
  EXPECT_FALSE(shares.Take("a", 1).ok());
  CallerShares::Share moved = *std::move(large);
  EXPECT_FALSE(shares.Take("a", 1).ok());
  moved = CallerShares::Share();
  EXPECT_TRUE(shares.Take("a", 1).ok());
}

// An upload above the share ends if another caller is refused, not if the own one is, nor if that
// other one is above its share, too: otherwise both would stop each other.
TEST(CallerSharesTest, WhatIsAboveTheShareYieldsToOthers) {
  CallerShares shares(100);
  auto large = shares.Take("a", 101);
  ASSERT_TRUE(large.ok());
  shares.AskToYield("a");
  EXPECT_FALSE(large->yields());
  auto also_large = shares.Take("b", 101);
  ASSERT_TRUE(also_large.ok());
  shares.AskToYield("b");
  EXPECT_FALSE(large->yields());
  also_large->Release();
  auto within = shares.Take("b", 100);
  ASSERT_TRUE(within.ok());
  shares.AskToYield("b");
  EXPECT_TRUE(large->yields());
  EXPECT_FALSE(within->yields());
  large->Release();
  EXPECT_FALSE(large->yields());
  EXPECT_FALSE(shares.Take("a", 101)->yields()) << "once is not forever";
  shares.AskToYield("c");  // Who holds nothing may ask, too.
}

TEST(CallerSharesTest, WhereASingleRequestMayNotHaveMore) {
  CallerShares shares(100, CallerShares::Single::kMayNot);
  EXPECT_FALSE(shares.Take("a", 101).ok());
  const auto all = shares.Take("a", 100);
  EXPECT_TRUE(all.ok());
  EXPECT_FALSE(shares.Take("a", 1).ok());
  EXPECT_TRUE(shares.Take("b", 1).ok());
}

}  // namespace
}  // namespace spillway::server
