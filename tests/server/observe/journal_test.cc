#include "server/observe/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "server/observe/journal_file.h"
#include "tests/server/http_get.h"
#include "tests/server/test_client.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

mode_t ModeOf(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

class JournalFileTest : public testing::Test {
 protected:
  JournalFileTest() { EXPECT_EQ(mkdir(folder_.c_str(), 0755), 0); }

  absl::StatusOr<std::unique_ptr<JournalFile>> Open(int64_t file_bytes = 1 << 20, int files = 8) {
    return JournalFile::Open({folder_, file_bytes, files}, [this] { return now_; });
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Current() const { return ReadAll(Path("journal.jsonl")); }
  // Except the lock.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != "journal.lock") names.push_back(name);
    }
    return names;
  }

  const test_certs::TempFolder parent_;
  const std::string folder_ = parent_.path("journal");
  absl::Time now_ = absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12, 0, 0), absl::UTCTimeZone()) +
                    absl::Milliseconds(7);
};

TEST_F(JournalFileTest, AppendsAlsoAfterARestart) {
  for (const char* line : {"one", "two"}) {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_TRUE((*journal)->Append(line).ok());
  }
  EXPECT_EQ(Current(), "one\ntwo\n");
}

TEST_F(JournalFileTest, TheGroupMayReadAndNobodyElseWhateverTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{077}}) {
    std::filesystem::remove(Path("journal.jsonl"));
    const mode_t before = umask(mask);
    auto journal = Open();
    umask(before);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(ModeOf(Path("journal.jsonl")), 0640u);
  }
}

TEST_F(JournalFileTest, FullFilesAreNamedByTimeAndTheOldestGoes) {
  std::ofstream(Path("journal-of-somebody.jsonl")) << "not ours";
  auto journal = Open(/*file_bytes=*/9, /*files=*/3);  // Room for one line.
  ASSERT_TRUE(journal.ok()) << journal.status();
  for (const char* line : {"line-1", "line-2", "line-3"}) {
    EXPECT_TRUE((*journal)->Append(line).ok());
  }
  EXPECT_EQ(ReadAll(Path("journal-20260131T120000.007Z.jsonl")), "line-1\n");
  EXPECT_EQ(ReadAll(Path("journal-20260131T120000.008Z.jsonl")), "line-2\n")
      << "in the same millisecond, and yet behind it";
  now_ += absl::Hours(12);
  EXPECT_TRUE((*journal)->Append("line-4").ok());
  now_ -= absl::Hours(24);  // A clock that is set back makes no file old.
  EXPECT_TRUE((*journal)->Append("line-5").ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("journal.jsonl", "journal-20260201T000000.007Z.jsonl",
                                            "journal-20260201T000000.008Z.jsonl",
                                            "journal-of-somebody.jsonl"));
  EXPECT_EQ(ReadAll(Path("journal-20260201T000000.007Z.jsonl")), "line-3\n");
  EXPECT_EQ(ReadAll(Path("journal-20260201T000000.008Z.jsonl")), "line-4\n");
  EXPECT_EQ(Current(), "line-5\n");
  EXPECT_EQ(ModeOf(Path("journal.jsonl")), 0640u) << "also of those made later";
}

TEST_F(JournalFileTest, ALineIsNeverSplitBetweenFiles) {
  auto journal = Open(/*file_bytes=*/12);
  ASSERT_TRUE(journal.ok()) << journal.status();
  for (const char* line : {"12345", "12345", "longer than a file", "1"}) {
    EXPECT_TRUE((*journal)->Append(line).ok());
  }
  EXPECT_EQ(ReadAll(Path("journal-20260131T120000.007Z.jsonl")), "12345\n12345\n");
  EXPECT_EQ(ReadAll(Path("journal-20260131T120000.008Z.jsonl")), "longer than a file\n");
  EXPECT_EQ(Current(), "1\n");
}

TEST_F(JournalFileTest, OneFileStartsAnew) {
  auto journal = Open(/*file_bytes=*/9, /*files=*/1);
  ASSERT_TRUE(journal.ok()) << journal.status();
  for (const char* line : {"line-1", "line-2"}) EXPECT_TRUE((*journal)->Append(line).ok());
  EXPECT_THAT(Files(), ElementsAre("journal.jsonl"));
  EXPECT_EQ(Current(), "line-2\n");
}

