// What nvidia-smi says becomes the budget, and nothing that it does stops a command.
#include "client_lib/cli/flags/gpu_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client_lib/internal/program_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/temp_dir.h"

namespace spillway::cli {
namespace {

using ::spillway::internal::Deadline;
using ::spillway::internal::kReapTime;
using ::spillway::internal::OutputOf;
using ::spillway::internal::UsableBytes;
using ::spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;
// Enough for a script on a busy machine, and what a test waits for one that hangs.
constexpr absl::Duration kEnough = absl::Seconds(30);
constexpr absl::Duration kSoon = absl::Milliseconds(300);

// A folder in front of PATH for one test.
class GpuMemoryTest : public ::testing::Test {
 protected:
  GpuMemoryTest() : path_(getenv("PATH")) { SetPath(absl::StrCat(dir_ / "", ":", path_)); }
  ~GpuMemoryTest() override { SetPath(path_); }

  static void SetPath(const std::string& path) { setenv("PATH", path.c_str(), 1); }

  // An nvidia-smi that is this script.
  void NvidiaSmi(const std::string& script) {
    const std::string file = dir_.Write("nvidia-smi", absl::StrCat("#!/bin/sh\n", script, "\n"));
    ASSERT_EQ(chmod(file.c_str(), 0700), 0);
  }

  // What options without any memory become.
  v1::Hardware Filled(absl::Duration limit = kEnough) {
    v1::RewriteOptions options;
    line_ = FillGpuMemory(limit, &options);
    EXPECT_EQ(line_.empty(), !options.step().has_hardware());
    return options.step().hardware();
  }

