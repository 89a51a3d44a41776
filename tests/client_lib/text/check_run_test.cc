// A report's plan beside a trace's contents.
#include "client_lib/text/check_run.h"

#include <string>
#include <utility>

#include "client_lib/text/check_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"

namespace spillway::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kFirstGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr char kHostDevice[] = "/job:localhost/replica:0/task:0/device:CPU:0";

class CheckRunTest : public ::testing::Test {
 protected:
  // `a:0`, 24 bytes, goes out and comes back twice; `b:0`, of unknown size, once. All of it ran.
  CheckRunTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(
          devices { device: "/gpu:0" }
          swaps {
            tensor: "a:0"
            size_bytes: 24
            swap_out: "lms/swapout_a_0"
            device: "/gpu:0"
            swap_ins {
              name: "lms/swapin_a_0"
              consumers { node: "x" }
            }
            swap_ins {
              name: "lms/swapin_a_0_1"
              consumers { node: "y" }
            }
          }
          swaps {
            tensor: "b:0"
            swap_out: "lms/swapout_b_0"
            device: "/gpu:0"
            swap_ins {
              name: "lms/swapin_b_0"
              consumers { node: "y" input_index: 1 }
            }
          }
          forecast_after {
            step_time_ns: 1000000
            devices { device: "/gpu:0" resident_bytes: 1000 peak_bytes: 3000 }
          }
        )pb",
        &report_));
    trace_.devices = {kFirstGpu, kHostDevice};
    for (const char* node : {"a", "b", "x", "y"}) trace_.nodes[node] = {kFirstGpu, absl::nullopt};
    for (const char* node : {"lms/swapout_a_0", "lms/swapin_a_0", "lms/swapin_a_0_1"}) {
      trace_.nodes[node] = {kHostDevice, 24};
    }
    for (const char* node : {"lms/swapout_b_0", "lms/swapin_b_0"})
      trace_.nodes[node] = {kHostDevice, 20};
    trace_.nodes["lms/swapin_a_0/_12"] = {kHostDevice, 24};  // The partitioner's.
    trace_.step_ns = 90'000;
    trace_.allocated_peak_bytes[kFirstGpu] = 1200;
    trace_.in_use_peak_bytes[kFirstGpu] = 2900;
  }

  v1::RunCheck Check() {
    const auto check = CheckRun(report_, trace_);
    EXPECT_TRUE(check.ok()) << check.status();
    return check.ok() ? *check : v1::RunCheck();
  }

  v1::RewriteReport report_;
  CheckTrace trace_;
};

// -1: unknown.
using Figures = std::pair<int64_t, int64_t>;
Figures Both(const v1::CheckedFigure& figure) {
  return {figure.has_planned() ? figure.planned() : -1, figure.has_seen() ? figure.seen() : -1};
}

