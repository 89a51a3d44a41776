#include "server/memory/memory_budget.h"

#include <gtest/gtest.h>

namespace spillway::server {
namespace {

constexpr int64_t kGibi = int64_t{1} << 30;
constexpr int64_t kMebi = int64_t{1} << 20;

TEST(BudgetOfTest, AGroupsLimitLeavesRoomForTheServerItself) {
  EXPECT_EQ(BudgetOf(6 * kGibi, 64 * kGibi), 6 * kGibi - 256 * kMebi - 6 * kGibi / 10);
  EXPECT_EQ(BudgetOf(0, 64 * kGibi), 32 * kGibi);
  EXPECT_EQ(BudgetOf(128 * kGibi, 64 * kGibi), 32 * kGibi) << "a limit above what there is is none";
  EXPECT_EQ(BudgetOf(300 * kMebi, 64 * kGibi), kMinMemoryBudget);
}

}  // namespace
}  // namespace spillway::server
