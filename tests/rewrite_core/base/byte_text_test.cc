#include "rewrite_core/base/byte_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "tests/testing/sizes.h"

namespace spillway::core {
namespace {

TEST(ByteTextTest, TheLargestUnitOfWhichThereIsOne) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(int64_t{1} << 20), "1.00 MiB");
  EXPECT_EQ(BytesText(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(BytesText(int64_t{1} << 40), "1.00 TiB");
  EXPECT_EQ(BytesText(int64_t{1} << 50), "1024.00 TiB");
  EXPECT_EQ(BytesText(-1023), "-1023 B");
  EXPECT_EQ(BytesText(-1536), "-1.50 KiB");
  // The preset p100_pcie, as the README shows it.
  EXPECT_EQ(BytesText(15'955'722'240), "14.86 GiB");
}

TEST(ByteTextTest, TheLargestNumberHasAText) {
  EXPECT_EQ(BytesText(std::numeric_limits<int64_t>::max()), "8388608.00 TiB");
}

TEST(ByteTextTest, Durations) {
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0 ns");
  EXPECT_EQ(DurationText(absl::Nanoseconds(999)), "999 ns");
  EXPECT_EQ(DurationText(absl::Nanoseconds(1'500)), "1.5 us");
  EXPECT_EQ(DurationText(absl::Microseconds(10)), "0.01 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(450)), "0.45 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(12'340)), "12.3 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(904'400)), "904 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(9'999)), "9999 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(12'500)), "12.5 s");
  EXPECT_EQ(DurationText(absl::Seconds(1'200)), "1200 s");
  EXPECT_EQ(DurationText(-absl::Milliseconds(2)), "-2.0 ms");
}

TEST(CountTextTest, OneIsNoPlural) {
  EXPECT_EQ(CountText(0, "swap"), "0 swaps");
  EXPECT_EQ(CountText(1, "swap"), "1 swap");
  EXPECT_EQ(CountText(2, "swap"), "2 swaps");
}

TEST(ParseBytesTest, TheGrammarOfAllPrograms) {
  const auto sizes = size_table::ReadSizes();
  EXPECT_GE(sizes.size(), size_table::kMinSizes);
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(ParseBytes(text).value_or(-1), bytes) << text;
}

}  // namespace
}  // namespace spillway::core
