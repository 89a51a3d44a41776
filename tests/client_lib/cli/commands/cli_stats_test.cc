// `spillway stats` as people run it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

ChildResult Stats(std::vector<std::string> words, const std::string& input = "") {
  words.insert(words.begin(), {SPILLWAY_BIN_DIR "/spillway", "stats"});
  return RunChild(words, input);
}

int64_t SwapBytes(const ChildResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json["totals"]["swap_bytes_per_step"].get<int64_t>() : -1;
}

TEST(CliStatsTest, PrintsWhoSwaps) {
  const TempDir dir;
  const ChildResult result = Stats({dir.Write("j", ThreeJobs() + "broken\n")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("3: 3 rewritten"), HasSubstr("by job\n"),
                                HasSubstr("by user\n"), HasSubstr("by model\n")));
  EXPECT_LT(result.out.find("third"), result.out.find("second"));
  EXPECT_EQ(result.err, absl::StrCat("spillway: 1 line passed over, cut off or of no journal; the "
                                     "first is line 4 of '",
                                     dir / "j", "'\n"));
  const ChildResult queues = Stats({dir / "j", "--by", "queue"});
  EXPECT_THAT(queues.out, AllOf(HasSubstr("by queue\n"), Not(HasSubstr("by job"))));
}

TEST(CliStatsTest, LooksAtATime) {
  const TempDir dir;
  const std::string journal = dir.Write("j", ThreeJobs());
  EXPECT_EQ(SwapBytes(Stats({journal, "--json"})), 642);
  EXPECT_EQ(SwapBytes(Stats({journal, "--json", "--since", "2026-11-24T09:00:00Z"})), 640);
  EXPECT_EQ(SwapBytes(Stats({journal, "--json", "--until", "2026-11-24T10:00:00+01:00"})), 42);
  EXPECT_EQ(SwapBytes(Stats({journal, "--json", "--since", "3h"})), 640);
  EXPECT_EQ(SwapBytes(Stats({journal, "--json", "--since", "1d"})), 642);
  EXPECT_EQ(SwapBytes(Stats({journal, "--json", "--since", "3h", "--until", "90m"})), 40);
  EXPECT_THAT(Stats({journal, "--since", "2027-01-01T00:00:00Z"}).out, HasSubstr("no request"));
}

// Twice, where the newest line has to be found first: from a pipe, too.
TEST(CliStatsTest, ReadsStandardInput) {
  EXPECT_EQ(SwapBytes(Stats({"-", "--json"}, ThreeJobs())), 642);
  EXPECT_EQ(SwapBytes(Stats({"-", "--json", "--since", "3h"}, ThreeJobs())), 640);
  const ChildResult empty = Stats({"-"});
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_EQ(empty.out, "the journal has no request of that time\n");
  EXPECT_EQ(empty.err, "");
}

TEST(CliStatsTest, Draws) {
  const TempDir dir;
  const std::string journal = dir.Write("journal.jsonl", ThreeJobs());
  const ChildResult both = Stats({dir / "", "--plot", dir / "p.svg"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("by job"));
  EXPECT_THAT(ReadFile(dir / "p.svg"), AllOf(StartsWith("<?xml"), HasSubstr("third: 600 B")));
  const ChildResult page = Stats({journal, "--plot", dir / "p.html", "--theme", "dark"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(ReadFile(dir / "p.html"), StartsWith("<!DOCTYPE html>"));
  const ChildResult alone = Stats({journal, "--plot", "-"});
  EXPECT_THAT(alone.out, AllOf(StartsWith("<?xml"), Not(HasSubstr("by job\n"))));
  const ChildResult over = Stats({dir.Write("j.svg", ThreeJobs()), "--plot", dir / "j.svg"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.err, HasSubstr("would overwrite the journal"));
  EXPECT_EQ(ReadFile(dir / "j.svg"), ThreeJobs());
}

}  // namespace
}  // namespace spillway::testing
