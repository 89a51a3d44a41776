#include "rewrite_core/plan/fit_error.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const FitFailure& failure, const Hardware& hardware) {
  const absl::Status status =
      DoesNotFitError("no plan fits", failure, hardware, 4 << 20, FitRemedy());
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_DOES_NOT_FIT);
  return std::string(status.message());
}

TEST(FitErrorTest, NoBatchHelpsWhereWhatIsResidentIsTooMuch) {
  const Hardware hardware = *Hardware::FromOptions({});
  FitFailure failure;
  failure.resident_bytes = 4 << 20;  // As much as there is.
  EXPECT_THAT(Text(failure, hardware), HasSubstr("or take a smaller batch"));
  failure.resident_bytes += 1;
  EXPECT_THAT(Text(failure, hardware), Not(HasSubstr("batch")));
}

TEST(FitErrorTest, MemoryInPiecesHasARemedyOfItsOwn) {
  constexpr char kFraction[] = "hardware.internal_fragmentation_fraction";
  FitFailure failure;
  failure.node = "a";
  Hardware hardware = *Hardware::FromOptions({});
  EXPECT_THAT(Text(failure, hardware),
              AllOf(HasSubstr("or take a smaller batch"), Not(HasSubstr(kFraction))));
  failure.fragmented = true;
  EXPECT_THAT(Text(failure, hardware),
              AllOf(HasSubstr("free memory is fragmented"), HasSubstr(kFraction)));
  // Lost in chunks, it is the cause, and its remedy comes first.
  failure.in_chunks = true;
  EXPECT_THAT(
      Text(failure, hardware),
      AllOf(HasSubstr("in chunks of up to twice their tensor's size; have TensorFlow split"),
            Not(HasSubstr("fragmented;")), EndsWith("or take a smaller batch")));
  failure.in_chunks = false;
  // The host has another allocator.
  failure.on_host = true;
  EXPECT_THAT(Text(failure, hardware), Not(HasSubstr(kFraction)));
  // A remedy that was already tried is not suggested.
  failure.on_host = false;
  hardware.internal_fragmentation_fraction = 0.001;
  EXPECT_THAT(Text(failure, hardware), Not(HasSubstr(kFraction)));
}

}  // namespace
}  // namespace spillway::core
