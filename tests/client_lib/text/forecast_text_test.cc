#include "client_lib/text/forecast_text.h"

#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/text/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/text/parsed.h"

namespace spillway::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Simulation(const std::string& report) {
  return FormatSimulationDetails(Parse<v1::SimulateReport>(report), Style());
}

TEST(ForecastTextTest, VariablesOnCpusFromOneMebibyteOn) {
  const auto text = [](const char* bytes) {
    return Simulation(absl::StrCat(kMachine, R"(
      forecast { fit: FIT_FITS host_peak_bytes: 1024 host_variable_bytes: )",
                                   bytes, R"(
        devices { budget_bytes: 8589934592 } })"));
  };
  EXPECT_THAT(text("1048576"),
              HasSubstr("host memory  1.00 KiB at most, beside 1.00 MiB of variables on CPUs\n"));
  EXPECT_THAT(text("1048575"), HasSubstr("host memory  1.00 KiB at most\n"));
}

TEST(ForecastTextTest, TimeOnCpus) {
  EXPECT_THAT(Simulation(absl::StrCat(kMachine, R"(
                forecast { fit: FIT_FITS host_ns: 25000000 devices { budget_bytes: 8589934592 } })")),
              HasSubstr("on CPUs      25.0 ms of operations, one after another\n"));
}

TEST(ForecastTextTest, AStepThatFits) {
  EXPECT_EQ(Simulation(std::string(kMachine) + R"(
    forecast {
      fit: FIT_FITS step_time_ns: 200000000 synchronous_step_time_ns: 210000000
      host_peak_bytes: 1024
      devices {
        resident_bytes: 1073741824 peak_bytes: 4294967296 peak_node: "conv" compute_ns: 160000000
        stall_ns: 40000000 copy_out_ns: 20000000 copy_in_ns: 2000000 copy_out_bytes: 2048
        copy_in_bytes: 3072
        budget_bytes: 8589934592
        bounds { memory_bytes: 2147483648 memory_node: "grad" step_time_ns: 190000000 }
      }
    }
    targets: "train_op" node_count: 1234)"),
            R"(fits into 8.00 GiB per GPU; a step takes 200 ms
  each step                GPU
  peak memory         4.00 GiB
    resident          1.00 GiB
  copied out          2.00 KiB
  copied in           3.00 KiB
  of the step's time
    computing              80%
    waiting                20%
    copying out            10%
    copying in              1%
  host memory  1.00 KiB at most
  synchronous  210 ms, if no op were launched ahead of the GPU
  swapping     no plan can fit in less than 2.00 GiB (grad)
  machine      p100_pcie, 8.00 GiB per GPU, 64.00 GiB of host memory, 12 GB/s out and 10 GB/s in
  step         1234 nodes: all that train_op needs
)");
}

constexpr char kTooLarge[] = R"(
  forecast {
    fit: FIT_DOES_NOT_FIT out_of_memory { device: "/gpu:1" node: "conv" requested_bytes: 1073741824
                    in_use_bytes: 7516192769 budget_bytes: 8589934592 }
    devices { device: "/gpu:0" peak_bytes: 4294967296
              budget_bytes: 8589934592
              bounds { memory_bytes: 1048576 memory_node: "small" } }
    devices { device: "/gpu:1" peak_bytes: 12884901888
              budget_bytes: 8589934592
              bounds { memory_bytes: 2147483648 memory_node: "grad" copy_out_bytes: 3221225472
                       copy_in_bytes: 4294967296 step_time_ns: 190000000 } }
  })";

TEST(ForecastTextTest, TheSessionsOptionIsPartOfTheMachine) {
  const std::string text = Simulation(R"(
    hardware { hardware { preset: "p100_pcie" internal_fragmentation_fraction: 0.001 } }
    forecast { fit: FIT_FITS })");
  EXPECT_THAT(text, HasSubstr(", internal_fragmentation_fraction 0.001, "));
}