TEST_F(JournalFileTest, ALineTornByACrashSpoilsNoOther) {
  std::ofstream(Path("journal.jsonl")) << "whole\nha";
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_TRUE((*journal)->Append("next").ok());
  EXPECT_TRUE((*journal)->Append("last").ok());
  EXPECT_EQ(Current(), "whole\nha\nnext\nlast\n");
}

// A file may not grow beyond a limit, so that a write is truncated, as on a full disk.
TEST_F(JournalFileTest, WhatDoesNotFitOnTheDiskLeavesNothingBehind) {
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  const std::string line(99, 'x');
  ASSERT_TRUE((*journal)->Append(line).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 250;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status fits = (*journal)->Append(line);
  const absl::Status full = (*journal)->Append(line);
  const absl::Status short_one = (*journal)->Append("short");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(fits.ok()) << fits;
  EXPECT_THAT(full.message(), AllOf(HasSubstr(Path("journal.jsonl")), HasSubstr("File too large")));
  EXPECT_TRUE(short_one.ok()) << short_one;
  EXPECT_TRUE((*journal)->Append(line).ok());
  EXPECT_EQ(Current(), line + "\n" + line + "\nshort\n" + line + "\n");
}

TEST_F(JournalFileTest, AFileThatWasMovedIsMadeAnew) {
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_TRUE((*journal)->Append("one").ok());
  ASSERT_EQ(rename(Path("journal.jsonl").c_str(), Path("elsewhere").c_str()), 0);
  EXPECT_TRUE((*journal)->Append("two").ok());
  std::filesystem::remove(Path("journal.jsonl"));
  EXPECT_TRUE((*journal)->Append("three").ok());
  EXPECT_EQ(ReadAll(Path("elsewhere")), "one\n");
  EXPECT_EQ(Current(), "three\n");
}

TEST_F(JournalFileTest, AFolderThatIsGoneLosesLinesUntilItIsBack) {
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  std::filesystem::remove_all(folder_);
  const absl::Status gone = (*journal)->Append("lost");
  EXPECT_THAT(gone.message(), AllOf(HasSubstr(folder_), HasSubstr("No such file")));
  ASSERT_EQ(mkdir(folder_.c_str(), 0755), 0);
  EXPECT_TRUE((*journal)->Append("kept").ok());
  EXPECT_EQ(Current(), "kept\n");
  EXPECT_FALSE(Open().ok()) << "the new folder is locked, too";
}

TEST_F(JournalFileTest, TwoServersDoNotShareAFolder) {
  {
    auto first = Open();
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_THAT(Open().status().message(),
                AllOf(HasSubstr("another server"), HasSubstr(folder_), HasSubstr("--journal")));
    EXPECT_TRUE(JournalFile::Check(folder_).ok()) << "beside a server that runs";
  }
  EXPECT_TRUE(Open().ok()) << "the lock ends with its server";
}

TEST_F(JournalFileTest, WritesThroughNoLinkAndWaitsAtNoPipe) {
  std::ofstream(parent_.path("victim")) << "untouched";
  for (const char* name : {"journal.lock", "journal.jsonl"}) {
    ASSERT_EQ(symlink(parent_.path("victim").c_str(), Path(name).c_str()), 0);
    EXPECT_THAT(Open().status().message(), HasSubstr(Path(name)));
    std::filesystem::remove(Path(name));
  }
  ASSERT_EQ(mkfifo(Path("journal.jsonl").c_str(), 0600), 0);
  EXPECT_THAT(Open().status().message(), HasSubstr("not a regular file"));
  std::filesystem::remove(Path("journal.jsonl"));
  std::filesystem::create_directory(Path("journal.jsonl"));
  EXPECT_THAT(Open().status().message(), HasSubstr(Path("journal.jsonl")));
  EXPECT_EQ(ReadAll(parent_.path("victim")), "untouched");
}

TEST_F(JournalFileTest, TheFolderMustBeThere) {
  std::ofstream(parent_.path("file")) << "x";
  for (const std::string& folder : {parent_.path("none"), parent_.path("file")}) {
    for (const absl::Status& status :
         {JournalFile::Open({folder, 1 << 20, 8}).status(), JournalFile::Check(folder)}) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_THAT(status.message(), AllOf(HasSubstr(folder), HasSubstr("--journal")));
    }
  }
  EXPECT_TRUE(JournalFile::Check(folder_).ok());
  EXPECT_THAT(Files(), IsEmpty()) << "to look makes nothing";
}