  const std::string path_;
  const TempDir dir_;
  std::string line_;
};

TEST_F(GpuMemoryTest, TheSmallestGpuIsTheBudget) {
  NvidiaSmi("echo '40960, 8.0'; echo '16280, 6.0'; echo '32480, 7.0'");
  const v1::Hardware hardware = Filled();
  EXPECT_EQ(hardware.gpu_memory_bytes(), UsableBytes(16280 * kMiB, 6));
  EXPECT_EQ(hardware.gpu_memory_source(), v1::MEMORY_SOURCE_NVIDIA_SMI);
  EXPECT_THAT(line_, AllOf(HasSubstr("from nvidia-smi"), HasSubstr("15.90 GiB"),
                           HasSubstr("the least of 3 GPUs"), HasSubstr("--gpu-memory-bytes"),
                           Not(HasSubstr("\n"))));
}

TEST_F(GpuMemoryTest, ItIsAskedInItsOwnWords) {
  NvidiaSmi(absl::StrCat("echo \"$*\" > ", dir_ / "asked", "; echo 16280, 6.0"));
  EXPECT_TRUE(Filled().has_gpu_memory_bytes());
  std::ifstream asked(dir_ / "asked");
  std::string words;
  std::getline(asked, words);
  EXPECT_EQ(words, "--query-gpu=memory.total,compute_cap --format=csv,noheader,nounits");
}

TEST_F(GpuMemoryTest, AnOldDriverDoesNotKnowTheCapability) {
  NvidiaSmi(
      "case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit "
      "2;; esac; echo 16280");
  EXPECT_EQ(Filled().gpu_memory_bytes(), UsableBytes(16280 * kMiB, 0));
  EXPECT_THAT(line_, Not(HasSubstr("least")));
}

// As nvidia-smi does it without a driver, without a GPU, and others of its name.
TEST_F(GpuMemoryTest, WhatIsNoAnswerLeavesThePreset) {
  for (const char* script : {
           "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
           "driver.\"; exit 9",
           "echo 16280, 6.0; exit 1",
           "echo 'No devices were found'",
           "exit 0",
           "echo '[N/A], 12.1'",
           "echo 16280, 6.0; echo '[Unknown Error], 6.0'",
           "echo 0, 6.0",
           "echo -5, 6.0",
           "echo 99999999999999999999, 6.0",
           "echo 9007199254740992, 6.0",
           "echo 500, 6.0",  // Nothing is left of it.
           "printf '\\000\\377\\n'",
           "yes 16280, 6.0",  // Without end.
           "kill -SEGV $$",
       }) {
    NvidiaSmi(script);
    EXPECT_FALSE(Filled().has_gpu_memory_bytes()) << script;
    EXPECT_THAT(line_, IsEmpty()) << script;
  }
}

TEST_F(GpuMemoryTest, NoProgramLeavesThePreset) {
  SetPath(dir_ / "");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  SetPath("");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  unsetenv("PATH");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
}

// A file without #! is for a shell, which is not asked; nor is what lies in a relative folder.
TEST_F(GpuMemoryTest, NoShellAndNoRelativeFolder) {
  NvidiaSmi("");
  dir_.Write("nvidia-smi", "echo 16280, 6.0\n");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  NvidiaSmi("echo 16280, 6.0");
  EXPECT_TRUE(Filled().has_gpu_memory_bytes());
  char* folder = getcwd(nullptr, 0);
  ASSERT_EQ(chdir((dir_ / "").c_str()), 0);
  for (const char* path : {".", "", ":."}) {
    SetPath(path);
    EXPECT_FALSE(Filled().has_gpu_memory_bytes()) << path;
  }
  EXPECT_EQ(chdir(folder), 0);
  free(folder);
}

// The pipe stays open for reading here; its other end closes when the last process of the script
// is gone.
TEST_F(GpuMemoryTest, OneThatHangsIsKilledWithAllThatItStarted) {
  const std::string alive = dir_ / "live";
  ASSERT_EQ(mkfifo(alive.c_str(), 0600), 0);
  for (const char* how : {"sleep 1000", "echo 16280, 6.0; sleep 1000", "exec 1>&-; sleep 1000",
                          "trap '' TERM INT HUP; while true; do sleep 1000; done"}) {
    const int fd = open(alive.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    NvidiaSmi(absl::StrCat("exec 9> ", alive, "; printf x >&9; ", how));
    const absl::Time start = absl::Now();
    EXPECT_FALSE(Filled(kSoon).has_gpu_memory_bytes()) << how;
    EXPECT_LT(absl::Now() - start, kSoon + kReapTime + kEnough) << how;
    char started = 0;
    EXPECT_EQ(read(fd, &started, 1), 1) << how;  // Or it would not be known to have hung.
    pollfd gone = {fd, 0, 0};
    EXPECT_EQ(poll(&gone, 1, static_cast<int>(absl::ToInt64Milliseconds(kEnough))), 1) << how;
    EXPECT_NE(gone.revents & POLLHUP, 0) << how;
    close(fd);
  }
}

TEST_F(GpuMemoryTest, ItIsNotAskedWhereTheMemoryIsKnownOrOfNoUse) {
  NvidiaSmi(absl::StrCat("echo asked > ", dir_ / "asked", "; echo 16280, 6.0"));
  const auto expect_not_asked = [this](v1::RewriteOptions options) {
    const std::string before = options.DebugString();
    EXPECT_EQ(FillGpuMemory(kEnough, &options), "");
    EXPECT_EQ(options.DebugString(), before);
    EXPECT_THAT(dir_.Names(), ::testing::ElementsAre("nvidia-smi")) << before;
  };
  v1::RewriteOptions rewrite;
  rewrite.mutable_step()->mutable_hardware()->set_preset("v100_pcie");
  expect_not_asked(rewrite);
  rewrite.mutable_step()->mutable_hardware()->Clear();
  rewrite.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(1);
  expect_not_asked(rewrite);
  rewrite.Clear();
  rewrite.mutable_strip();
  expect_not_asked(rewrite);
  rewrite.mutable_scope();
  rewrite.set_simulation(v1::SIMULATION_OFF);
  expect_not_asked(rewrite);
  v1::Step step;
  v1::SimulateOptions unlimited;
  unlimited.set_no_budget(true);
  EXPECT_EQ(*FillHardware(kEnough, &unlimited), "");
  EXPECT_FALSE(unlimited.step().has_hardware());
  step.mutable_hardware()->set_preset("v100_pcie");
  EXPECT_EQ(FillGpuMemory(kEnough, &step), "");
  EXPECT_FALSE(step.hardware().has_gpu_memory_bytes());
  EXPECT_THAT(dir_.Names(), ::testing::ElementsAre("nvidia-smi"));
  // The tuner needs it also where nothing is to be simulated; other numbers say nothing of memory.
  rewrite.mutable_level();
  EXPECT_NE(FillGpuMemory(kEnough, &rewrite), "");
  step.Clear();
  step.mutable_hardware()->set_launch_s(0);
  EXPECT_NE(FillGpuMemory(kEnough, &step), "");
  EXPECT_TRUE(step.hardware().has_launch_s());
}

// What TensorFlow said that it has, in logs that users published ("Created device ... with N MB
// memory"), beside what nvidia-smi says of such a board, with older and newer drivers.
TEST(UsableBytesTest, IsWhatTensorFlowFoundOnRealGpusOrALittleLess) {
  constexpr struct {
    const char* gpu;
    int64_t total_mib;
    int major;
    int64_t found_mib;
  } kLogs[] = {
      {"P100-PCIE-16GB, TensorFlow 1", 16280, 6, 15216},
      {"V100-SXM2-32GB, TensorFlow 1", 32480, 7, 30458},
      {"T4", 15109, 7, 13737},
      {"T4", 15360, 7, 13737},
      {"A100-SXM4-40GB, the least of several logs", 40536, 8, 38068},
      {"A100-SXM4-40GB, the least of several logs", 40960, 8, 38068},
  };
  for (const auto& log : kLogs) {
    const int64_t usable = UsableBytes(log.total_mib * kMiB, log.major);
    EXPECT_LE(usable, log.found_mib * kMiB) << log.gpu;
    EXPECT_GE(usable, log.found_mib * kMiB * 0.95) << log.gpu;
  }
}

TEST(UsableBytesTest, TensorFlowKeepsSoMuch) {
  // 2 GiB less 700 MiB is below 2 GiB: 225 MiB.
  EXPECT_EQ(UsableBytes(2048 * kMiB, 8), (2048 - 700 - 225) * kMiB);
  // A twentieth of it is less than each of these.
  EXPECT_EQ(UsableBytes(8192 * kMiB, 6), (8192 - 700 - 500) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 7), (8192 - 700 - 1050) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 8), (8192 - 700 - 1536) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 9), (8192 - 700 - 1800) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 0), UsableBytes(8192 * kMiB, 8));
  // A fortieth to the driver, and then a twentieth.
  EXPECT_EQ(UsableBytes(80000 * kMiB, 9), (80000 - 2000 - 3900) * kMiB);
}

TEST(OutputOfTest, ReturnsWhatAProgramPrintsUnlessItFails) {
  const Deadline deadline(kEnough);
  EXPECT_EQ(OutputOf({"printf", "%s|", "a b", "$HOME", "*"}, deadline), "a b|$HOME|*|");
  EXPECT_EQ(OutputOf({"cat"}, deadline), "");  // There is no input.
  EXPECT_EQ(OutputOf({"false"}, deadline), absl::nullopt);
  EXPECT_EQ(OutputOf({"no-such-program"}, deadline), absl::nullopt);
}

}  // namespace
}  // namespace spillway::cli
