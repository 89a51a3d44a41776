// Journals, as spillway stats reads them: small ones and damaged ones.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/journal_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/random.h"

namespace spillway::cli {
namespace {

using spillway::testing::Random;
using spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As a server of 2026 writes them, with fields of a later one.
const char kSwaps[] =
    R"({"time":"2026-11-24T08:00:00.250Z","id":"a","method":"StreamRewrite","strategy":"budget",)"
    R"("code":"OK","ms":12.5,"job":"17_3","user":"ann","queue":"gpu","model":"resnet",)"
    R"("outcome":"rewritten","machine":"p100_pcie","fit":"fits","swapped_tensors":14,)"
    R"("swap_out_bytes":3000,"swap_in_bytes":2000,"peak_before_bytes":9000,)"
    R"("peak_after_bytes":5000,"budget_bytes":6000,"need_bytes":5500,"host_peak_bytes":3100,)"
    R"("step_before_ns":100,"step_after_ns":120,"slowdown":1.2,)"
    R"("later":{"job":"no","deep":[1,{"time":1}]}})";
const char kDoesNotFit[] =
    R"({"time":"2026-11-24T09:00:00Z","code":"FAILED_PRECONDITION","reason":"DOES_NOT_FIT",)"
    R"("user":"ann","outcome":"does_not_fit","need_bytes":8000,"budget_bytes":6000})";
const char kFails[] =
    R"({"time":"2026-11-24T10:00:00+01:00","code":"INVALID_ARGUMENT","reason":"BAD_OPTION",)"
    R"("user":"ann"})";
const char kAsks[] = R"({"time":"2026-11-24T09:30:00Z","code":"OK","method":"Simulate"})";

TEST(JournalLineTest, HasItsFields) {
  const auto entry = ParseJournalLine(kSwaps);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(absl::ToUnixMillis(entry->time), 1795507200250);  // date -u -d 2026-11-24T08 +%s
  EXPECT_EQ(entry->Text("job"), "17_3");
  EXPECT_EQ(entry->Text("user"), "ann");
  EXPECT_EQ(entry->Text("queue"), "gpu");
  EXPECT_EQ(entry->Text("model"), "resnet");
  EXPECT_EQ(entry->Text("strategy"), "budget");
  EXPECT_EQ(entry->Text("machine"), "p100_pcie");
  EXPECT_EQ(entry->Number("swap_out_bytes"), 3000);
  EXPECT_EQ(entry->Number("step_after_ns"), 120);
  EXPECT_EQ(entry->Text("caller"), "");
  EXPECT_FALSE(ParseJournalLine(kFails)->Number("swap_out_bytes").has_value());
  // Servers write no longer names.
  EXPECT_EQ(ParseJournalLine(absl::StrCat(R"({"time":"2026-11-24T08:00:00Z","job":")",
                                          std::string(5000, 'x'), "\"}"))
                ->Text("job"),
            std::string(128, 'x'));
}

TEST(JournalLineTest, AnythingElseIsNone) {
  const std::string good = R"({"time":"2026-11-24T08:00:00Z"})";
  EXPECT_TRUE(ParseJournalLine(good).has_value());
  for (const std::string& line : std::vector<std::string>{
           "",
           " ",
           "{}",
           "[]",
           "1",
           "null",
           "\"time\"",
           "[" + good + "]",
           good + good,
           good + "x",
           "x" + good,
           R"({"time":"yesterday"})",
           R"({"time":"infinite-future"})",
           R"({"time":1})",
           R"({"time":null})",
           R"({"time":{"time":"2026-11-24T08:00:00Z"}})",
           R"({"time":["2026-11-24T08:00:00Z"]})",
           R"({"time":"1969-12-31T23:59:59Z"})",
           R"({"time":"12026-11-24T08:00:00Z"})",
           R"({"x":{"time":"2026-11-24T08:00:00Z"}})",
           R"({"time":"2026-11-24T08:00:00Z","job":17})",
           R"({"time":"2026-11-24T08:00:00Z","job":["a"]})",
           R"({"time":"2026-11-24T08:00:00Z","swap_out_bytes":"3"})",
           R"({"time":"2026-11-24T08:00:00Z","swap_out_bytes":-3})",
           R"({"time":"2026-11-24T08:00:00Z","swap_out_bytes":3.5})",
           R"({"time":"2026-11-24T08:00:00Z","swap_out_bytes":9223372036854775808})",
           std::string("{\"time\":\"2026-11-24T08:00:00Z\",\"job\":\"\xff\"}"),
           std::string(100'000, '['),
           std::string(100'000, '{')}) {
    EXPECT_FALSE(ParseJournalLine(line).has_value()) << line.substr(0, 100);
  }
  // Unknown fields may have any depth.
  EXPECT_TRUE(
      ParseJournalLine(absl::StrCat(R"({"time":"2026-11-24T08:00:00Z","x":)",
                                    std::string(50'000, '['), std::string(50'000, ']'), "}"))
          .has_value());
}

TEST(JournalLineTest, CutOrChangedAnywhereItIsReadOrNot) {
  const std::string line = kSwaps;
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(ParseJournalLine(line.substr(0, size)).has_value()) << size;
  }
  Random random(21);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = line;
    for (int k = random.Below(4); k >= 0; --k) {
      changed[random.Below(static_cast<int>(changed.size()))] =
          static_cast<char>(random.Below(256));
    }
    const auto entry = ParseJournalLine(changed);
    if (entry.has_value()) {
      EXPECT_GE(entry->Number("swap_out_bytes").value_or(0), 0);
    }
  }
}

std::vector<std::string> JobsIn(JournalReader* reader) {
  std::vector<std::string> jobs;
  EXPECT_TRUE(
      reader->Read([&](const JournalEntry& entry) { jobs.push_back(entry.Text("job")); }).ok());
  return jobs;
}

std::string LineOf(const std::string& job) {
  return absl::StrCat(R"({"time":"2026-11-24T08:00:00Z","job":")", job, "\"}\n");
}

TEST(JournalReaderTest, ReadsFoldersOldestFirstAndNothingTwice) {
  const TempDir dir;
  dir.Write("journal.jsonl", LineOf("new"));
  dir.Write("journal-20261124T080000-1.jsonl", LineOf("old"));
  dir.Write("journal-20261125T080000-1.jsonl", LineOf("middle"));
  dir.Write("notes.txt", "no journal\n");
  auto reader = JournalReader::Open({dir / "", dir / "journal.jsonl", dir / "./journal.jsonl"}, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(JobsIn(&*reader), ElementsAre("old", "middle", "new"));
  EXPECT_THAT(JobsIn(&*reader), ElementsAre("old", "middle", "new"));  // From the beginning.
  EXPECT_EQ(reader->damage().count, 0);
}

TEST(JournalReaderTest, PassesOverWhatIsDamagedAndSaysWhere) {
  const TempDir dir;
  // Two good ones, an empty one, three damaged ones, and one that was cut off.
  const std::string path = dir.Write(
      "j", absl::StrCat(LineOf("a"), "\n", "garbage\n", std::string(3 << 20, 'x'), "\n",
                        std::string("\0\x1b[2J\n", 6), LineOf("b"), LineOf("c").substr(0, 20)));
  auto reader = JournalReader::Open({path}, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(JobsIn(&*reader), ElementsAre("a", "b"));
  EXPECT_EQ(reader->damage().count, 4);
  EXPECT_EQ(reader->damage().first, absl::StrCat("line 3 of '", path, "'"));
}

TEST(JournalReaderTest, ALineMayBeAsLongAsTheBound) {
  const TempDir dir;
  const auto line_of_size = [](size_t size) {
    const std::string begin = R"({"time":"2026-11-24T08:00:00Z","job":"long","x":")", end = "\"}";
    return begin + std::string(size - begin.size() - end.size(), 'x') + end;
  };
  const std::string path = dir.Write("j", absl::StrCat(line_of_size(kMaxJournalLine), "\n",
                                                       line_of_size(kMaxJournalLine + 1), "\n"));
  auto reader = JournalReader::Open({path}, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(JobsIn(&*reader), ElementsAre("long"));
  EXPECT_EQ(reader->damage().first, absl::StrCat("line 2 of '", path, "'"));
}

// However a file ends, all whole lines before are read, and at most one is damaged.
TEST(JournalReaderTest, CutAtEveryByte) {
  const TempDir dir;
  const std::string whole = absl::StrCat(kSwaps, "\n", kDoesNotFit, "\n", kAsks, "\n");
  for (size_t size = 0; size <= whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    auto reader = JournalReader::Open({dir.Write("j", cut)}, {});
    ASSERT_TRUE(reader.ok());
    const size_t ends = static_cast<size_t>(std::count(cut.begin(), cut.end(), '\n'));
    // A line is whole without its end, too.
    const bool whole_line = size < whole.size() && whole[size] == '\n';
    const bool rest = !cut.empty() && cut.back() != '\n';
    EXPECT_EQ(JobsIn(&*reader).size(), ends + (whole_line ? 1 : 0)) << size;
    EXPECT_EQ(reader->damage().count, rest && !whole_line ? 1 : 0) << size;
  }
}

TEST(JournalReaderTest, WhatCannotBeReadIsNamed) {
  const TempDir dir;
  for (const std::string& path : {dir / "nothing", dir / ""}) {
    auto reader = JournalReader::Open({path}, {});
    const absl::Status status =
        reader.ok() ? reader->Read([](const JournalEntry&) {}) : reader.status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(path), HasSubstr("spillwayd --journal")));
  }
}

}  // namespace
}  // namespace spillway::cli
