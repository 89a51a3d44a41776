#include "rewrite_core/base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

namespace spillway::core {
namespace {

// Bit by bit, by the definition in RFC 3720 (section 12.1 with the reflected polynomial).
uint32_t NaiveCrc32c(const std::string& bytes) {
  uint32_t rest = 0xffffffff;
  for (const unsigned char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((rest ^ (byte >> bit)) & 1) != 0;
      rest = (rest >> 1) ^ (carry ? 0x82f63b78 : 0);
    }
  }
  return ~rest;
}

TEST(Crc32cTest, KnownAnswers) {
  std::string counting(32, '\0');
  std::iota(counting.begin(), counting.end(), 0);
  const std::string counting_down(counting.rbegin(), counting.rend());
  const struct {
    std::string bytes;
    uint32_t crc;
  } cases[] = {
      // RFC 3720, appendix B.4.
      {std::string(32, '\0'), 0x8a9136aa},
      {std::string(32, '\xff'), 0x62a8ab43},
      {counting, 0x46dd794e},
      {counting_down, 0x113fdb5c},
      // The check value of CRC-32C in the catalogue of CRC algorithms (reveng).
      {"123456789", 0xe3069283},
      {"", 0},
  };
  for (const auto& known : cases) {
    EXPECT_EQ(ExtendCrc32c(0, known.bytes), known.crc);
    EXPECT_EQ(ExtendCrc32cByTable(0, known.bytes), known.crc);
    EXPECT_EQ(*Crc32cOf(known.bytes, StopToken()), known.crc);
  }
}

TEST(Crc32cTest, AnyLengthFromAnyPlaceInAnyPieces) {
  std::mt19937 random(1);
  std::string bytes(300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size < 40; ++size) {
      const std::string part = bytes.substr(begin, size);
      const absl::string_view in_place = absl::string_view(bytes).substr(begin, size);
      EXPECT_EQ(ExtendCrc32c(0, in_place), NaiveCrc32c(part)) << begin << " " << size;
      EXPECT_EQ(ExtendCrc32cByTable(0, in_place), NaiveCrc32c(part)) << begin << " " << size;
    }
  }
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const absl::string_view whole = bytes;
    EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, whole.substr(0, cut)), whole.substr(cut)),
              NaiveCrc32c(bytes));
  }
}

// More than one stride.
TEST(Crc32cTest, LargeOnesLookAtTheStopToken) {
  const std::string large(33 << 20, 'a');
  EXPECT_EQ(*Crc32cOf(large, StopToken()), ExtendCrc32cByTable(0, large));
  const StopToken stop = StopToken::AfterStepsForTest(1);
  EXPECT_EQ(Crc32cOf(large, stop).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace spillway::core
