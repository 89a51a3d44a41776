#include "rewrite_core/base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace spillway::core {
namespace {

// The polynomial's bits from the lowest power to the highest (RFC 3720, section 12.1: 0x1edc6f41,
// reflected).
constexpr uint32_t kPolynomial = 0x82f63b78;

// 2 ms by instructions, 10 by tables.
constexpr size_t kStrideBytes = 16 << 20;

constexpr size_t kWord = sizeof(uint64_t);

using Tables = std::array<std::array<uint32_t, 256>, kWord>;

// [0][b]: the remainder of the byte b; [k][b]: of b and k bytes of zeros after it.
constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < kWord; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t AddByte(uint32_t rest, char byte) {
  return (rest >> 8) ^ kTables[0][(rest ^ static_cast<unsigned char>(byte)) & 0xff];
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                               absl::string_view bytes) {
  uint64_t rest = ~crc;
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), kWord);
    rest = _mm_crc32_u64(rest, word);
  }
  auto low = static_cast<uint32_t>(rest);
  for (const char byte : bytes) low = _mm_crc32_u8(low, static_cast<unsigned char>(byte));
  return ~low;
}
#endif

}  // namespace

// Eight tables process eight bytes at a time: M. E. Kounavis and F. L. Berry, "A Systematic
// Approach to Building High Performance Software-based CRC Generators", ISCC 2005 (slicing by 8).
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes) {
  uint32_t rest = ~crc;
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord)) {
    uint32_t next = 0;
    for (size_t i = 0; i < kWord; ++i) {
      const uint32_t met = i < sizeof(rest) ? rest >> (8 * i) : 0;
      next ^= kTables[kWord - 1 - i][(met ^ static_cast<unsigned char>(bytes[i])) & 0xff];
    }
    rest = next;
  }
  for (const char byte : bytes) rest = AddByte(rest, byte);
  return ~rest;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCrc32cByTable(crc, bytes);
}

absl::StatusOr<uint32_t> Crc32cOf(absl::string_view bytes, const StopToken& stop) {
  uint32_t crc = 0;
  while (!bytes.empty()) {
    if (stop.ShouldStop(1)) return stop.status("checksum");
    const absl::string_view part = bytes.substr(0, kStrideBytes);
    crc = ExtendCrc32c(crc, part);
    bytes.remove_prefix(part.size());
  }
  return crc;
}

}  // namespace spillway::core
