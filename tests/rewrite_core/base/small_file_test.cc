#include "rewrite_core/base/small_file.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/test_certs.h"

namespace spillway::core {
namespace {

using test_certs::TempFolder;
using ::testing::HasSubstr;

TEST(SmallFileTest, ReadsWholeFilesUpToTheLimit) {
  const TempFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{100'000}}) {
    const std::string content(size, 'x');
    const std::string file = folder.Write("file", content);
    EXPECT_EQ(ReadSmallFile(file).value(), content);
    EXPECT_EQ(ReadSmallFile(file, static_cast<int64_t>(size)).value(), content);
  }
  const std::string large = folder.Write("large", std::string(kMaxSmallFileBytes + 1, 'x'));
  EXPECT_EQ(ReadSmallFile(large).status().message(), "it has more than 1048576 bytes");
  EXPECT_TRUE(ReadSmallFile(large, kMaxSmallFileBytes + 1).ok());
  // Its size is said to be 0.
  EXPECT_THAT(ReadSmallFile("/proc/self/status").value(), HasSubstr("Name:"));
}

TEST(SmallFileTest, WhatIsNoFileIsRefusedAtOnce) {
  const TempFolder folder;
  EXPECT_EQ(ReadSmallFile(folder.path("none")).status(),
            absl::NotFoundError("No such file or directory"));
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& name : {folder.path("."), fifo, std::string("/dev/zero")}) {
    EXPECT_EQ(ReadSmallFile(name).status().message(), "it is not a regular file") << name;
  }
}

}  // namespace
}  // namespace spillway::core
