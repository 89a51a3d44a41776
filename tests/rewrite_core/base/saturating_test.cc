#include "rewrite_core/base/saturating.h"

#include <gtest/gtest.h>

namespace spillway::core {
namespace {

TEST(Saturating, EndsAtTheHighestNumber) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(SaturatingAdd(2, 3), 5);
  EXPECT_EQ(SaturatingAdd(kMax, 1), kMax);
  EXPECT_EQ(SaturatingMultiply(2, 3), 6);
  EXPECT_EQ(SaturatingMultiply(kMax / 2, 3), kMax);
}

}  // namespace
}  // namespace spillway::core
