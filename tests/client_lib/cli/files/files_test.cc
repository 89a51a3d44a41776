// Reading the input and writing the outputs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/cli/flags/file_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::cli {
namespace {

using spillway::testing::ReadFile;
using spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status WriteAll(const std::string& path, const std::string& bytes) {
  auto file = OutputFile::Create(path, CancellationToken());
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Write(bytes); !status.ok()) return status;
  return (*file)->Commit();
}

// An error that names the path and says what to do.
void ExpectFileError(const absl::Status& status, const std::string& path) {
  EXPECT_TRUE(IsFileError(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr("; ")));
}

TEST(InputFileTest, ReadsAFileAndAPipe) {
  const TempDir dir;
  std::string bytes(10 << 20, 'x');
  bytes[5] = '\0';
  const auto file = ReadInput(dir.Write("in", bytes), CancellationToken());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(*file == bytes);

  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << bytes; });
  const auto pipe = ReadInput(fifo, CancellationToken());
  writer.join();
  ASSERT_TRUE(pipe.ok()) << pipe.status();
  EXPECT_TRUE(*pipe == bytes);
}

TEST(InputFileTest, WhatCannotBeReadIsNamed) {
  const TempDir dir;
  for (const std::string& path : {dir / "missing", dir / ""}) {
    ExpectFileError(ReadInput(path, CancellationToken()).status(), path);
  }
  const auto empty = ReadInput(dir.Write("empty", ""), CancellationToken());
  EXPECT_EQ(core::GetErrorReason(empty.status()), v1::ERROR_REASON_EMPTY_GRAPH);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr(dir / "empty"));
}

TEST(InputFileTest, APipeFromWhichNothingComesCanBeCancelled) {
  const TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  CancellationToken token;
  std::thread canceller([&token] { token.Cancel(); });
  const auto bytes = ReadInput(fifo, token);
  canceller.join();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kCancelled);
}

TEST(OutputFileTest, AppearsWholeAndOnlyWithCommit) {
  const TempDir dir;
  const std::string path = dir.Write("out", "old");
  {
    auto file = OutputFile::Create(path, CancellationToken());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE((*file)->direct());
    ASSERT_TRUE((*file)->Write("new").ok());
    EXPECT_EQ(ReadFile(path), "old");
    ASSERT_TRUE((*file)->Commit().ok());
    EXPECT_EQ(ReadFile(path), "new");
  }
  EXPECT_THAT(dir.Names(), ElementsAre("out"));
}

TEST(OutputFileTest, WithoutCommitNothingIsLeft) {
  const TempDir dir;
  {
    auto file = OutputFile::Create(dir / "out", CancellationToken());
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write("new").ok());
  }
  EXPECT_THAT(dir.Names(), IsEmpty());
}

