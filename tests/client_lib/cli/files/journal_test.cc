// Journals, as spillway stats reads and adds them up: small ones, written and summed up by hand,
// and damaged ones.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/files/journal_stats.h"
#include "client_lib/cli/print/stats_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/random.h"

namespace spillway::cli {
namespace {

using spillway::testing::Random;
using spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

// As a server of 2026 writes them, with what a later one may add.
const char kSwaps[] =
    R"({"time":"2026-11-24T08:00:00.250Z","id":"a","method":"StreamRewrite","strategy":"budget",)"
    R"("code":"OK","ms":12.5,"job":"17_3","user":"ann","queue":"gpu","model":"resnet",)"
    R"("outcome":"rewritten","machine":"p100_pcie","fit":"fits","swapped_tensors":14,)"
    R"("swap_out_bytes":3000,"swap_in_bytes":2000,"peak_before_bytes":9000,)"
    R"("peak_after_bytes":5000,"budget_bytes":6000,"need_bytes":5500,"host_peak_bytes":3100,)"
    R"("step_before_ns":100,"step_after_ns":120,"slowdown":1.2,)"
    R"("later":{"job":"no","deep":[1,{"time":1}]}})";
const char kSwapsMore[] =
    R"({"time":"2026-11-24T08:00:09Z","code":"OK","job":"18","user":"bob","model":"bert",)"
    R"("outcome":"rewritten","swapped_tensors":2,"swap_out_bytes":40000,"swap_in_bytes":40000,)"
    R"("peak_before_bytes":7000,"peak_after_bytes":6500,"host_peak_bytes":900,)"
    R"("step_before_ns":300,"step_after_ns":330})";
const char kFitsAsItCame[] =
    R"({"time":"2026-11-24T08:00:10Z","code":"OK","job":"18","user":"bob","model":"bert",)"
    R"("outcome":"nothing_to_do","peak_before_bytes":1,"peak_after_bytes":1,)"
    R"("step_before_ns":7,"step_after_ns":7})";
const char kDoesNotFit[] =
    R"({"time":"2026-11-24T09:00:00Z","code":"FAILED_PRECONDITION","reason":"DOES_NOT_FIT",)"
    R"("user":"ann","outcome":"does_not_fit","need_bytes":8000,"budget_bytes":6000})";
const char kFails[] =
    R"({"time":"2026-11-24T10:00:00+01:00","code":"INVALID_ARGUMENT","reason":"BAD_OPTION",)"
    R"("user":"ann"})";
const char kAsks[] = R"({"time":"2026-11-24T09:30:00Z","code":"OK","method":"Simulate"})";

std::vector<const JournalDimension*> Dimensions(const std::vector<std::string>& names) {
  std::vector<const JournalDimension*> dimensions;
  for (const std::string& name : names) {
    for (const JournalDimension& dimension : JournalDimensions()) {
      if (name == dimension.name) dimensions.push_back(&dimension);
    }
  }
  EXPECT_EQ(dimensions.size(), names.size());
  return dimensions;
}

JournalStats StatsOf(const std::vector<std::string>& lines,
                     const std::vector<std::string>& by = {"job", "user", "model"}) {
  JournalStats stats(Dimensions(by));
  for (const std::string& line : lines) {
    const auto entry = ParseJournalLine(line);
    EXPECT_TRUE(entry.has_value()) << line;
    if (entry) stats.Add(*entry);
  }
  return stats;
}

TEST(JournalLineTest, HasItsFields) {
  const auto entry = ParseJournalLine(kSwaps);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(absl::ToUnixMillis(entry->time), 1795507200250);  // date -u -d 2026-11-24T08 +%s
  EXPECT_EQ(entry->job, "17_3");
  EXPECT_EQ(entry->user, "ann");
  EXPECT_EQ(entry->queue, "gpu");
  EXPECT_EQ(entry->model, "resnet");
  EXPECT_EQ(entry->strategy, "budget");
  EXPECT_EQ(entry->machine, "p100_pcie");
  EXPECT_EQ(entry->swap_out_bytes, 3000);
  EXPECT_EQ(entry->step_after_ns, 120);
  EXPECT_EQ(entry->caller, "");
  EXPECT_FALSE(ParseJournalLine(kFails)->swap_out_bytes.has_value());
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
  // What it need not know may be as deep as it likes.
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
    if (!entry) continue;
    JournalStats stats(Dimensions({"job"}));
    stats.Add(*entry);
    EXPECT_EQ(stats.totals().requests, 1);
  }
}

TEST(JournalStatsTest, SumsAsByHand) {
  const JournalStats stats =
      StatsOf({kSwaps, kSwapsMore, kFitsAsItCame, kDoesNotFit, kFails, kAsks, kSwaps});
  const JournalSums& totals = stats.totals();
  EXPECT_EQ(totals.requests, 7);
  EXPECT_EQ(totals.rewritten, 3);
  EXPECT_EQ(totals.nothing_to_do, 1);
  EXPECT_EQ(totals.does_not_fit, 1);
  EXPECT_EQ(totals.failed, 1);
  EXPECT_EQ(totals.other(), 1);
  EXPECT_EQ(totals.swapping, 3);
  EXPECT_EQ(totals.swap_bytes, 2 * 5000 + 80000);
  EXPECT_EQ(totals.saved_bytes, 2 * 4000 + 500);
  EXPECT_EQ(totals.most_host_bytes, 3100);
  EXPECT_EQ(totals.step_before_ns, 2 * 100 + 300);
  EXPECT_EQ(totals.step_after_ns, 2 * 120 + 330);
  EXPECT_DOUBLE_EQ(*totals.slowdown(), 1.14);
  EXPECT_EQ(SlowdownText(totals), "14 % slower");
  EXPECT_EQ(totals.need_bytes, 8000);
  EXPECT_EQ(totals.need_budget_bytes, 6000);
  EXPECT_EQ(absl::FormatTime("%H:%M:%S", stats.first(), absl::UTCTimeZone()), "08:00:00");
  EXPECT_EQ(absl::FormatTime("%H:%M:%S", stats.last(), absl::UTCTimeZone()), "09:30:00");

  const std::vector<NamedSums> jobs = stats.BySwapBytes(0);
  ASSERT_THAT(jobs, SizeIs(3));
  EXPECT_EQ(jobs[0].first, "18");
  EXPECT_EQ(jobs[0].second.requests, 2);
  EXPECT_EQ(jobs[1].first, "17_3");
  EXPECT_EQ(jobs[1].second.swap_bytes, 10000);
  EXPECT_EQ(jobs[2].first, "(not given)");
  EXPECT_EQ(jobs[2].second.requests, 3);
  const std::vector<NamedSums> misfits = stats.ByDoesNotFit(1);
  ASSERT_THAT(misfits, SizeIs(1));
  EXPECT_EQ(misfits[0].first, "ann");
}

TEST(JournalStatsTest, TiesAreInOrderOfTheirNames) {
  JournalEntry entry = *ParseJournalLine(kSwaps);
  JournalStats stats(Dimensions({"job"}));
  for (const char* job : {"b", "c", "a"}) {
    entry.job = job;
    stats.Add(entry);
  }
  std::vector<std::string> names;
  for (const NamedSums& named : stats.BySwapBytes(0)) names.push_back(named.first);
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST(JournalStatsTest, SumsThatAreTooLargeStayTheLargest) {
  JournalEntry entry = *ParseJournalLine(kSwaps);
  entry.swap_out_bytes = std::numeric_limits<int64_t>::max();
  entry.swap_in_bytes = std::numeric_limits<int64_t>::max();
  JournalStats stats(Dimensions({"job"}));
  for (int i = 0; i < 3; ++i) stats.Add(entry);
  EXPECT_EQ(stats.totals().swap_bytes, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(stats.totals().requests, 3);
}

TEST(JournalStatsTest, NamesAreBounded) {
  JournalEntry entry = *ParseJournalLine(kSwaps);
  JournalStats stats(Dimensions({"job"}));
  const int64_t count = static_cast<int64_t>(kMaxJournalNames) + 500;
  for (int64_t i = 0; i < count; ++i) {
    entry.job = absl::StrCat("job-", i);
    stats.Add(entry);
  }
  const std::vector<NamedSums> jobs = stats.BySwapBytes(0);
  EXPECT_EQ(jobs.size(), kMaxJournalNames + 1);
  EXPECT_EQ(jobs[0].first, kOtherNames);  // Together they swap most.
  EXPECT_EQ(jobs[0].second.requests, 500);
  EXPECT_EQ(stats.totals().requests, count);
}

TEST(JournalTimelineTest, ColumnsHoldEveryLine) {
  for (const int64_t step_s : {0, 1, 7, 60, 3600, 86400, 100'000'000}) {
    JournalTimeline timeline;
    JournalEntry entry = *ParseJournalLine(kSwaps);
    for (int i = 0; i < 5000; ++i) {
      entry.time = absl::FromUnixSeconds(1'000'000'000 + i * std::min<int64_t>(step_s, 50'000'000));
      timeline.Add(entry);
    }
    const JournalTimeline::Columns columns = timeline.In(150);
    EXPECT_LE(columns.columns.size(), 150u) << step_s;
    int64_t requests = 0;
    for (const JournalSums& sums : columns.columns) requests += sums.requests;
    EXPECT_EQ(requests, 5000) << step_s;
    EXPECT_LE(columns.start_s, 1'000'000'000);
    EXPECT_GT(columns.start_s + columns.width_s, 1'000'000'000);
    EXPECT_GT(columns.columns.back().requests, 0);
  }
  EXPECT_THAT(JournalTimeline().In(10).columns, IsEmpty());
}

std::vector<std::string> JobsIn(JournalReader* reader) {
  std::vector<std::string> jobs;
  EXPECT_TRUE(reader->Read([&](const JournalEntry& entry) { jobs.push_back(entry.job); }).ok());
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
  EXPECT_EQ(reader->damaged().count, 0);
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
  EXPECT_EQ(reader->damaged().count, 4);
  EXPECT_EQ(reader->damaged().file, path);
  EXPECT_EQ(reader->damaged().line, 3);
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
  EXPECT_EQ(reader->damaged().line, 2);
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
    EXPECT_EQ(reader->damaged().count, rest && !whole_line ? 1 : 0) << size;
  }
}

TEST(JournalReaderTest, WhatCannotBeReadIsNamed) {
  const TempDir dir;
  for (const std::string& path : {dir / "nothing", dir / ""}) {
    const auto reader = JournalReader::Open({path}, {});
    ASSERT_FALSE(reader.ok());
    EXPECT_THAT(std::string(reader.status().message()),
                AllOf(HasSubstr(path), HasSubstr("spillwayd --journal")));
  }
}

TEST(StatsTextTest, MovesNoTerminal) {
  JournalEntry entry = *ParseJournalLine(kSwaps);
  entry.job = "a\x1b[2J\x9b\nb\xe2\x80\xae";
  JournalStats stats(Dimensions({"job"}));
  stats.Add(entry);
  const std::string text = StatsText(stats, 10, text::Style());
  EXPECT_THAT(text, AllOf(HasSubstr("a?[2J??b???"), Not(HasSubstr("\x1b"))));
  const auto json = nlohmann::json::parse(StatsJson(stats, DamagedLines(), 10));
  EXPECT_EQ(json["by"]["job"].size(), 1u);
  EXPECT_EQ(json["totals"]["swap_bytes_per_step"], 5000);
}

TEST(StatsTextTest, AnEmptyJournalSaysSo) {
  const JournalStats stats(Dimensions({"job"}));
  EXPECT_EQ(StatsText(stats, 10, text::Style()), "the journal has no request of that time\n");
  const auto json = nlohmann::json::parse(StatsJson(stats, DamagedLines(), 10));
  EXPECT_EQ(json["totals"]["requests"], 0);
  EXPECT_EQ(json.count("first"), 0u);
}

TEST(StatsTextTest, ShowsTheTopAndSaysWhatIsLeftOut) {
  const JournalStats stats = StatsOf({kSwaps, kSwapsMore, kDoesNotFit}, {"user"});
  EXPECT_THAT(
      StatsText(stats, 1, text::Style()),
      AllOf(HasSubstr("\n  bob"), HasSubstr("and 1 more"), HasSubstr("what does not fit\n")));
  EXPECT_THAT(StatsText(stats, 2, text::Style()),
              AllOf(HasSubstr("\n  ann"), Not(HasSubstr("more"))));
}

}  // namespace
}  // namespace spillway::cli
