#include "rewrite_core/base/request_names.h"

#include <string>

#include "gtest/gtest.h"

namespace spillway::core {
namespace {

TEST(RequestNamesTest, RequestIds) {
  for (const std::string& good : {std::string("job-17/step:3"), std::string(128, 'i')}) {
    EXPECT_TRUE(IsRequestId(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string(129, 'i'), std::string("two words"), std::string("a\"quote"),
        std::string("back\\slash"), std::string("line\n"), std::string("\xc3\xa4")}) {
    EXPECT_FALSE(IsRequestId(bad)) << bad;
  }
}

// The examples of https://www.w3.org/TR/trace-context/.
TEST(RequestNamesTest, Traceparents) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_TRUE(IsTraceparent(good));
  EXPECT_TRUE(IsTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"));
  EXPECT_TRUE(IsTraceparent("cc" + good.substr(2) + "-what-the-future-will-be-like"));
  EXPECT_TRUE(IsTraceparent("cc" + good.substr(2)));
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "-x", "cc" + good.substr(2) + "x",
        "ff" + good.substr(2),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01"),
        "cc" + good.substr(2) + "-" + std::string(128, 'x'),
        "cc" + good.substr(2) + "-two words"}) {
    EXPECT_FALSE(IsTraceparent(bad)) << bad;
  }
}

}  // namespace
}  // namespace spillway::core
