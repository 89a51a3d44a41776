// Protobuf's wire format by hand, for bytes that no serializer would write.
#ifndef SPILLWAY_TESTS_TESTING_RAW_BYTES_H_
#define SPILLWAY_TESTS_TESTING_RAW_BYTES_H_

#include <cstdint>
#include <string>

namespace spillway::testing {

// A varint in `padding` more bytes than it needs.
inline std::string RawVarint(uint64_t value, int padding = 0) {
  std::string out;
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  for (; padding > 0; --padding) {
    out.push_back(static_cast<char>(value | 0x80));
    value = 0;
  }
  out.push_back(static_cast<char>(value));
  return out;
}

// A length-delimited field; its length is written with `padding` superfluous bytes.
inline std::string RawField(uint32_t number, const std::string& payload, int padding = 0) {
  return RawVarint(number << 3 | 2) + RawVarint(payload.size(), padding) + payload;
}

// A varint field.
inline std::string RawNumber(uint32_t number, uint64_t value) {
  return RawVarint(number << 3) + RawVarint(value);
}

// A group, a wire format that proto3 no longer has.
inline std::string RawGroup(uint32_t number, const std::string& inside) {
  return RawVarint(number << 3 | 3) + inside + RawVarint(number << 3 | 4);
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RAW_BYTES_H_