TEST(ForecastTextTest, TheLargestTemporaryIsNamed) {
  EXPECT_THAT(Simulation(R"(
    temporaries { node: "bn" op: "FusedBatchNormV3" bytes: 3072
                  reason: "FusedBatchNormV3 of NHWC float32 copies 2 tensors of 1.50 KiB" }
    temporaries { node: "conv" op: "Conv2D" bytes: 1024 reason: "Conv2D of ..." }
    forecast { fit: FIT_FITS })"),
              HasSubstr("temporaries  up to 3.00 KiB, of bn: FusedBatchNormV3 of NHWC float32 "
                        "copies 2 tensors"));
  EXPECT_THAT(Simulation("forecast { fit: FIT_FITS }"), Not(HasSubstr("temporaries")));
}

TEST(ForecastTextTest, AStepThatDoesNotFitSaysByHowMuchAndWhatSwappingCouldDo) {
  EXPECT_EQ(Simulation(std::string(kMachine) + kTooLarge + R"(
    targets: "a" targets: "b" targets: "c" node_count: 1)"),
            R"(does not fit: /gpu:1 would need 12.00 GiB, 4.00 GiB more than its 8.00 GiB
  each step      /gpu:0     /gpu:1
  peak memory  4.00 GiB  12.00 GiB
    resident        0 B        0 B
  copied out        0 B        0 B
  copied in         0 B        0 B
  host memory  0 B at most
  ran out      conv asks for 1.00 GiB while 7.00 GiB of 8.00 GiB are in use
  swapping     on /gpu:1: might make it fit: any plan copies at least 3.00 GiB out and 4.00 GiB in,
               and a step takes at least 190 ms; no plan can fit in less than 2.00 GiB (grad)
  machine      p100_pcie, 8.00 GiB per GPU, 64.00 GiB of host memory, 12 GB/s out and 10 GB/s in
  step         1 node: all that a, b and c need
)");
}

TEST(ForecastTextTest, ANodeThatIsTooLargeCannotBeHelped) {
  EXPECT_THAT(Simulation(std::string(kMachine) + R"(
    forecast {
      fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" requested_bytes: 1 in_use_bytes: 1 budget_bytes: 8589934592 }
      devices { peak_bytes: 17179869184
                budget_bytes: 8589934592
                bounds { memory_bytes: 9663676416 memory_node: "conv_grad" } }
    })"),
              AllOf(StartsWith("does not fit: the GPU would need 16.00 GiB, 8.00 GiB more than"),
                    HasSubstr("cannot make it fit: with the resident tensors, conv_grad alone "
                              "needs 9.00 GiB\n"),
                    Not(HasSubstr("might"))));
}

TEST(ForecastTextTest, TheHostMayBeTooSmall) {
  EXPECT_THAT(Simulation(std::string(kMachine) + R"(
    forecast {
      fit: FIT_DOES_NOT_FIT out_of_memory { host: true node: "x" requested_bytes: 1 in_use_bytes: 1
                      budget_bytes: 68719476736 }
      host_peak_bytes: 103079215104
      devices { peak_bytes: 4294967296 bounds { memory_bytes: 1 memory_node: "y" } }
    })"),
              AllOf(StartsWith("does not fit: the copies would need 96.00 GiB of pinned host "
                               "memory, 32.00 GiB more than available\n"),
                    Not(HasSubstr("swapping"))));
}

TEST(ForecastTextTest, EnoughMemoryMayBeFragmented) {
  const std::string text = Simulation(std::string(kMachine) + R"(
    forecast {
      fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" requested_bytes: 1073741824 in_use_bytes: 6442450944
                      budget_bytes: 8589934592 fragmented: true }
      devices { peak_bytes: 8589934591 }
    })");
  EXPECT_THAT(text, AllOf(StartsWith("does not fit: the free part of the 8.00 GiB of the GPU is "
                                     "fragmented\n"),
                          HasSubstr(" of 8.00 GiB are in use, and the rest is\n")));
}

