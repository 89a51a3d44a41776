#include "client_lib/internal/host_rate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace spillway::internal {
namespace {

// From a tenth of the slowest memory that trains anything to the fastest caches.
TEST(HostRateTest, IsThatOfAMachine) {
  const double rate = MeasureHostRate(int64_t{32} << 20);
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 1e13);
}

TEST(HostRateTest, WithoutMemoryThereIsNone) {
  EXPECT_EQ(MeasureHostRate(std::numeric_limits<int64_t>::max()), 0);
}

}  // namespace
}  // namespace spillway::internal
