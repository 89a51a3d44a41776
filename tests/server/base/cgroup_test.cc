#include "server/base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::server {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

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
  CgroupLimits Limits() const { return ReadCgroupLimits(root_ + "self", root_); }
  int64_t Limit() const { return Limits().memory_bytes; }

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
  Write("memory/memory.limit_in_bytes", "1073741824\n");  // A container's view of its own group.
  EXPECT_EQ(Limit(), kGiB);
}

TEST_F(CgroupTest, Version2CpuTakesTheTightestOnTheWay) {
  Write("self", "0::/kubepods/pod1/box\n");
  Write("kubepods/pod1/box/cpu.max", "max 100000\n");
  EXPECT_EQ(Limits().cpus, 0);
  Write("kubepods/pod1/cpu.max", "400000 100000\n");
  EXPECT_EQ(Limits().cpus, 4);
  Write("kubepods/pod1/box/cpu.max", "75000 50000\n");
  EXPECT_EQ(Limits().cpus, 1.5);
}

TEST_F(CgroupTest, Version1Cpu) {
  Write("self", "9:cpu,cpuacct:/docker/1a\n8:cpuset:/other\n");
  Write("cpu/docker/1a/cpu.cfs_quota_us", "-1\n");  // Unlimited.
  Write("cpu/docker/1a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Limits().cpus, 0);
  Write("cpu/cpu.cfs_quota_us", "250000\n");  // A container's view of its own group.
  EXPECT_EQ(Limits().cpus, 0) << "without a period it says nothing";
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Limits().cpus, 2.5);
}

TEST_F(CgroupTest, WithoutFilesThereIsNone) {
  EXPECT_EQ(Limit(), 0);
  EXPECT_EQ(Limits().cpus, 0);
  Write("self", "nonsense\n0:\n1:memory:relative\n");
  EXPECT_EQ(Limit(), 0);
}

TEST(UsableCoresTest, AGroupsLimitIsRoundedUp) {
  EXPECT_EQ(UsableCores({}, 64), 64);
  EXPECT_EQ(UsableCores({0, 4}, 64), 4);
  EXPECT_EQ(UsableCores({0, 2.5}, 64), 3);
  EXPECT_EQ(UsableCores({0, 0.1}, 64), 1);
  EXPECT_EQ(UsableCores({0, 100}, 64), 64) << "a limit above what there is is none";
  EXPECT_EQ(UsableCores({}, 0), 1) << "the number of cores is unknown";
}

}  // namespace
}  // namespace spillway::server