TEST(OutputFileTest, KeepsTheModeOfAnOldFileAndFollowsTheUmaskForANewOne) {
  const TempDir dir;
  const std::string old_path = dir.Write("old", "x");
  chmod(old_path.c_str(), 0640);
  const mode_t mask = umask(027);
  ASSERT_TRUE(WriteAll(old_path, "y").ok());
  ASSERT_TRUE(WriteAll(dir / "new", "y").ok());
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(old_path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640);
  ASSERT_EQ(stat((dir / "new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640);
}

TEST(OutputFileTest, FollowsALink) {
  const TempDir dir;
  const std::string target = dir.Write("target", "old");
  std::filesystem::create_symlink(target, dir / "link");
  ASSERT_TRUE(WriteAll(dir / "link", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(ReadFile(target), "new");
}

TEST(OutputFileTest, WhatCannotBeWrittenIsNamedAtOnce) {
  const TempDir dir;
  for (const std::string& path : {dir / "missing/out", dir / ""}) {
    ExpectFileError(OutputFile::Create(path, CancellationToken()).status(), path);
  }
  EXPECT_THAT(dir.Names(), IsEmpty());
}

TEST(OutputFileTest, AFullDeviceIsAnError) {
  ExpectFileError(WriteAll("/dev/full", "x"), "/dev/full");
  EXPECT_TRUE(WriteAll("/dev/null", std::string(1 << 20, 'x')).ok());
}

TEST(OutputFileTest, ANameOfTheGreatestLengthFits) {
  const TempDir dir;
  const std::string name(255, 'n');
  EXPECT_TRUE(WriteAll(dir / name, "x").ok());
  EXPECT_THAT(dir.Names(), ElementsAre(name));
}

TEST(OutputFileTest, APipeThatNobodyReadsCanBeCancelled) {
  const TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  CancellationToken token;
  auto file = OutputFile::Create(fifo, token);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->direct());
  std::thread canceller([&token] { token.Cancel(); });
  // More than a pipe holds.
  const absl::Status status = (*file)->Write(std::string(4 << 20, 'x'));
  canceller.join();
  close(reader);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(InputTest, ANameIsStandardInputAFileOrTheFolderOfASavedModel) {
  const TempDir dir;
  EXPECT_TRUE(InputPath::Graph("-").is_standard_input());
  const InputPath file = InputPath::Graph(dir.Write("a", "x"));
  EXPECT_FALSE(file.is_standard_input() || file.is_folder());
  EXPECT_EQ(file.path(), dir / "a");
  EXPECT_EQ(file.Folder() + "/a", dir / "a");
  EXPECT_EQ(InputPath("a").Folder(), ".");

  const std::string folder = dir / "model";
  std::filesystem::create_directory(folder);
  EXPECT_TRUE(InputPath::Graph(folder).is_folder());
  EXPECT_EQ(InputPath::Graph(folder).path(), folder);
  dir.Write("model/saved_model.pbtxt", "x");
  EXPECT_EQ(InputPath::Graph(folder).path(), folder + "/saved_model.pbtxt");
  dir.Write("model/saved_model.pb", "x");
  EXPECT_EQ(InputPath::Graph(folder).path(), folder + "/saved_model.pb");
  EXPECT_EQ(InputPath::Graph(folder).name(), folder);
  // Another input than a graph is never looked for in a folder.
  EXPECT_EQ(InputPath(folder).path(), folder);
}

TEST(SameFileTest, OneFileByManyNames) {
  const TempDir dir;
  const std::string path = dir.Write("a", "x");
  std::filesystem::create_hard_link(path, dir / "hard");
  std::filesystem::create_symlink(path, dir / "soft");
  EXPECT_TRUE(SameFile(path, dir / "./a"));
  EXPECT_TRUE(SameFile(path, dir / "hard"));
  EXPECT_TRUE(SameFile(path, dir / "soft"));
  EXPECT_TRUE(SameFile(dir / "new", dir / "./new"));
  EXPECT_TRUE(SameFile(OutputPath("no-such-file"), OutputPath("./no-such-file")));
  EXPECT_FALSE(SameFile(path, dir / "b"));
  EXPECT_FALSE(SameFile(OutputPath("-"), OutputPath("-")));
}

TEST(CheckFilesTest, OutputsMustDiffer) {
  const TempDir dir;
  const auto check = [&dir](const char* out, const char* report, const char* patch,
                            const char* plan = "") {
    const auto path = [&dir](const std::string& name) {
      return name.empty() || name == "-" ? name : dir / name;
    };
    return CheckFiles({dir / "in", path(out), path(report), path(patch), path(plan), OutputPath()},
                      /*dry_run=*/false);
  };
  EXPECT_TRUE(check("out", "report", "patch").ok());
  EXPECT_TRUE(check("", "report", "").ok());
  EXPECT_TRUE(check("-", "report", "").ok());
  EXPECT_TRUE(check("out", "-", "").ok());
  EXPECT_TRUE(check("", "", "", "plan").ok());
  EXPECT_EQ(core::GetErrorReason(check("", "", "")), v1::ERROR_REASON_BAD_OPTION);
  for (const absl::Status& status :
       {check("in", "", ""), check("out", "in", ""), check("out", "out", ""),
        check("out", "r", "./r"), check("-", "-", ""), check("out", "-", "-"),
        check("", "", "", "in"), check("out", "", "", "out"), check("", "-", "", "-")}) {
    EXPECT_EQ(core::GetErrorReason(status), v1::ERROR_REASON_CONFLICTING_OPTIONS) << status;
  }
}

}  // namespace
}  // namespace spillway::cli
