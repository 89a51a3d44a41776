// Reports of the strategy `level` as texts.
#include "client_lib/text/level_text.h"

#include <sstream>
#include <string>

#include "client_lib/text/summary.h"
#include "client_lib/text/text_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::RewriteReport LevelReport(const std::string& text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report)) << text;
  return report;
}

std::string Facts(const std::string& text) {
  const v1::RewriteReport report = LevelReport(text);
  std::vector<std::vector<std::string>> facts = LevelFacts(report);
  for (const v1::LevelDevice& device : report.level().devices()) AddLevelSetting(device, &facts);
  return FormatFacts(facts);
}

TEST(LevelTextTest, OneGpuTuned) {
  EXPECT_EQ(FormatDetails(LevelReport(R"pb(
              outcome: OUTCOME_REWRITTEN
              summary: "3 tensors will be swapped."
              strategy: STRATEGY_LEVEL
              node_count_before: 1000
              node_count_after: 1008
              hardware { hardware { preset: "p100_pcie" } }
              devices {
                swapped_tensor_count: 3
                swap_out_count: 3
                swap_in_count: 5
                swap_out_bytes: 3221225472
                swap_in_bytes: 5368709120
              }
              level {
                level_count: 457
                edge_count: 2000
                unleveled_op_count: 12
                inactive_op_count: 1
                serialized_level_count: 2
                serialization_edge_count: 31
                devices {
                  swapout_threshold: 120
                  swapin_ahead: 4
                  swapin_groupby: 0
                  sync_mode: 0
                  tuning { setting_count: 412 fitting_setting_count: 87 exhaustive: true }
                }
              }
              fits {
                budget_bytes: 16106127360
                budget_source: MEMORY_SOURCE_PRESET
                unswapped_peak_bytes: 17716740096
                step_time_ns: 905000000
                synchronous_step_time_ns: 950000000
                peak_bytes: 15032385536
                full_speed_step_time_ns: 814500000
              }
            )pb")),
            R"(spillway: rewritten (strategy level)
  3 tensors will be swapped.
  device        tensors  swap-outs  swap-ins  out per step  in per step
  (none given)        3          3         5      3.00 GiB     5.00 GiB
  graph       1000 nodes, 2000 edges, 457 levels; 12 nodes without a level, behind loops; 1 node
              left alone, in another mode or in loops
  serialized  2 levels, with 31 control edges
  added       8 nodes (3 swap-outs (3.00 GiB) and 5 swap-ins (5.00 GiB))
  setting     swapout_threshold 120, swapin_ahead 4, swapin_groupby 0, sync_mode 0: nothing waits
              for copies
  search      412 settings simulated (all that differ), 87 fitting
  budget      15.00 GiB, from the preset p100_pcie
  unswapped   16.50 GiB at the peak, 1.50 GiB more than the budget
  simulated   905 ms (90% of full speed), 950 ms synchronously, 14.00 GiB at the peak
  nodes       1000 -> 1008 (+8)
)");
}

TEST(LevelTextTest, SaysThatAPlanIsPaced) {
  EXPECT_THAT(Facts("level { paced: true devices {} }"),
              HasSubstr("paced    ops launched after a swap-in's trigger wait for the"));
  EXPECT_THAT(Facts("level { devices {} }"), Not(HasSubstr("paced")));
}

// Not swapped although it would fit: a threshold was given.
TEST(LevelTextTest, ASettingMayBeGiven) {
  EXPECT_THAT(
      Facts("level { devices { swapout_threshold: 1 swapin_groupby: 3 sync_mode: 2 } }"),
      AllOf(HasSubstr("swapout_threshold 1, swapin_groupby 3, sync_mode 2: a swap-in waits "
                      "for the other inputs\n"),
            HasSubstr("(all as given)"), Not(HasSubstr("ahead")), Not(HasSubstr("budget"))));
  EXPECT_THAT(Facts("level { devices { swapout_threshold: 1 tuning {} } }"),
              Not(HasSubstr("as given")));
}

TEST(LevelTextTest, EverySyncModeHasItsWords) {
  std::set<std::string> texts;
  for (const char* mode : {"0", "1", "2", "3"}) {
    std::string text = Facts(std::string("level { devices { sync_mode: ") + mode + " } }");
    text = text.substr(text.find(std::string("sync_mode ") + mode) + 11);
    EXPECT_GT(text.size(), 20) << mode;
    EXPECT_TRUE(texts.insert(text).second) << mode;
  }
  // That of a newer server.
  EXPECT_THAT(Facts("level { devices { sync_mode: 4 } }"), HasSubstr("sync_mode 4 (all"));
}

TEST(LevelTextTest, OtherStrategiesHaveNone) {
  EXPECT_TRUE(LevelFacts(LevelReport("scope { n_tensors: -1 }")).empty());
}

TEST(LevelTextTest, UnknownSizesMakeBytesALowerBound) {
  EXPECT_THAT(
      Facts("devices { swap_out_count: 1 swap_in_count: 1 unknown_size_count: 1 } level {}"),
      HasSubstr("2 nodes (1 swap-out (-) and 1 swap-in (-))"));
}

}  // namespace
}  // namespace spillway::text
