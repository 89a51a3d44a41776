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

}  // namespace
}  // namespace spillway::server
