#include "client_lib/text/explore_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/text/parsed.h"

namespace spillway::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Exploration(const std::string& text,
                        RecomputeChoice recompute = RecomputeChoice::kDefault) {
  return FormatExploration(Parse<v1::ExploreReport>(text), Style(), recompute);
}

// Only where swapping costs time, and the user has not chosen.
TEST(ExploreTextTest, MoreRecomputationMayGain) {
  const auto with_speed = [](double share) {
    return absl::StrCat(kMachine, R"(
      size_is_batch: true largest_fitting_size_swapped: 64 largest_fit_swapped: FIT_FITS
      sizes { size: 64 unswapped { fit: FIT_DOES_NOT_FIT } swapped { fit: FIT_FITS }
              full_speed_sizes_per_s: 100 swapped_sizes_per_s: )",
                        100 * share, " }");
  };
  constexpr char kAdvice[] = "may be faster with budget.recompute = ALL";
  EXPECT_THAT(Exploration(with_speed(0.9)), HasSubstr(kAdvice));
  EXPECT_THAT(Exploration(with_speed(0.96)), Not(HasSubstr(kAdvice)));
  EXPECT_THAT(Exploration(with_speed(0.9), RecomputeChoice::kGiven), Not(HasSubstr(kAdvice)));
}

TEST(ExploreTextTest, SizesOfWhichItIsUnknown) {
  const std::string text = Exploration(std::string(kMachine) + R"(
    size_is_batch: true largest_fitting_size: 64 largest_fit: FIT_UNKNOWN
    largest_fitting_size_swapped: 128 largest_fit_swapped: FIT_UNKNOWN
    sizes { size: 64 steps_per_s: 5 sizes_per_s: 320 full_speed_sizes_per_s: 320
            unswapped { fit: FIT_UNKNOWN fit_unknown { message: "Of conv." } }
            swapped { fit: FIT_UNKNOWN } swapped_steps_per_s: 5 swapped_sizes_per_s: 320 }
    sizes { size: 128 full_speed_sizes_per_s: 400
            unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" } }
            swapped { fit: FIT_UNKNOWN } swapped_steps_per_s: 2.5 swapped_sizes_per_s: 320 })");
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nbatch 128 may be the largest that fits into 8.00 GiB per GPU\n"
                              "  unswapped  batch 64: 320.0 examples/s, unknown whether it "
                              "fits\n"),
                    HasSubstr("  largest    batch 128: 320.0 examples/s, 80% of full speed, "
                              "with swapping, unknown whether it fits\n"),
                    HasSubstr("  unknown    Of conv.\n")));
}

TEST(ExploreTextTest, SizesWithThePlansOfOthers) {
  const auto row = [](int size, const char* plan) {
    return absl::StrCat("sizes { size: ", size,
                        " full_speed_sizes_per_s: 400 unswapped { fit: "
                        "FIT_DOES_NOT_FIT } swapped { fit: FIT_FITS } swapped_steps_per_s: 2 "
                        "swapped_sizes_per_s: 320 ",
                        plan, " }\n");
  };
  const std::string report =
      absl::StrCat(kMachine, "size_is_batch: true\n", row(64, "plan_of_size: 96"), row(96, ""));
  EXPECT_THAT(Exploration(report),
              HasSubstr("  plans    batch 64 is as fast with the plan of batch 96: rewrite at that "
                        "size with --save-plan,\n           then apply the plan\n"));
  EXPECT_THAT(Exploration(report + row(32, "plan_of_size: 96")), HasSubstr("(1 more: --json)"));
}

TEST(ExploreTextTest, Sizes) {
  EXPECT_EQ(Exploration(std::string(kMachine) + R"(
    size_is_batch: true largest_fitting_size: 64 largest_fit: FIT_FITS
    sizes { size: 64 steps_per_s: 5 sizes_per_s: 320
            unswapped { fit: FIT_FITS step_time_ns: 200000000
                        devices { peak_bytes: 4294967296 } devices { peak_bytes: 5368709120 } } }
    sizes { size: 128
            unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" budget_bytes: 8589934592 }
                        devices { peak_bytes: 9663676416 } } }
    targets: "train_op")"),
            R"(  batch  fits  peak memory    step  examples/s
  64      yes     5.00 GiB  200 ms       320.0
  128      no     9.00 GiB       -           -
batch 64 is the largest that fits unswapped into 8.00 GiB per GPU
  unswapped  batch 64: 320.0 examples/s
  fastest    batch 64: 320.0 examples/s
  machine    p100_pcie, 8.00 GiB per GPU, 64.00 GiB of host memory, 12 GB/s out and 10 GB/s in
  times      of steps launched ahead, as TensorFlow runs them
  step       all that train_op needs
)");
}