TEST_F(CheckRunTest, AllAsPlanned) {
  const v1::RunCheck check = Check();
  EXPECT_EQ(Both(check.swap_outs()), Figures(2, 2));
  EXPECT_EQ(Both(check.swap_ins()), Figures(3, 3));
  EXPECT_EQ(Both(check.copy_out_bytes()), Figures(24, 24 + 20));
  EXPECT_EQ(Both(check.copy_in_bytes()), Figures(48, 48 + 20));
  EXPECT_EQ(check.unknown_size_count(), 1);
  EXPECT_EQ(Both(check.step_time_ns()), Figures(1'000'000, 90'000));
  ASSERT_EQ(check.devices_size(), 1);
  EXPECT_EQ(check.devices(0).seen_as(), kFirstGpu);
  EXPECT_EQ(Both(check.devices(0).step_peak_bytes()), Figures(2000, 1200));
  EXPECT_EQ(Both(check.devices(0).in_use_peak_bytes()), Figures(3000, 2900));
  EXPECT_THAT(check.missing(), IsEmpty());
  EXPECT_THAT(check.unmoved(), IsEmpty());
  EXPECT_THAT(check.unplanned(), IsEmpty());
  EXPECT_EQ(FormatCheck(check, Style()),
            R"(as planned: 2 swap-outs and 3 swap-ins ran, and moved their tensors
                            planned      seen    share
  swap-outs                       2         2  100.0 %
  swap-ins                        3         3  100.0 %
  copied out                   24 B      44 B  183.3 %
  copied in                    48 B      68 B  141.7 %
  step, launched ahead       1.0 ms   0.09 ms    9.0 %
  peak of the step         1.95 KiB  1.17 KiB   60.0 %
  peak, resident included  2.93 KiB  2.83 KiB   96.7 %
  sizes  planned bytes do not include 1 tensor of unknown size
)");
}

TEST_F(CheckRunTest, NamesCountExactly) {
  trace_.nodes.erase("lms/swapin_a_0");
  const v1::RunCheck check = Check();
  EXPECT_THAT(check.missing(), ElementsAre("lms/swapin_a_0"));
  EXPECT_EQ(check.swap_ins().seen(), 2);
  EXPECT_EQ(check.copy_in_bytes().seen(), 44);
  EXPECT_THAT(FormatCheck(check, Style()),
              StartsWith("not all as planned: 2 of 2 swap-outs and 2 of 3 swap-ins ran\n"));
}

TEST_F(CheckRunTest, WhatRunsWhereTheTensorIsMovesNothing) {
  for (auto& [name, node] : trace_.nodes) node.device = kHostDevice;
  const v1::RunCheck check = Check();
  EXPECT_EQ(check.swap_outs().seen(), 2);
  EXPECT_EQ(check.copy_out_bytes().seen(), 0);
  EXPECT_EQ(check.copy_in_bytes().seen(), 0);
  EXPECT_EQ(check.unmoved_size(), 5);
  EXPECT_EQ(check.devices(0).seen_as(), kHostDevice);
}

TEST_F(CheckRunTest, SwapsOfAnotherPlan) {
  trace_.nodes["tower/lms/swapout_z_0"] = {kHostDevice, absl::nullopt};
  EXPECT_THAT(Check().unplanned(), ElementsAre("tower/lms/swapout_z_0"));
  report_.clear_swaps();
  EXPECT_EQ(Check().unplanned_size(), 6);
  EXPECT_THAT(FormatCheck(Check(), Style()), StartsWith("not all as planned\n"));
}

TEST_F(CheckRunTest, WithoutSizes) {
  report_.mutable_swaps(0)->clear_size_bytes();
  const v1::RunCheck check = Check();
  EXPECT_EQ(Both(check.copy_out_bytes()), Figures(-1, 44));
  EXPECT_EQ(Both(check.copy_in_bytes()), Figures(-1, 68));
  EXPECT_EQ(check.unknown_size_count(), 2);
}

// Nothing is made up; unknown values are dashes.
TEST_F(CheckRunTest, WithoutAForecast) {
  report_.clear_forecast_after();
  const v1::RunCheck check = Check();
  EXPECT_EQ(Both(check.step_time_ns()), Figures(-1, 90'000));
  ASSERT_EQ(check.devices_size(), 1);
  EXPECT_EQ(Both(check.devices(0).step_peak_bytes()), Figures(-1, 1200));
  EXPECT_THAT(FormatCheck(check, Style()), HasSubstr("step, launched ahead  "));
  EXPECT_THAT(FormatCheck(check, Style()), HasSubstr("  -   0.09 ms\n"));
}

// Each GPU is seen where its own tensors were made.
TEST_F(CheckRunTest, TwoGpus) {
  report_.mutable_swaps(1)->set_device("/gpu:1");
  report_.add_devices()->set_device("/gpu:1");
  const std::string second = "/job:localhost/replica:0/task:0/device:GPU:1";
  trace_.nodes["b"].device = second;
  const v1::RunCheck check = Check();
  ASSERT_EQ(check.devices_size(), 2);
  EXPECT_EQ(check.devices(0).seen_as(), kFirstGpu);
  EXPECT_EQ(check.devices(1).seen_as(), second);
}

TEST_F(CheckRunTest, ATraceOfAnotherGraph) {
  trace_.nodes = {{"elsewhere", {kFirstGpu, absl::nullopt}}};
  const absl::Status status = CheckRun(report_, trace_).status();
  EXPECT_EQ(core::GetErrorInfo(status).reason(), "BAD_OPTION") << status;
  EXPECT_THAT(
      std::string(status.message()),
      StartsWith("run_metadata belongs to another graph: neither 'a:0' nor any other tensor"));
}

}  // namespace
}  // namespace spillway::text