// One of the two ways fits: that does not make a step.
TEST(ForecastTextTest, TimesAreOfStepsThatFit) {
  EXPECT_THAT(Simulation(std::string(kMachine) + R"(
    forecast {
      step_time_ns: 77000000 synchronous_step_time_ns: 78000000
      fit: FIT_DOES_NOT_FIT out_of_memory { node: "x" budget_bytes: 8589934592 }
      devices { peak_bytes: 8589934593 compute_ns: 1 }
    })"),
              AllOf(HasSubstr("1 B more than its"), Not(HasSubstr("77.0 ms")),
                    Not(HasSubstr("78.0 ms")), Not(HasSubstr("%"))));
}

TEST(ForecastTextTest, WhatIsNotKnownIsInTheFirstLine) {
  const std::string text = Simulation(std::string(kMachine) + R"(
    forecast {
      fit: FIT_UNKNOWN step_time_ns: 1000000 devices { bounds { memory_bytes: 1 } }
      fit_unknown { cause: FIT_UNKNOWN_CAUSE_SIZES node: "conv" count: 1
                    message: "The size of conv is unknown; give batch_size." }
      fit_unknown { cause: FIT_UNKNOWN_CAUSE_LOOPS node: "merge" count: 1 message: "A loop." }
    })");
  EXPECT_THAT(text, AllOf(StartsWith("unknown whether it fits into 8.00 GiB per GPU: the known "
                                     "part does; a step takes 1.0 ms\n"),
                          HasSubstr("  unknown      The size of conv is unknown; give batch_size.\n"
                                    "               A loop.\n")));
  // Without a budget there are no bounds.
  EXPECT_THAT(Simulation(std::string(kMachine) + R"(
    forecast { fit: FIT_FITS step_time_ns: 1000000 devices { peak_bytes: 1 } })"),
              StartsWith("with unlimited memory, a step takes 1.0 ms\n"));
  EXPECT_THAT(Simulation("forecast { fit: FIT_FITS }"),
              StartsWith("no node of this step runs on a GPU\n"));
}

TEST(ForecastTextTest, ManyGpusGoBelow) {
  v1::SimulateReport report;
  report.mutable_forecast()->set_fit(v1::FIT_FITS);
  report.mutable_forecast()->set_step_time_ns(1);
  for (int i = 0; i < 9; ++i) {
    report.mutable_forecast()->add_devices()->set_device(
        "/job:worker/replica:0/task:1/device:GPU:" + std::to_string(i));
  }
  for (int i = 0; i < 200; ++i) report.add_targets("name_scope/of_some_length/target");
  const std::string text = FormatSimulationDetails(report, Style());
  EXPECT_THAT(text, AllOf(HasSubstr("GPU:0"), HasSubstr("GPU:8"), HasSubstr(" and 199 others")));
  size_t tables = 0, from = 0;
  for (; (from = text.find("each step", from)) != std::string::npos; ++from) ++tables;
  EXPECT_EQ(tables, 3);  // 4, 4 and 1.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kLineWidth) << line;
}

TEST(ForecastTextTest, BeforeAndAfter) {
  const auto report = Parse<v1::RewriteReport>(std::string(kMachine) + R"(
    forecast_before {
      fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" requested_bytes: 1073741824 in_use_bytes: 7516192769
                      budget_bytes: 8589934592 }
      devices { resident_bytes: 1073741824 peak_bytes: 12884901888 }
    }
    forecast_after {
      fit: FIT_FITS step_time_ns: 200000000 host_peak_bytes: 4294967296
      devices { resident_bytes: 1073741824 peak_bytes: 8589934592 compute_ns: 100000000
                stall_ns: 100000000 copy_out_ns: 50000000 copy_in_ns: 50000000
                copy_out_bytes: 4294967296 copy_in_bytes: 4294967296 }
    })");
  EXPECT_EQ(FormatBeforeAndAfter(report, Style()),
            R"(  forecast               before     after
  fits                       no       yes
  step                        -    200 ms
  host memory               0 B  4.00 GiB
  peak memory         12.00 GiB  8.00 GiB
    resident           1.00 GiB  1.00 GiB
  copied out                0 B  4.00 GiB
  copied in                 0 B  4.00 GiB
  of the step's time
    computing                 -       50%
    waiting                   -       50%
    copying out               -       25%
    copying in                -       25%
)");
  EXPECT_EQ(
      FormatFacts(ForecastFacts(report)),
      R"(  machine  p100_pcie, 8.00 GiB per GPU, 64.00 GiB of host memory, 12 GB/s out and 10 GB/s in
  times    of steps launched ahead, as TensorFlow runs them
  before   does not fit: the GPU would need 12.00 GiB, 4.00 GiB more than its 8.00 GiB
           conv asks for 1.00 GiB while 7.00 GiB of 8.00 GiB are in use
)");
}

