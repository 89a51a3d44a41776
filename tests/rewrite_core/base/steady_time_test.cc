#include "rewrite_core/base/steady_time.h"

#include <gtest/gtest.h>

#include <thread>

namespace spillway::core {
namespace {

TEST(EventTest, AWaitEndsWithItOrWithItsTime) {
  Event event;
  const absl::Time begin = SteadyNow();
  EXPECT_FALSE(event.WaitFor(absl::Milliseconds(5)));
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(5));
  EXPECT_FALSE(event.WaitFor(-absl::InfiniteDuration()));
  std::thread later([&event] { event.Notify(); });
  EXPECT_TRUE(event.WaitFor(absl::InfiniteDuration()));
  later.join();
  event.Notify();
  EXPECT_TRUE(event.WaitFor(absl::ZeroDuration()));
}

}  // namespace
}  // namespace spillway::core
