#include "client_lib/internal/host_rate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

// Sanitizers end a program that asks for so much memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPILLWAY_HAS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPILLWAY_HAS_SANITIZER
#endif
#endif

namespace spillway::internal {
namespace {

// From a tenth of the slowest memory that trains anything to the fastest caches.
TEST(HostRateTest, IsThatOfAMachine) {
  const double rate = MeasureHostRate(int64_t{32} << 20);
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 1e13);
}

TEST(HostRateTest, WithoutMemoryThereIsNone) {
#ifdef SPILLWAY_HAS_SANITIZER
  GTEST_SKIP() << "a sanitizer would end the program";
#endif
  EXPECT_EQ(MeasureHostRate(std::numeric_limits<int64_t>::max()), 0);
}

}  // namespace
}  // namespace spillway::internal
