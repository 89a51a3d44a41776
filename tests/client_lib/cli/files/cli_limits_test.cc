// Files without an end, files of one byte too many, and memory that is not there: a sentence and
// exit code 3 or 4, whichever command reads.
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::cli {
namespace {

using ::spillway::testing::ChildResult;
using ::spillway::testing::ExpectError;
using ::spillway::testing::kMnistPath;
using ::spillway::testing::kProgram;
using ::spillway::testing::RunChild;
using ::spillway::testing::Spillway;
using ::spillway::testing::TempDir;
using ::spillway::testing::Words;
using ::spillway::testing::operator+;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMiB = int64_t{1} << 20;

// With so much address space.
ChildResult Within(int64_t mib, const Words& words) {
  return RunChild(Words{"/bin/bash", "-c", absl::StrCat("ulimit -v ", mib * 1024, "; exec \"$@\""),
                        "sh", kProgram} +
                  words);
}

// Every place where a command reads a file, FILE, and its kind.
struct Place {
  Words words;
  std::string kind;
  int64_t max_bytes;
};

std::vector<Place> Places(const std::string& file, const TempDir& dir) {
  const std::string out = dir / "out.svg";
  const int64_t graph = INT32_MAX;
  return {
      {{"rewrite", file, "-o", out}, "a graph", graph},
      {{"strip", file, "-o", out}, "a graph", graph},
      {{"apply", dir / "plan", file, "-o", out}, "a graph", graph},
      {{"inspect", file}, "a graph", graph},
      {{"simulate", file}, "a graph", graph},
      {{"explore", file}, "a graph", graph},
      {{"anonymize", file, "-o", out}, "a graph", graph},
      {{"diff", kMnistPath, file}, "a graph", graph},
      {{"diff", file, kMnistPath}, "a graph", graph},
      {{"plot", file, "-o", out}, "a graph", graph},
      {{"check", file, dir / "empty"}, "a graph", graph},
      {{"check", kMnistPath, dir / "empty", "--original", file}, "a graph", graph},
      {{"run", "--graph", file, "--fail-closed", "--", "true"}, "a graph", graph},
      {{"apply", file, kMnistPath, "-o", out}, "a plan", 256 * kMiB},
      {{"simulate", kMnistPath, "--profile", file}, "a profile", 1024 * kMiB},
      {{"check", kMnistPath, file}, "a profile", 1024 * kMiB},
      {{"run", "--graph", kMnistPath, "--profile", file, "--fail-closed", "--", "true"},
       "a profile",
       1024 * kMiB},
      {{"stats", file}, "a journal", 2048 * kMiB},
  };
}

class CliLimitsTest : public ::testing::Test {
 protected:
  CliLimitsTest() {
    dir_.Write("empty", "");
    dir_.Write("plan", "{}");
  }

  // A file that takes no room, though it has so many bytes.
  std::string Sparse(const std::string& begin, int64_t bytes) const {
    const std::string path = dir_.Write("sparse", begin);
    std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes));
    return path;
  }

  const TempDir dir_;
};

TEST_F(CliLimitsTest, OneByteTooMany) {
  for (const Place& place : Places(dir_ / "sparse", dir_)) {
    const std::string file = Sparse("", place.max_bytes + 1);
    SCOPED_TRACE(::testing::PrintToString(place.words));
    ExpectError(Spillway(place.words), 3,
                {absl::StrCat("'", file, "' has more bytes than ", place.kind, " may have, ",
                              place.max_bytes, " ("),
                 "[LIMIT_EXCEEDED]"});
  }
}

TEST_F(CliLimitsTest, AsManyBytesAsThereMayBe) {
  const std::string file = Sparse("", 256 * kMiB);
  const ChildResult plan = Spillway({"apply", file, kMnistPath, "-o", dir_ / "out"});
  EXPECT_THAT(plan.err, HasSubstr("[BAD_PLAN]"));
}

// A plot takes reports, too, which begin as one.
TEST_F(CliLimitsTest, AReportHasALimitOfItsOwn) {
  const Words words = {"plot", Sparse(" {", 512 * kMiB + 1), "-o", dir_ / "out.svg"};
  ExpectError(Spillway(words), 3,
              {"has more bytes than a report may have, 536870912 (512.00 MiB)"});
}

TEST_F(CliLimitsTest, AFileWithoutAnEndInLittleMemory) {
  for (const Place& place : Places("/dev/zero", dir_)) {
    const ChildResult result = Within(600, place.words);
    SCOPED_TRACE(::testing::PrintToString(place.words) + result.err);
    EXPECT_EQ(result.signal, 0);
    EXPECT_THAT(result.exit_code, AnyOf(3, 4));
    EXPECT_THAT(result.err, StartsWith("spillway: "));
    EXPECT_THAT(result.err, AnyOf(HasSubstr("cannot read '/dev/zero': Cannot allocate memory; "),
                                  HasSubstr("'/dev/zero' has more bytes than " + place.kind)));
  }
  const ChildResult machine = Within(600, {"simulate", kMnistPath, "--hardware", "/dev/zero"});
  ExpectError(machine, 4, {"'/dev/zero'", "not a regular file"});
}

// From too little to load the program to enough: each failed allocation leads to a sentence.
TEST_F(CliLimitsTest, WhateverAllocationFails) {
  const std::string graph = std::string(kMnistPath);
  const std::vector<Words> commands = {
      {"rewrite", graph, "-o", dir_ / "out.pb", "--batch-size", "4096", "--quiet"},
      {"simulate", graph, "--batch-size", "4096", "--json"},
      {"plot", graph, "-o", dir_ / "out.svg", "--batch-size", "64"},
      {"inspect", graph, "--memory", "--batch-size", "64"},
      {"diff", graph, graph}};
  for (const Words& command : commands) {
    int failed = 0;
    for (int64_t mib = 20;; mib += 2) {
      ASSERT_LT(mib, 400);
      const ChildResult result = Within(mib, command);
      if (result.exit_code == 0) break;
      if (result.exit_code == 127) continue;  // The program was not loaded.
      ++failed;
      EXPECT_EQ(result.signal, 0) << mib << ::testing::PrintToString(command) << result.err;
      EXPECT_THAT(result.exit_code, AnyOf(3, 4)) << mib << result.err;
      EXPECT_THAT(result.err, HasSubstr("emory")) << mib;
    }
    EXPECT_GT(failed, 0) << ::testing::PrintToString(command);
  }
}

// In `run` it is a failure like others, of the child or of this process.
TEST_F(CliLimitsTest, TheCommandRunsNevertheless) {
  for (const Words& words :
       {Words{"--graph", "/dev/zero"}, Words{"--graph", kMnistPath, "--profile", "/dev/zero"}}) {
    const ChildResult result = Within(
        600, Words{"run", "--cache-dir", dir_ / "cache"} + words + Words{"--", "echo", "ran"});
    EXPECT_EQ(result.out, "ran\n") << result.err;
    EXPECT_THAT(result.err, HasSubstr("the command runs with the original graph: "));
    EXPECT_THAT(result.err, HasSubstr("'/dev/zero'"));
  }
}

}  // namespace
}  // namespace spillway::cli
