// `spillway stats` as people run it.
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/cli_json.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string SwapLine(const char* time, const char* job, int bytes) {
  return absl::StrCat(R"({"time":")", time, R"(","code":"OK","outcome":"rewritten","job":")", job,
                      R"(","queue":"q","swapped_tensors":1,"swap_out_bytes":)", bytes,
                      R"(,"swap_in_bytes":)", bytes, "}\n");
}

// Three jobs: at 8, at 9 and at 12 o'clock.
std::string ThreeJobs() {
  return absl::StrCat(SwapLine("2026-11-24T08:00:00Z", "first", 1),
                      SwapLine("2026-11-24T09:00:00Z", "second", 20),
                      SwapLine("2026-11-24T12:00:00Z", "third", 300));
}

ChildResult Stats(const Words& words, const std::string& input = "") {
  return Spillway(Words{"stats"} + words, input);
}

nlohmann::json Json(const Words& words, const std::string& input = "") {
  return Parsed(Done(Words{"stats", "--json"} + words, input).out);
}

int64_t SwapBytes(const Words& words, const std::string& input = "") {
  return Json(words, input)["totals"]["swap_bytes_per_step"].get<int64_t>();
}

std::vector<std::string> Names(const nlohmann::json& json) {
  std::vector<std::string> names;
  for (const auto& row : json["rows"]) names.push_back(row["name"]);
  return names;
}