// absl::Notification for the thread sanitizer, which cannot see into Debian's build.
class Event {
 public:
  void Notify() {
    const std::lock_guard lock(mu_);
    happened_ = true;
    changed_.notify_all();
  }
  void WaitForNotification() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return happened_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool happened_ = false;
};

// A disk that may be slow, or full.
class FakeSink : public JournalSink {
 public:
  struct State {
    Event entered, released;
    bool blocks = false;
    int failures = 0;  // This many of the next lines fail.
    std::mutex mu;
    std::vector<std::string> lines;
  };
  explicit FakeSink(State* state) : state_(*state) {}

  absl::Status Append(absl::string_view line) override {
    state_.entered.Notify();
    if (state_.blocks) state_.released.WaitForNotification();
    if (state_.failures > 0) {
      --state_.failures;
      return absl::UnavailableError("No space left on device");
    }
    const std::lock_guard lock(state_.mu);
    state_.lines.emplace_back(line);
    return absl::OkStatus();
  }

 private:
  State& state_;
};

class JournalTest : public testing::Test {
 protected:
  void Start(int64_t queued_bytes = Journal::kQueuedBytes) {
    journal_ =
        std::make_unique<Journal>(std::make_unique<FakeSink>(&disk_), metrics_, queued_bytes);
  }
  double Value(const std::string& series) const {
    return Sample(prometheus::TextSerializer().Serialize(registry_.Collect()), series);
  }
  double Written() const { return Value("spillway_journal_lines_total"); }
  double Lost() const { return Value("spillway_journal_lost_lines_total"); }

  prometheus::Registry registry_;
  Metrics metrics_{registry_, "test"};
  FakeSink::State disk_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, LinesComeInTheirOrderAndAreFlushedAtTheEnd) {
  Start();
  EXPECT_EQ(Written(), 0);
  EXPECT_EQ(Lost(), 0);
  for (const char* line : {"one", "two", "three"}) journal_->Write(line);
  EXPECT_TRUE(journal_->Close(kPatience));
  EXPECT_THAT(disk_.lines, ElementsAre("one", "two", "three"));
  EXPECT_EQ(Written(), 3);
  EXPECT_EQ(Lost(), 0);
  journal_->Write("after the end");
  EXPECT_EQ(Lost(), 1);
  EXPECT_THAT(disk_.lines, ElementsAre("one", "two", "three"));
}

TEST_F(JournalTest, ADiskThatIsFullLosesLinesAndNoMore) {
  disk_.failures = 2;
  Start();
  for (const char* line : {"one", "two", "three"}) journal_->Write(line);
  EXPECT_TRUE(journal_->Close(kPatience));
  EXPECT_THAT(disk_.lines, ElementsAre("three"));
  EXPECT_EQ(Written(), 1);
  EXPECT_EQ(Lost(), 2);
}

TEST_F(JournalTest, NobodyWaitsForADiskThatIsSlow) {
  disk_.blocks = true;
  Start(/*queued_bytes=*/10);
  journal_->Write("1111");
  disk_.entered.WaitForNotification();  // It has reached the disk and left the queue.
  for (const char* line : {"2222", "3333", "4444", "5555"}) journal_->Write(line);
  EXPECT_EQ(Lost(), 2) << "the queue has room for two";
  disk_.released.Notify();
  EXPECT_TRUE(journal_->Close(kPatience));
  EXPECT_THAT(disk_.lines, ElementsAre("1111", "2222", "3333"));
  EXPECT_EQ(Written(), 3);
}

TEST_F(JournalTest, TheEndDoesNotWaitForeverEither) {
  disk_.blocks = true;
  Start();
  for (const char* line : {"one", "two", "three"}) journal_->Write(line);
  disk_.entered.WaitForNotification();
  EXPECT_FALSE(journal_->Close(absl::Milliseconds(1)));
  EXPECT_EQ(Lost(), 2) << "one is at the disk";
  disk_.released.Notify();
  journal_.reset();
  EXPECT_THAT(disk_.lines, ElementsAre("one"));
  EXPECT_EQ(Written(), 1);
}

}  // namespace
}  // namespace spillway::server
