// Reports of the strategy `level` as texts.
#include "client_lib/cli/level_text.h"

#include <sstream>
#include <string>

#include "client_lib/cli/summary.h"
#include "client_lib/cli/text_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::RewriteReport LevelReport(const std::string& text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report)) << text;
  return report;
}

std::string Facts(const std::string& text) { return FormatFacts(LevelFacts(LevelReport(text))); }

// A report on one GPU whose setting was tuned, with this fit.
std::string OneGpu(const std::string& fit) {
  return Facts(
      "hardware { hardware { preset: 'p100_pcie' } } level { devices { tuning {} } } fits {" + fit +
      "}");
}

TEST(LevelTextTest, OneGpuTuned) {
  EXPECT_EQ(FormatSummary(LevelReport(R"pb(
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
  graph       1000 vertices, 2000 edges, 457 levels; 12 ops without a level, behind loops; 1 op left
              alone, of another mode or in loops
  serialized  2 levels, with 31 control edges
  added       8 operations (3 swap-out operations (3.00 GiB) and 5 swap-in operations (5.00 GiB))
  setting     swapout_threshold 120, swapin_ahead 4, swapin_groupby 0, sync_mode 0: nothing waits
              for copies
  budget      15.00 GiB, from the preset p100_pcie
  unswapped   16.50 GiB at the peak, 1.50 GiB more than the budget
  search      412 settings played (all that differ), 87 fitting
  foretold    905 ms (90% of full speed), 950 ms synchronously, 14.00 GiB at the peak
  nodes       1000 -> 1008 (+8)
)");
}

TEST(LevelTextTest, SwappingIsNotNeededAsFarAsIsKnown) {
  EXPECT_THAT(OneGpu("budget_bytes: 17179869184 unswapped_peak_bytes: 1073741824 not_needed: true "
                     "fit: FIT_UNKNOWN"),
              HasSubstr("less than the budget: as far as is known, no swapping\n"));
}

TEST(LevelTextTest, NoSwappingIsNeeded) {
  const std::string text = OneGpu(
      "budget_bytes: 17179869184 budget_source: MEMORY_SOURCE_OPTION unswapped_peak_bytes: "
      "1073741824 not_needed: true");
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("  setting    none: nothing is swapped\n"),
            HasSubstr("  unswapped  1.00 GiB at the peak, 15.00 GiB less than the budget: no "
                      "swapping is needed\n"),
            Not(HasSubstr("played")), Not(HasSubstr("foretold")), Not(HasSubstr("serialized")),
            Not(HasSubstr("without a level")), Not(HasSubstr("left alone"))));
}

TEST(LevelTextTest, EverySourceOfABudgetHasItsWords) {
  for (const auto& [source, words] : std::vector<std::pair<std::string, std::string>>{
           {"PRESET", "8.00 GiB, from the preset p100_pcie\n"},
           {"OPTION", "8.00 GiB, from --gpu-memory-bytes\n"},
           {"AUTOTUNE_GPU_MEM", "8.00 GiB, from --autotune-gpu-mem\n"},
           {"NVIDIA_SMI", "8.00 GiB, from nvidia-smi\n"},
           {"UNSPECIFIED", "8.00 GiB\n"}}) {
    EXPECT_THAT(OneGpu("budget_bytes: 8589934592 budget_source: MEMORY_SOURCE_" + source),
                HasSubstr("  budget     " + words));
  }
  EXPECT_EQ(v1::MemorySource_descriptor()->value_count(), 5) << "a new one needs words, too";
}

// Not swapped although it would fit: somebody gave a threshold.
TEST(LevelTextTest, ASettingMayBeGiven) {
  EXPECT_THAT(
      Facts("level { devices { swapout_threshold: 1 swapin_groupby: 3 sync_mode: 2 } }"),
      AllOf(HasSubstr("swapout_threshold 1, swapin_groupby 3, sync_mode 2: a swap-in waits "
                      "for the other inputs\n"),
            HasSubstr("(all as given)"), Not(HasSubstr("ahead")), Not(HasSubstr("budget"))));
  EXPECT_THAT(OneGpu("budget_bytes: 2048 unswapped_peak_bytes: 1024"),
              AllOf(HasSubstr("1.00 KiB less than the budget\n"), Not(HasSubstr("as given"))));
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

TEST(LevelTextTest, EveryGpuHasItsBlock) {
  const v1::RewriteReport report = LevelReport(R"pb(
    outcome: OUTCOME_REWRITTEN
    hardware { hardware { preset: "v100_pcie" } }
    level {
      level_count: 9
      devices {
        device: "/device:GPU:0"
        swapout_threshold: 7
        tuning { setting_count: 1 }
      }
      devices {
        device: "/device:GPU:1"
        tuning {}
      }
      devices {}
    }
    fits { device: "/device:GPU:0" budget_bytes: 1024 unswapped_peak_bytes: 2048 }
    fits { device: "/device:GPU:1" budget_bytes: 1024 not_needed: true })pb");
  EXPECT_EQ(FormatLevelDevices(report, Style()),
            R"(  /device:GPU:0
  setting    swapout_threshold 7
  budget     1.00 KiB
  unswapped  2.00 KiB at the peak, 1.00 KiB more than the budget
  search     1 setting played, 0 fitting
  /device:GPU:1
  setting    none: nothing is swapped
  budget     1.00 KiB
  unswapped  0 B at the peak, 1.00 KiB less than the budget: no swapping is needed
  (none given)
  setting  none: nothing is swapped
)");
  // Once in the whole text, and not among the facts of the graph.
  const std::string text = FormatSummary(report);
  EXPECT_THAT(text, HasSubstr(FormatLevelDevices(report, Style())));
  EXPECT_EQ(text.find("swapout_threshold 7"), text.rfind("swapout_threshold 7"));
  EXPECT_THAT(FormatFacts(LevelFacts(report)), Not(HasSubstr("setting")));
}

TEST(LevelTextTest, OtherStrategiesHaveNone) {
  EXPECT_TRUE(LevelFacts(LevelReport("scope { n_tensors: -1 }")).empty());
  EXPECT_EQ(FormatLevelDevices(LevelReport("scope {}"), Style()), "");
}

TEST(LevelTextTest, UnknownSizesMakeBytesALowerBound) {
  EXPECT_THAT(
      Facts("devices { swap_out_count: 1 swap_in_count: 1 unknown_size_count: 1 } level {}"),
      HasSubstr("2 operations (1 swap-out operation (>= 0 B) and 1 swap-in operation (>= 0 B))"));
}

TEST(LevelTextTest, NoLineIsTooLong) {
  v1::RewriteReport report;
  for (int i = 0; i < 2; ++i) {
    v1::LevelDevice* device = report.mutable_level()->add_devices();
    device->set_device(std::string(300, 'd'));
    device->set_swapout_threshold(INT32_MAX);
    device->set_swapin_ahead(INT32_MAX);
    device->set_swapin_groupby(INT32_MAX);
    device->set_sync_mode(2);
    device->mutable_tuning()->set_setting_count(INT64_MAX);
    v1::DeviceFit* fit = report.add_fits();
    fit->set_device(device->device());
    fit->set_budget_bytes(INT64_MAX);
    fit->set_unswapped_peak_bytes(INT64_MAX);
    fit->set_step_time_ns(INT64_MAX);
    fit->set_synchronous_step_time_ns(INT64_MAX);
    fit->set_peak_bytes(INT64_MAX);
  }
  std::istringstream lines(FormatSummary(report));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kMaxLineWidth) << line;
}

}  // namespace
}  // namespace spillway::cli
