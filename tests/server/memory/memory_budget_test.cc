#include "server/memory/memory_budget.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::server {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMebi = int64_t{1} << 20;

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() : root_(::testing::TempDir() + "cgroup_test/") {
    std::filesystem::remove_all(root_);
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path(root_ + name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int64_t Limit() const { return CgroupLimit(root_ + "self", root_); }

  const std::string root_;
};

TEST_F(CgroupTest, Version2TakesTheTightestOnTheWay) {
  Write("self", "0::/kubepods/pod1/box\n");
  Write("kubepods/pod1/box/memory.max", "max\n");
  EXPECT_EQ(Limit(), 0);
  Write("kubepods/pod1/memory.max", "2147483648\n");
  EXPECT_EQ(Limit(), 2 * kGiB);
  Write("kubepods/pod1/box/memory.max", "1073741824\n");
  EXPECT_EQ(Limit(), kGiB);
}

// A container whose cgroup tree begins at its own group.
TEST_F(CgroupTest, Version2InANamespace) {
  Write("self", "0::/\n");
  Write("memory.max", "1073741824\n");
  EXPECT_EQ(Limit(), kGiB);
}

TEST_F(CgroupTest, Version1) {
  Write("self", "9:cpu,cpuacct:/docker/1a\n4:memory:/docker/1a\n0::/\n");
  Write("memory/docker/1a/memory.limit_in_bytes", "9223372036854771712\n");  // Unlimited.
  EXPECT_EQ(Limit(), 0);
  Write("memory/memory.limit_in_bytes", "1073741824\n");  // What a container sees of its own group.
  EXPECT_EQ(Limit(), kGiB);
}

TEST_F(CgroupTest, WithoutFilesThereIsNone) {
  EXPECT_EQ(Limit(), 0);
  Write("self", "nonsense\n0:\n1:memory:relative\n");
  EXPECT_EQ(Limit(), 0);
}

TEST(BudgetOfTest, AGroupsLimitLeavesRoomForTheServerItself) {
  EXPECT_EQ(BudgetOf(6 * kGiB, 64 * kGiB), 6 * kGiB - 256 * kMebi - 6 * kGiB / 10);
  EXPECT_EQ(BudgetOf(0, 64 * kGiB), 32 * kGiB);
  EXPECT_EQ(BudgetOf(128 * kGiB, 64 * kGiB), 32 * kGiB) << "a limit above what there is is none";
  EXPECT_EQ(BudgetOf(300 * kMebi, 64 * kGiB), kMinMemoryBudget);
}

}  // namespace
}  // namespace spillway::server