TEST(ExploreTextTest, SizesOfImagesAndNoneThatFits) {
  EXPECT_THAT(Exploration(std::string(kMachine) + R"(
    largest_fitting_size: 224 largest_fit: FIT_FITS
    sizes { size: 224 steps_per_s: 5 sizes_per_s: 1120
            unswapped { fit: FIT_FITS step_time_ns: 200000000 } })"),
              AllOf(HasSubstr("\nsize 224 is the largest that fits unswapped into 8.00 GiB per "
                              "GPU\n  unswapped  size 224: 5.0 steps/s\n"),
                    Not(HasSubstr("1120"))));
  EXPECT_THAT(Exploration(std::string(kMachine) + R"(
    size_is_batch: true
    sizes { size: 1 unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" budget_bytes: 8589934592 }
                                devices { peak_bytes: 9663676416 } } })"),
              HasSubstr("\nnot even batch 1 fits unswapped: the GPU would need 9.00 GiB, 1.00 GiB "
                        "more than its 8.00 GiB\n"));
  EXPECT_THAT(Exploration(std::string(kMachine) + R"(
    sizes { size: 1 unswapped { fit: FIT_FITS step_time_ns: 1 } })"),
              HasSubstr("\nwith unlimited memory\n"));
}

// 320 of the 400 examples per second that there were if memory were no matter: 80%; no plan has
// more than 348 of them: 87%.
TEST(ExploreTextTest, SizesWithSwapping) {
  EXPECT_EQ(
      Exploration(std::string(kMachine) + R"(
    size_is_batch: true largest_fitting_size: 64 largest_fit: FIT_FITS
    largest_fitting_size_swapped: 128 largest_fit_swapped: FIT_FITS
    sizes { size: 64 steps_per_s: 5 sizes_per_s: 320 full_speed_sizes_per_s: 320
            bound_sizes_per_s: 320
            unswapped { fit: FIT_FITS step_time_ns: 200000000 devices { peak_bytes: 5368709120 } }
            swapped { fit: FIT_FITS step_time_ns: 200000000 devices { peak_bytes: 5368709120 } }
            swapped_steps_per_s: 5 swapped_sizes_per_s: 320 }
    sizes { size: 128 full_speed_sizes_per_s: 400 bound_sizes_per_s: 348
            unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" budget_bytes: 8589934592 }
                        devices { peak_bytes: 9663676416 } }
            swapped { fit: FIT_FITS devices { peak_bytes: 8053063680 }
                      devices { peak_bytes: 1073741824 } }
            swapped_steps_per_s: 2.5 swapped_sizes_per_s: 320 }
    sizes { size: 256 full_speed_sizes_per_s: 410
            unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" budget_bytes: 8589934592 }
                        devices { peak_bytes: 19327352832 } } }
    targets: "train_op")"),
      R"(  batch  fits  peak memory  examples/s     swapped  peak memory  examples/s  full speed  bound
  64      yes     5.00 GiB       320.0  not needed     5.00 GiB       320.0        100%   100%
  128      no     9.00 GiB           -         yes     7.50 GiB       320.0         80%    87%
  256      no    18.00 GiB           -          no            -           -           -      -
batch 128 is the largest that fits into 8.00 GiB per GPU
  unswapped  batch 64: 320.0 examples/s
  largest    batch 128: 320.0 examples/s, 80% of full speed, with swapping
  fastest    batch 64: 320.0 examples/s
  >= 95%     batch 64: 320.0 examples/s
  advice     where tensors are swapped, steps may be faster with budget.recompute = ALL
  machine    p100_pcie, 8.00 GiB per GPU, 64.00 GiB of host memory, 12 GB/s out and 10 GB/s in
  times      of steps launched ahead, as TensorFlow runs them
  step       all that train_op needs
)");
}

TEST(ExploreTextTest, SizesThatFitWithSwappingAloneOrNotAtAll) {
  const std::string too_large = R"(
    sizes { size: 8 full_speed_sizes_per_s: 400
            unswapped { fit: FIT_DOES_NOT_FIT out_of_memory { node: "conv" budget_bytes: 8589934592 }
                        devices { peak_bytes: 9663676416 } })";
  EXPECT_THAT(
      Exploration(std::string(kMachine) + too_large + "}"),
      HasSubstr("\nnot even size 8 fits, with swapping or without: the GPU would need 9.00 GiB, "
                "1.00 GiB more than\n  its 8.00 GiB\n"));
  EXPECT_THAT(
      Exploration(std::string(kMachine) + too_large +
                  "swapped { fit: FIT_FITS } swapped_steps_per_s: 12.5 swapped_sizes_per_s: "
                  "100 } largest_fitting_size_swapped: 8"),
      HasSubstr("\n  largest  size 8: 12.5 steps/s, 25% of full speed, with swapping\n"));
}

}  // namespace
}  // namespace spillway::text
