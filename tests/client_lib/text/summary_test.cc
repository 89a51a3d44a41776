#include "client_lib/text/summary.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_lib/text/text_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::text {
namespace {

v1::RewriteReport Report(const std::string& text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report));
  return report;
}

TEST(SummaryTest, SaysWhatWasDoneInAlignedRows) {
  EXPECT_EQ(
      FormatDetails(Report(R"pb(
        outcome: OUTCOME_REWRITTEN
        strategy: STRATEGY_SCOPE
        node_count_before: 1000
        node_count_after: 1025
        graph_bytes_before: 2048
        graph_bytes_after: 3072
        devices {
          device: "/device:GPU:0"
          swapped_tensor_count: 10
          swap_out_count: 10
          swap_in_count: 15
          swap_out_bytes: 3221225472
          swap_in_bytes: 4831838208
        }
        devices { swapped_tensor_count: 1 swap_out_count: 1 swap_in_count: 1 unknown_size_count: 1 }
        stages { stage: STAGE_PARSE duration_ns: 1500000 }
        stages { stage: STAGE_ANALYSIS duration_ns: 200000000 }
        warnings { message: "Some sizes are unknown." }
        advice {
          host_memory_variable: "TF_GPU_HOST_MEM_LIMIT_IN_MB=4096"
          host_memory_variable_before_1_14: "TF_CUDA_HOST_MEM_LIMIT_IN_MB=4096"
          explanation: "Twice what is swapped out."
        }
      )pb")),
      R"(spillway: rewritten (strategy scope)
  device         tensors  swap-outs  swap-ins  out per step  in per step
  /device:GPU:0       10         10        15      3.00 GiB     4.50 GiB
  (none given)         1          1         1             -            -
  nodes    1000 -> 1025 (+25)
  size     2.00 KiB -> 3.00 KiB
  time     202 ms (parse 1.5 ms, analysis 200 ms)
  warning  Some sizes are unknown.
  advice   set TF_GPU_HOST_MEM_LIMIT_IN_MB=4096 in the training job
           before TensorFlow 1.14: TF_CUDA_HOST_MEM_LIMIT_IN_MB=4096
           Twice what is swapped out.
)");
}

TEST(SummaryTest, ValuesOfANewerServerAreTheirNumbers) {
  v1::RewriteReport report;
  report.set_outcome(static_cast<v1::Outcome>(99));
  report.set_strategy(static_cast<v1::Strategy>(98));
  v1::StageTiming* stage = report.add_stages();
  stage->set_stage(static_cast<v1::Stage>(97));
  stage->set_duration_ns(1'500'000);
  EXPECT_EQ(FormatDetails(report),
            "spillway: done (strategy number 98)\n"
            "  time  1.5 ms (number 97 1.5 ms)\n");
}

TEST(SummaryTest, TheSessionsOptionIsPartOfTheAdvice) {
  EXPECT_EQ(FormatDetails(Report(R"pb(
              outcome: OUTCOME_NOTHING_TO_DO
              advice { internal_fragmentation_fraction: 0.001 }
            )pb")),
            R"(spillway: nothing to do, the graph is unchanged
  advice  create the session with gpu_options.experimental.internal_fragmentation_fraction 0.001, as
          the step was simulated
)");
  EXPECT_THAT(
      FormatDetails(Report(R"pb(
        advice {
          host_memory_variable: "TF_GPU_HOST_MEM_LIMIT_IN_MB=4096"
          internal_fragmentation_fraction: 0.25
        }
      )pb")),
      ::testing::HasSubstr("  advice  set TF_GPU_HOST_MEM_LIMIT_IN_MB=4096 in the training job\n"
                           "  advice  create the session with"));
}

TEST(SummaryTest, SaysWhereSwapsGainNothing) {
  const auto text = [](int64_t after_bytes) {
    return FormatDetails(
        Report(absl::StrCat("outcome: OUTCOME_REWRITTEN devices { swapped_tensor_count: 1 } "
                            "forecast_before { devices { peak_bytes: 1000 } } "
                            "forecast_after { devices { peak_bytes: ",
                            after_bytes, " } }")));
  };
  EXPECT_THAT(text(1000), ::testing::HasSubstr("these swaps gain nothing"));
  EXPECT_THAT(text(999), ::testing::Not(::testing::HasSubstr("these swaps gain nothing")));
}

TEST(SummaryTest, SaysWhatMoreWouldGain) {
  const std::string found = R"pb(
    outcome: OUTCOME_REWRITTEN
    budget {
      joint_bound_ns: 209000000
      more_recompute { recompute: RECOMPUTE_ALL step_time_ns: 228000000 }
    })pb";
  EXPECT_EQ(FormatDetails(Report(found), "", Style()),
            R"(spillway: rewritten
  bound   at least 209 ms with swaps and recomputation, in this op order
  advice  with budget.recompute = ALL a step takes at most 228 ms
)");
  const std::string now = "forecast_after { step_time_ns: 456000000 }";
  EXPECT_THAT(FormatDetails(Report(found + now), "", Style()),
              ::testing::HasSubstr("a step takes at most 228 ms: at least 2.00 times as fast\n"));
}

TEST(SummaryTest, SaysWhatBitsTake) {
  const std::string advice = "advice { same_bits_config_proto_text: 'graph_options {}' } ";
  EXPECT_THAT(FormatDetails(Report(advice + "same_bits: SAME_BITS_WITH_ADVICE"), "", Style()),
              ::testing::HasSubstr(
                  "bits  the same with Grappler off, or with graph_options {} in both sessions\n"));
  EXPECT_THAT(FormatDetails(Report(advice + "same_bits: SAME_BITS_NO"), "", Style()),
              ::testing::HasSubstr("bits  the last ones may differ"));
}

TEST(SummaryTest, SaysNothingOfWhatIsNotThere) {
  EXPECT_EQ(FormatDetails(Report("outcome: OUTCOME_DRY_RUN")),
            "spillway: dry run, the graph is unchanged\n");
  EXPECT_EQ(FormatDetails(Report("outcome: OUTCOME_NOTHING_TO_DO")),
            "spillway: nothing to do, the graph is unchanged\n");
}

TEST(SummaryTest, StripTakesNodesAway) {
  const std::string text =
      FormatDetails(Report("outcome: OUTCOME_STRIPPED strategy: STRATEGY_STRIP node_count_before: "
                           "12 node_count_after: 10"));
  EXPECT_THAT(text, ::testing::HasSubstr("12 -> 10 (-2)"));
  EXPECT_THAT(text, ::testing::HasSubstr("stripped"));
}

TEST(SummaryTest, EveryOutcomeHasItsWords) {
  std::set<std::string> texts;
  for (int i = 1; i < v1::Outcome_descriptor()->value_count(); ++i) {
    v1::RewriteReport report;
    report.set_outcome(static_cast<v1::Outcome>(v1::Outcome_descriptor()->value(i)->number()));
    EXPECT_TRUE(texts.insert(FormatDetails(report)).second);
  }
  EXPECT_EQ(texts.count("spillway: done\n"), 0);
}

// A step of 833 ms on a machine that takes 820 ms at full speed.
constexpr char kPlanned[] = R"pb(
  outcome: OUTCOME_REWRITTEN
  strategy: STRATEGY_BUDGET
  summary: "17 tensors will be swapped"
  hardware {
    hardware {
      preset: "p100_pcie"
      gpu_memory_bytes: 8589934592
      host_memory_bytes: 68719476736
      d2h_bytes_per_s: 12e9
      h2d_bytes_per_s: 10e9
    }
  }
  devices { swapped_tensor_count: 17 swap_out_bytes: 3221225472 swap_in_bytes: 3221225472 }
  fits { budget_bytes: 8589934592 full_speed_step_time_ns: 820000000 }
  budget { devices { step_time_bound_ns: 827000000 } }
  forecast_before {
    fit: FIT_DOES_NOT_FIT
    devices { peak_bytes: 10737418240 budget_bytes: 8589934592 }
  }
  forecast_after {
    fit: FIT_FITS
    step_time_ns: 833000000
    host_peak_bytes: 3221225472
    devices { peak_bytes: 8053063680 budget_bytes: 8589934592 }
  })pb";

int LinesOf(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(SummaryTest, ShortSaysWhatPeopleAsk) {
  EXPECT_EQ(FormatSummary(Report(kPlanned)),
            R"(spillway: rewritten (strategy budget)
  17 tensors will be swapped
  peak memory     before     after      limit
  GPU          10.00 GiB  7.50 GiB   8.00 GiB
  host               0 B  3.00 GiB  64.00 GiB
  step     833 ms (98% of full speed); copies 3.00 GiB out; lower bound for swaps alone: 827 ms
  machine  p100_pcie, 8.00 GiB per GPU, 12 GB/s out and 10 GB/s in
)");
}

TEST(SummaryTest, WhatMoreWouldGainIsFirstUnlessTheUserChose) {
  v1::RewriteReport report = Report(kPlanned);
  report.mutable_budget()->mutable_more_recompute()->set_recompute(v1::RECOMPUTE_ALL);
  report.mutable_budget()->mutable_more_recompute()->set_step_time_ns(416500000);
  EXPECT_THAT(
      FormatSummary(report),
      ::testing::StartsWith(
          "spillway: rewritten (strategy budget)\n"
          "  advice  with budget.recompute = ALL a step takes at most 416 ms: at least 2.00 "
          "times as fast\n"
          "  17 tensors will be swapped\n"));
  EXPECT_EQ(FormatSummary(report, "", Style(), RecomputeChoice::kGiven),
            FormatSummary(Report(kPlanned)));
}

TEST(SummaryTest, NamesOptionsAsTheReaderDoes) {
  v1::RewriteReport report;
  report.set_outcome(v1::OUTCOME_KEPT);
  report.set_summary("already_rewritten = REPLAN strips it first");
  const Style style(Style::Color::kOff, kLineWidth,
                    [](absl::string_view) { return std::string("a flag"); });
  EXPECT_THAT(FormatSummary(report, "", style), ::testing::HasSubstr("\n  a flag\n"));
}

// Next to nothing was swapped: said before all other warnings.
TEST(SummaryTest, WhatAPlanDoesNotDoComesFirst) {
  v1::RewriteReport report = Report(kPlanned);
  report.mutable_hardware()->set_preset_assumed(true);
  report.add_warnings()->set_message("another");
  v1::Warning& little = *report.add_warnings();
  little.set_code(v1::WARNING_CODE_LITTLE_SWAPPED);
  little.set_message("only 4 B are swapped");
  const std::string text = FormatSummary(report);
  ASSERT_THAT(text, ::testing::HasSubstr("is assumed"));
  EXPECT_LT(text.find("only 4 B are swapped"), text.find("is assumed"));
  EXPECT_LT(text.find("is assumed"), text.find("another"));
}

// Other figures of the machine than those of its memory are in the details; warnings come before
// advice, and the omitted ones are counted.
TEST(SummaryTest, ShortStaysShort) {
  v1::RewriteReport report = Report(kPlanned);
  for (int i = 0; i < 20; ++i) {
    report.add_warnings()->set_message(absl::StrCat("warning ", i));
    for (v1::Forecast* forecast :
         {report.mutable_forecast_before(), report.mutable_forecast_after()}) {
      v1::DeviceForecast* gpu = forecast->add_devices();
      gpu->set_device(absl::StrCat("/gpu:", i));
      gpu->set_peak_bytes((i + 1) * int64_t{1024});
    }
  }
  report.mutable_advice()->set_host_memory_variable("TF_GPU_HOST_MEM_LIMIT_IN_MB=70000");
  const std::string text = FormatSummary(report);
  EXPECT_LE(LinesOf(text), kSummaryLines) << text;
  EXPECT_THAT(text, ::testing::HasSubstr("18 others, at most  20.00 KiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("remarks in the details\n"));
  report.clear_warnings();
  report.mutable_forecast_before()->mutable_devices()->DeleteSubrange(1, 20);
  report.mutable_forecast_after()->mutable_devices()->DeleteSubrange(1, 20);
  EXPECT_THAT(
      FormatSummary(report),
      ::testing::HasSubstr("advice   set TF_GPU_HOST_MEM_LIMIT_IN_MB=70000 in the training job\n"));
}

// As long as the service writes it, in 20 of 20 and with the flag's name.
constexpr char kMayRunOut[] =
    "fits in 10 of 20 variations: TensorFlow may run out of memory; raise --allocator-reserve";

// With any other lines, of any length: the second line, whole, once.
TEST(SummaryTest, ThatItMayRunOutIsNeverLeftOut) {
  v1::RewriteReport report = Report(kPlanned);
  const std::string longest(4000, 'x');
  std::string words;
  while (words.size() < 4000) words += "word ";
  report.set_summary(words);
  report.mutable_hardware()->set_preset_assumed(true);
  report.set_stopped_early(true);
  report.set_same_bits(v1::SAME_BITS_NO);
  report.mutable_advice()->set_host_memory_variable(longest);
  report.mutable_advice()->set_same_bits_config_proto_text(words);
  report.mutable_budget()->mutable_more_recompute()->set_recompute(v1::RECOMPUTE_ALL);
  for (int code = 1; code < v1::WarningCode_ARRAYSIZE; ++code) {
    v1::Warning& warning = *report.add_warnings();
    warning.set_code(static_cast<v1::WarningCode>(code));
    warning.set_message(code == v1::WARNING_CODE_MAY_RUN_OUT ? kMayRunOut : words + longest);
  }
  const std::string line = absl::StrCat("\n  warning  ", kMayRunOut, "\n");
  for (const std::string& text : {FormatSummary(report, longest), FormatDetails(report, longest)}) {
    EXPECT_EQ(text.find(line), text.find('\n')) << text;
    EXPECT_EQ(text.find(kMayRunOut), text.rfind(kMayRunOut)) << text;
  }
  // One line, which begins with the count, however narrow.
  const std::string narrow = FormatSummary(report, "", Style(Style::Color::kOff, 60));
  EXPECT_THAT(narrow, ::testing::ContainsRegex("^spillway[^\n]*\n  warning  fits in 10 of 20 "));
  report.clear_warnings();
  EXPECT_THAT(FormatSummary(report), ::testing::Not(::testing::HasSubstr("may run out")));
}

TEST(SummaryTest, ShortSaysWhetherItFitsWhereThatIsNotSure) {
  v1::RewriteReport report = Report(kPlanned);
  report.mutable_forecast_after()->set_fit(v1::FIT_UNKNOWN);
  report.mutable_forecast_after()->add_fit_unknown()->set_message("give step.batch_size");
  EXPECT_THAT(FormatSummary(report), ::testing::HasSubstr("  fits     unknown: give "));
  report.mutable_forecast_after()->set_fit(v1::FIT_DOES_NOT_FIT);
  report.mutable_forecast_after()->mutable_out_of_memory()->set_budget_bytes(8'000'000'000);
  EXPECT_THAT(FormatSummary(report), ::testing::HasSubstr("  fits     no: the GPU would need "));
  EXPECT_EQ(FormatSummary(Report("outcome: OUTCOME_NOTHING_TO_DO")),
            "spillway: nothing to do, the graph is unchanged\n");
}

TEST(TextTableTest, SumsWithUnknownSizes) {
  EXPECT_EQ(KnownBytes(0, 0), "0 B");
  EXPECT_EQ(KnownBytes(1536, 0), "1.50 KiB");
  EXPECT_EQ(KnownBytes(1536, 2), ">= 1.50 KiB");
  EXPECT_EQ(KnownBytes(0, 2), "-");
}

TEST(TextTableTest, WrapBreaksAtSpacesOnly) {
  EXPECT_EQ(Wrap("a bc def", 4), "a bc\ndef");
  EXPECT_EQ(Wrap("abcdef g", 3), "abcdef\ng");
  EXPECT_EQ(Wrap("", 3), "");
}

}  // namespace
}  // namespace spillway::text