TEST(ForecastTextTest, ThatItMayRunOutIsBelowTheHeadline) {
  const v1::SimulateReport report = Parse<v1::SimulateReport>(std::string(kMachine) + R"(
    forecast { fit: FIT_FITS devices { budget_bytes: 1 bounds { memory_bytes: 1 } } }
    warnings { code: WARNING_CODE_LITTLE_SWAPPED message: "another" }
    warnings { code: WARNING_CODE_MAY_RUN_OUT message: "fits in 17 of 20 variations" })");
  for (const std::string& text :
       {FormatSimulation(report, Style()), FormatSimulationDetails(report, Style())}) {
    const std::string line = "\n  warning  fits in 17 of 20 variations\n";
    EXPECT_EQ(text.find(line), text.find('\n')) << text;
    EXPECT_EQ(text.find("17 of 20"), text.rfind("17 of 20")) << text;
  }
}

TEST(ForecastTextTest, AShortSimulationSaysWhetherItFitsAndWhatSwappingCanDo) {
  EXPECT_EQ(FormatSimulation(Parse<v1::SimulateReport>(std::string(kMachine) + R"(
              forecast { fit: FIT_FITS step_time_ns: 200000000 host_peak_bytes: 1024
                         devices { peak_bytes: 4294967296 budget_bytes: 8589934592
                                   compute_ns: 1 bounds { memory_bytes: 1 } } }
              node_count: 7 targets: "train_op")"),
                             Style()),
            R"(fits into 8.00 GiB per GPU; a step takes 200 ms
  peak memory  of a step      limit
  GPU           4.00 GiB   8.00 GiB
  host          1.00 KiB  64.00 GiB
  machine  p100_pcie, 8.00 GiB per GPU, 12 GB/s out and 10 GB/s in
)");
  EXPECT_THAT(
      FormatSimulation(Parse<v1::SimulateReport>(std::string(kMachine) + R"(
                forecast { fit: FIT_DOES_NOT_FIT
                           out_of_memory { node: "conv" requested_bytes: 1024 in_use_bytes: 2048
                                           budget_bytes: 8589934592 }
                           devices { peak_bytes: 9663676416 budget_bytes: 8589934592
                                     bounds { memory_bytes: 1073741824 memory_node: "relu"
                                              step_time_ns: 300000000 } } })"),
                       Style()),
      AllOf(StartsWith("does not fit: the GPU would need 9.00 GiB, 1.00 GiB more than its "
                       "8.00 GiB\n"),
            HasSubstr("  ran out   conv asks for "), HasSubstr("  swapping  might make it fit: ")));
}

