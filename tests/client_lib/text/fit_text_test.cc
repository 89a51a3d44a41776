// The fit of a plan as a text.
#include "client_lib/text/fit_text.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

v1::RewriteReport FitReport(const std::string& text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report)) << text;
  return report;
}

// A report on one GPU whose setting was tuned, with this fit.
std::string OneGpu(const std::string& fit) {
  return FormatFacts(DeviceFacts(FitReport(
      "hardware { hardware { preset: 'p100_pcie' } } level { devices { tuning {} } } fits {" + fit +
      "}")));
}

// Of a strategy that has no text of its own for GPUs.
TEST(FitTextTest, AFitNeedsNoSetting) {
  EXPECT_EQ(FormatFacts(DeviceFacts(FitReport("fits { budget_bytes: 2048 }"))),
            "  budget     2.00 KiB\n"
            "  unswapped  0 B at the peak, 2.00 KiB less than the budget\n");
}

TEST(FitTextTest, WithoutSettingsAndFitsThereIsNothing) {
  EXPECT_TRUE(DeviceFacts(FitReport("scope {}")).empty());
  EXPECT_EQ(FormatDeviceFacts(FitReport("scope {}"), Style()), "");
}

TEST(FitTextTest, EnoughBytesMayNotDo) {
  EXPECT_THAT(OneGpu("budget_bytes: 2048 unswapped_peak_bytes: 1024 fit: FIT_FITS"),
              HasSubstr("1.00 KiB less than the budget, but does not fit unchanged\n"));
}

TEST(FitTextTest, WhetherSwappingIsNeededIsNotKnown) {
  EXPECT_THAT(OneGpu("budget_bytes: 17179869184 unswapped_peak_bytes: 1073741824 not_needed: true "
                     "fit: FIT_UNKNOWN"),
              HasSubstr("less than the budget: unknown whether swapping is"));
}

TEST(FitTextTest, NoSwappingIsNeeded) {
  const std::string text = OneGpu(
      "budget_bytes: 17179869184 budget_source: MEMORY_SOURCE_OPTION unswapped_peak_bytes: "
      "1073741824 not_needed: true");
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("  setting    none: nothing is swapped\n"),
            HasSubstr("  unswapped  1.00 GiB at the peak, 15.00 GiB less than the budget: no "
                      "swapping is needed\n"),
            Not(HasSubstr("simulated")), Not(HasSubstr("simulated")), Not(HasSubstr("serialized")),
            Not(HasSubstr("without a level")), Not(HasSubstr("left alone"))));
}

TEST(FitTextTest, EverySourceOfABudgetHasItsWords) {
  for (const auto& [source, words] : std::vector<std::pair<std::string, std::string>>{
           {"PRESET", "8.00 GiB, from the preset p100_pcie\n"},
           {"OPTION", "8.00 GiB, from gpu_memory_bytes\n"},
           {"NVIDIA_SMI", "8.00 GiB, from nvidia-smi\n"},
           {"UNSPECIFIED", "8.00 GiB\n"}}) {
    EXPECT_THAT(OneGpu("budget_bytes: 8589934592 budget_source: MEMORY_SOURCE_" + source),
                HasSubstr("  budget     " + words));
  }
  EXPECT_EQ(v1::MemorySource_descriptor()->value_count(), 4) << "a new one needs words, too";
}

TEST(FitTextTest, EveryGpuHasItsBlock) {
  const v1::RewriteReport report = FitReport(R"pb(
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
  EXPECT_EQ(FormatDeviceFacts(report, Style()),
            R"(  /device:GPU:0
  setting    swapout_threshold 7
  search     1 setting simulated, 0 fitting
  budget     1.00 KiB
  unswapped  2.00 KiB at the peak, 1.00 KiB more than the budget
  /device:GPU:1
  setting    none: nothing is swapped
  budget     1.00 KiB
  unswapped  0 B at the peak, 1.00 KiB less than the budget: no swapping is needed
  (none given)
  setting  none: nothing is swapped
)");
  // Once in the whole text, and not among the facts of the graph.
  const std::string text = FormatDetails(report);
  EXPECT_THAT(text, HasSubstr(FormatDeviceFacts(report, Style())));
  EXPECT_EQ(text.find("swapout_threshold 7"), text.rfind("swapout_threshold 7"));
  EXPECT_THAT(FormatFacts(DeviceFacts(report)), Not(HasSubstr("setting")));
}

TEST(FitTextTest, NoLineIsTooLong) {
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
  std::istringstream lines(FormatDetails(report));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kLineWidth) << line;
}

}  // namespace
}  // namespace spillway::text