TEST(CliStatsTest, PrintsWhoSwaps) {
  const TempDir dir;
  const ChildResult result = Stats({dir.Write("j", ThreeJobs() + "broken\n")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(
      result.out,
      "2026-11-24T08:00:00.000Z to 2026-11-24T12:00:00.000Z\n"
      "  job     requests  swapping  per step  slow-down  saved  host memory  no fit  failed\n"
      "  third          1         1     600 B          -      -            -       0       0\n"
      "  second         1         1      40 B          -      -            -       0       0\n"
      "  first          1         1       2 B          -      -            -       0       0\n"
      "  all            3         3     642 B          -      -            -       0       0\n");
  EXPECT_EQ(result.err, absl::StrCat("spillway: 1 line skipped, damaged or not of a journal; the "
                                     "first is line 4 of '",
                                     dir / "j", "'\n"));
  const ChildResult queues = Stats({dir / "j", "--by", "queue"});
  EXPECT_THAT(queues.out,
              AllOf(HasSubstr("\n  queue "), HasSubstr("\n  q "), Not(HasSubstr("third"))));
}

// As a server of 2026 writes them.
constexpr char kSwaps[] =
    R"({"time":"2026-11-24T08:00:00.250Z","strategy":"budget","code":"OK","job":"17_3",)"
    R"("user":"ann","model":"resnet","outcome":"rewritten","machine":"p100_pcie",)"
    R"("swapped_tensors":14,"swap_out_bytes":3000,"swap_in_bytes":2000,"peak_before_bytes":9000,)"
    R"("peak_after_bytes":5000,"host_peak_bytes":3100,"step_before_ns":100,"step_after_ns":120})"
    "\n";
constexpr char kSwapsMore[] =
    R"({"time":"2026-11-24T08:00:09Z","code":"OK","job":"18","user":"bob","model":"bert",)"
    R"("outcome":"rewritten","swapped_tensors":2,"swap_out_bytes":40000,"swap_in_bytes":40000,)"
    R"("peak_before_bytes":7000,"peak_after_bytes":6500,"host_peak_bytes":900,)"
    R"("step_before_ns":300,"step_after_ns":330})"
    "\n";
constexpr char kNothingToDo[] =
    R"({"time":"2026-11-24T08:00:10Z","code":"OK","job":"18","user":"bob","model":"bert",)"
    R"("outcome":"nothing_to_do","peak_before_bytes":1,"peak_after_bytes":1,)"
    R"("step_before_ns":7,"step_after_ns":7})"
    "\n";
constexpr char kDoesNotFit[] =
    R"({"time":"2026-11-24T09:00:00Z","code":"FAILED_PRECONDITION","reason":"DOES_NOT_FIT",)"
    R"("user":"ann","outcome":"does_not_fit","need_bytes":8000,"budget_bytes":6000})"
    "\n";
constexpr char kFails[] =
    R"({"time":"2026-11-24T10:00:00+01:00","code":"INVALID_ARGUMENT","reason":"BAD_OPTION",)"
    R"("user":"ann"})"
    "\n";
constexpr char kAsks[] = R"({"time":"2026-11-24T09:30:00Z","code":"OK","method":"Simulate"})"
                         "\n";

TEST(CliStatsTest, SumsAsByHand) {
  const std::string journal =
      absl::StrCat(kSwaps, kSwapsMore, kNothingToDo, kDoesNotFit, kFails, kAsks, kSwaps);
  const auto json = Json({"-"}, journal);
  EXPECT_EQ(json["first"], "2026-11-24T08:00:00.250Z");
  EXPECT_EQ(json["last"], "2026-11-24T09:30:00.000Z");
  EXPECT_EQ(json["damaged_lines"], 0);
  const auto& totals = json["totals"];
  EXPECT_EQ(totals["requests"], 7);
  EXPECT_EQ(totals["swapping"], 3);
  EXPECT_EQ(totals["swap_bytes_per_step"], 2 * 5000 + 80000);
  EXPECT_DOUBLE_EQ(totals["slowdown"], (2 * 120 + 330) / (2 * 100 + 300.0));
  EXPECT_EQ(totals["saved_bytes"], 2 * 4000 + 500);
  EXPECT_EQ(totals["max_host_bytes"], 3100);
  EXPECT_EQ(totals["does_not_fit"], 1);
  EXPECT_EQ(totals["failed"], 1);
  EXPECT_THAT(Names(json), ElementsAre("18", "17_3", "(not given)"));
  EXPECT_EQ(json["rows"][0]["requests"], 2);
  EXPECT_EQ(json["rows"][1]["swap_bytes_per_step"], 10000);
  EXPECT_EQ(json["rows"][2]["requests"], 3);
  EXPECT_THAT(Names(Json({"-", "--by", "strategy"}, journal)),
              ElementsAre("(not given)", "budget"));
  EXPECT_THAT(Names(Json({"-", "--by", "machine"}, journal)),
              ElementsAre("(not given)", "p100_pcie"));
}

// Planned swaps of jobs count as done, and a column has the number of those that were only planned.
TEST(CliStatsTest, DryRunsCountAsWhatTheyWouldDo) {
  const std::string dry = absl::StrReplaceAll(SwapLine("2026-11-24T08:00:00Z", "looking", 50),
                                              {{"rewritten", "dry_run"}});
  const std::string journal = dry + dry + SwapLine("2026-11-24T09:00:00Z", "swapping", 1);
  const auto json = Json({"-"}, journal);
  EXPECT_EQ(json["totals"]["dry_runs"], 2);
  EXPECT_EQ(json["totals"]["swapping"], 3);
  EXPECT_EQ(json["totals"]["swap_bytes_per_step"], 202);
  EXPECT_EQ(Stats({"-"}, journal).out,
            "2026-11-24T08:00:00.000Z to 2026-11-24T09:00:00.000Z\n"
            "  job       requests  dry  swapping  per step  slow-down  saved  host memory  no fit  "
            "failed\n"
            "  looking          2    2         2     200 B          -      -            -       0  "
            "     0\n"
            "  swapping         1    0         1       2 B          -      -            -       0  "
            "     0\n"
            "  all              3    2         3     202 B          -      -            -       0  "
            "     0\n");
}

// Unknown is neither 0 nor 0 B.
TEST(CliStatsTest, UnknownValuesAreDashesAndNull) {
  const std::string journal = absl::StrCat(
      R"({"time":"2026-11-24T08:00:00Z","code":"OK","outcome":"rewritten","job":"blind",)",
      R"("swapped_tensors":1,"peak_before_bytes":7,"step_before_ns":7})", "\n", kNothingToDo);
  const ChildResult result = Stats({"-"}, journal);
  EXPECT_THAT(result.out, AllOf(HasSubstr("blind"), Not(HasSubstr("0 B"))));
  const auto json = Json({"-"}, journal);
  for (const auto& row : {json["rows"][0], json["rows"][1], json["totals"]}) {
    for (const char* key : {"swap_bytes_per_step", "slowdown", "saved_bytes", "max_host_bytes"}) {
      EXPECT_TRUE(row.contains(key) && row[key].is_null()) << row << key;
    }
  }
  const auto empty = Json({"-"});
  EXPECT_TRUE(empty["first"].is_null() && empty["totals"]["saved_bytes"].is_null());
  EXPECT_EQ(empty["totals"]["requests"], 0);
}

TEST(CliStatsTest, TiesAreInOrderOfTheirNamesAndTheRestIsCounted) {
  const std::string journal = absl::StrCat(SwapLine("2026-11-24T08:00:00Z", "b", 1),
                                           SwapLine("2026-11-24T08:00:00Z", "c", 1),
                                           SwapLine("2026-11-24T08:00:00Z", "a", 1));
  EXPECT_THAT(Names(Json({"-"}, journal)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(
      Stats({"-", "--top", "2"}, journal).out,
      AllOf(HasSubstr("\n  b "), Not(HasSubstr("\n  c ")), HasSubstr("  and 1 more (--top)\n")));
  EXPECT_THAT(Stats({"-", "--top", "3"}, journal).out, Not(HasSubstr("more")));
}

TEST(CliStatsTest, SumsThatAreTooLargeStayTheLargest) {
  std::string journal;
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&journal,
                    R"({"time":"2026-11-24T08:00:00Z","code":"OK","outcome":"rewritten",)",
                    R"("swapped_tensors":1,"swap_out_bytes":9223372036854775807,"swap_in_bytes":)",
                    "9223372036854775807}\n");
  }
  const auto totals = Json({"-"}, journal)["totals"];
  EXPECT_EQ(totals["swap_bytes_per_step"], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(totals["requests"], 3);
}

TEST(CliStatsTest, NamesAreBounded) {
  std::string journal;
  for (int i = 0; i < 100'500; ++i) {
    absl::StrAppend(&journal, R"({"time":"2026-11-24T08:00:00Z","code":"OK","job":"j)", i, "\"}\n");
  }
  journal += SwapLine("2026-11-24T08:00:00Z", "late", 1);
  const auto json = Json({"-", "--top", "1"}, journal);
  EXPECT_EQ(json["names"], 100'001);
  EXPECT_THAT(Names(json), ElementsAre("(all others)"));
  EXPECT_EQ(json["rows"][0]["requests"], 501);
  EXPECT_EQ(json["totals"]["requests"], 100'501);
}

TEST(CliStatsTest, MovesNoTerminal) {
  const std::string journal = absl::StrCat(
      R"({"time":"2026-11-24T08:00:00Z","job":"a\u001b[2J\u009b\nb)", "\xe2\x80\xae", "\"}\n");
  EXPECT_THAT(Stats({"-"}, journal).out,
              AllOf(HasSubstr("  a\\x1b[2J\\...2\\x80\\xae  "), Not(HasSubstr("\x1b"))));
  const ChildResult json = Stats({"-", "--json"}, journal);
  EXPECT_THAT(json.out, AllOf(HasSubstr("\\u001b"), Not(HasSubstr("\x1b"))));
  // A name is truncated in the middle of a character.
  std::string cut = R"({"time":"2026-11-24T08:00:00Z","job":"x)";
  for (int i = 0; i < 100; ++i) cut += "\xe2\x80\xae";
  EXPECT_EQ(Json({"-"}, cut + "\"}\n")["totals"]["requests"], 1);
}

TEST(CliStatsTest, LooksAtATime) {
  const TempDir dir;
  const std::string journal = dir.Write("j", ThreeJobs());
  EXPECT_EQ(SwapBytes({journal}), 642);
  EXPECT_EQ(SwapBytes({journal, "--since", "2026-11-24T09:00:00Z"}), 640);
  EXPECT_EQ(SwapBytes({journal, "--until", "2026-11-24T10:00:00+01:00"}), 42);
  EXPECT_EQ(SwapBytes({journal, "--since", "3h"}), 640);
  EXPECT_EQ(SwapBytes({journal, "--since", "1d"}), 642);
  EXPECT_EQ(SwapBytes({journal, "--since", "3h", "--until", "90m"}), 40);
  EXPECT_THAT(Stats({journal, "--since", "2027-01-01T00:00:00Z"}).out, HasSubstr("no request"));
}

// Twice, where the newest line has to be found first: from a pipe, too.
TEST(CliStatsTest, ReadsStandardInput) {
  EXPECT_EQ(SwapBytes({"-"}, ThreeJobs()), 642);
  EXPECT_EQ(SwapBytes({"-", "--since", "3h"}, ThreeJobs()), 640);
  const ChildResult empty = Stats({"-"});
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_EQ(empty.out, "the journal has no request of that time\n");
  EXPECT_EQ(empty.err, "");
}

}  // namespace
}  // namespace spillway::testing