TEST(ForecastTextTest, ARewriteSaysWhatIsNotKnown) {
  const auto report = Parse<v1::RewriteReport>(std::string(kMachine) + R"(
    forecast_before { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" } devices {} }
    forecast_after { fit: FIT_UNKNOWN step_time_ns: 1000000 devices {}
                     fit_unknown { message: "Of conv." } })");
  EXPECT_THAT(FormatBeforeAndAfter(report, Style()),
              HasSubstr("  fits                    no  unknown\n"));
  EXPECT_THAT(FormatFacts(ForecastFacts(report)), HasSubstr("  after    Of conv.\n"));
}

TEST(ForecastTextTest, AGraphThatIsReturnedAsItCame) {
  const auto report = Parse<v1::RewriteReport>(std::string(kMachine) + R"(
    forecast_before { fit: FIT_FITS step_time_ns: 1000000 devices { device: "/gpu:0" } })");
  EXPECT_THAT(FormatBeforeAndAfter(report, Style()),
              AllOf(StartsWith("  forecast            as it is\n"), HasSubstr("\n  /gpu:0\n"),
                    Not(HasSubstr("after"))));
  EXPECT_EQ(FormatBeforeAndAfter(v1::RewriteReport(), Style()), "");
  EXPECT_TRUE(ForecastFacts(v1::RewriteReport()).empty());
}

TEST(ForecastTextTest, ABudgetByNvidiaSmiIsSaidToBe) {
  auto report = Parse<v1::RewriteReport>(std::string(kMachine) + R"(
    forecast_before { fit: FIT_FITS devices {} })");
  report.mutable_hardware()->mutable_hardware()->set_gpu_memory_source(
      v1::MEMORY_SOURCE_NVIDIA_SMI);
  EXPECT_THAT(FormatFacts(ForecastFacts(report)),
              HasSubstr("p100_pcie, 8.00 GiB per GPU by nvidia-smi, 64.00 GiB of host memory"));
}

TEST(ForecastTextTest, MemoryOverTheStep) {
  const auto report = Parse<v1::SimulateReport>(R"(
    forecast { fit: FIT_FITS devices { peak_bytes: 2048 peak_node: "conv" resident_bytes: 512 } }
    memory {
      timeline { time_ns: 0 bytes: 512 } timeline { time_ns: 12000000 bytes: 2048 }
      timeline { time_ns: 24000000 bytes: 512 }
      live_at_peak { tensor { tensor: "conv:0" dtype: "float32" shape: "[8,48]"
                               size_bytes: 1536 } }
      live_at_peak { tensor { tensor: "w:0" size_bytes: 512 } resident: true }
    }
    distances { distance: 1 edge_count: 5 tensor_bytes: 1024 }
    distances { distance: 3 edge_count: 2 tensor_bytes: 10 }
    distances { distance: 4 edge_count: 1 tensor_bytes: 20 }
    distances { distance: 900 edge_count: 7 tensor_bytes: 30 }
    node_count: 3 targets: "conv")");
  const std::string text = FormatMemory(report, 10, Style());
  EXPECT_THAT(text, StartsWith("memory of the GPU\n"
                               "  peak      2.00 KiB at conv\n"
                               "  resident  512 B: variables, optimizer slots, constants\n\n"));
  // 24 bars, of a millisecond each: a quarter of the peak, then the whole of it.
  const std::string low = "  " + std::string(15, '#') + std::string(45, ' ');
  const std::string high = "  " + std::string(60, '#');
  EXPECT_THAT(text, AllOf(HasSubstr("      1.0 ms" + low + "      512 B\n"),
                          HasSubstr("     12.0 ms" + low + "      512 B\n"),
                          HasSubstr("     13.0 ms" + high + "   2.00 KiB\n"),
                          HasSubstr("     24.0 ms" + high + "   2.00 KiB\n")));
  EXPECT_THAT(text, HasSubstr(R"(  live at the peak     type   shape      size
  conv:0            float32  [8,48]  1.50 KiB
  w:0 (resident)          -       -     512 B
)"));
  EXPECT_THAT(text, HasSubstr(R"(  distance in levels  edges     bytes
  1                       5  1.00 KiB
  3 - 4                   3      30 B
  513 - 1024              7      30 B
)"));
  EXPECT_THAT(FormatMemory(report, 1, Style()), HasSubstr("  ... 1 more\n"));
  EXPECT_THAT(text, Not(HasSubstr("temporaries")));
  v1::SimulateReport with_kernels = report;
  with_kernels.mutable_memory(0)->mutable_live_at_peak(0)->mutable_tensor()->set_size_bytes(1024);
  EXPECT_THAT(FormatMemory(with_kernels, 10, Style()),
              HasSubstr("  temporaries  512 B of the peak: memory that kernels and libraries use"));
}

}  // namespace
}  // namespace spillway::text
