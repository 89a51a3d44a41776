#include "rewrite_core/base/byte_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/testing/sizes.h"

namespace spillway::core {
namespace {

TEST(ByteTextTest, TheLargestUnitOfWhichThereIsOne) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(int64_t{1} << 20), "1.00 MiB");
  EXPECT_EQ(BytesText(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(BytesText(int64_t{1} << 40), "1.00 TiB");
  EXPECT_EQ(BytesText(int64_t{1} << 50), "1.00 PiB");
  // The preset p100_pcie, as the README shows it.
  EXPECT_EQ(BytesText(15'955'722'240), "14.86 GiB");
}

TEST(ByteTextTest, TheLargestNumberHasAText) {
  EXPECT_EQ(BytesText(std::numeric_limits<int64_t>::max()), "8.00 EiB");
}

TEST(ParseBytesTest, TheGrammarOfAllPrograms) {
  const auto sizes = size_table::ReadSizes();
  EXPECT_GE(sizes.size(), size_table::kLeastSizes);
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(ParseBytes(text).value_or(-1), bytes) << text;
}

}  // namespace
}  // namespace spillway::core
