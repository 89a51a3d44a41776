// The findings of `spillway doctor`, and its text about missing things.
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_server.h"

namespace spillway::cli {
namespace {

using ::spillway::testing::ChildResult;
using ::spillway::testing::Spillway;
using ::spillway::testing::TempDir;
using ::spillway::testing::TestServer;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// With nothing in PATH but these programs, as shell scripts.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() : path_(getenv("PATH")) { setenv("PATH", (dir_ / "").c_str(), 1); }
  ~DoctorTest() override { setenv("PATH", path_.c_str(), 1); }

  void Install(const char* program, const std::string& script) {
    const std::string file = dir_.Write(program, absl::StrCat("#!/bin/sh\n", script, "\n"));
    ASSERT_EQ(chmod(file.c_str(), 0700), 0);
  }

  const std::string path_;
  const TempDir dir_;
};

TEST_F(DoctorTest, WithNothingThereEachLineSaysWhatToDo) {
  const ChildResult result = Spillway({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("  GPU        not known: no nvidia-smi here identifies the GPU\n"),
            HasSubstr(" p100_pcie is assumed: name the one that trains with --hardware "),
            ContainsRegex("  host rate  [0-9.]+ GB/s; .* --host-mem-bytes-per-s [0-9.]+e9\n"),
            HasSubstr("none in PATH answers"), HasSubstr("give --server HOST:PORT")));
}

TEST_F(DoctorTest, GpusThatAreNoMachineThatIsKnown) {
  Install("nvidia-smi",
          "case $1 in *=name) echo NVIDIA H200; echo NVIDIA L4;; *=memory*) echo 143771, 9.0; echo "
          "23034, 8.9;; *) echo;; esac");
  EXPECT_THAT(Spillway({"doctor"}).out,
              AllOf(HasSubstr(" NVIDIA H200 and NVIDIA L4\n"),
                    HasSubstr("20.31 GiB of 22.49 GiB on the smallest for TensorFlow\n"),
                    HasSubstr(" p100_pcie is assumed, as there is no preset for several kinds of "
                              "GPUs: name")));
  Install("nvidia-smi", "echo \"NVIDIA-SMI couldn't find libnvidia-ml.so.\"; exit 12");
  EXPECT_THAT(Spillway({"doctor"}).out,
              AllOf(HasSubstr("not known: nvidia-smi failed: NVIDIA-SMI couldn't find "
                              "libnvidia-ml.so\n"),
                    HasSubstr(" not known: give --gpu-memory-bytes\n"),
                    HasSubstr(" p100_pcie is assumed: name")));
}

TEST_F(DoctorTest, WhatIsThere) {
  Install("nvidia-smi",
          "case $1 in *=name) echo NVIDIA L4;; *=memory*) echo 23034, 8.9;; *=driver*) echo "
          "550.54.15;; *) echo GPU-1, [N/A], 4, 16;; esac");
  Install("python3", "echo /usr/bin/python3; echo 2.15.1; echo -; echo found");
  const TestServer server;
  const ChildResult result = Spillway({"doctor", "--server", server.target()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("NVIDIA L4\n"), HasSubstr("20.31 GiB of 22.49 GiB for TensorFlow\n"),
                    HasSubstr("550.54.15\n"), HasSubstr(" l4\n"), HasSubstr(" 2.15.1\n"),
                    HasSubstr("not in this Python; pip install its wheel"),
                    HasSubstr("found by the loader\n"), HasSubstr(" SERVING\n")));
  const ChildResult gone =
      Spillway({"doctor", "--server", "127.0.0.1:1", "--retries", "0", "--timeout", "2s"});
  EXPECT_EQ(gone.exit_code, 1) << gone.err;
  EXPECT_THAT(gone.out, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace spillway::cli
