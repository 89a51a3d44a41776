// Reads the fields of one serialized protobuf message without knowing its schema. For messages
// inside a graph with untrusted bytes.
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_
#define SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace spillway::core {

// Iterates over the fields of `bytes`, in order. The returned views point into `bytes`.
//
//   WireReader reader(bytes);
//   while (reader.Next()) { if (reader.IsBytes(3)) Use(reader.bytes()); }
//   if (!reader.ok()) return ...;
class WireReader {
 public:
  // REQUIRES: bytes.size() <= INT_MAX.
  explicit WireReader(absl::string_view bytes)
      : begin_(bytes.data()), next_(begin_), end_(begin_ + bytes.size()) {}

  // Moves to the next field. False at the end, or if the bytes are malformed (then ok() is false).
  bool Next() {
    begin_ = next_;
    if (next_ == end_) return false;
    // Nearly all fields have the form: a one-byte tag, a number or size below 2^14, bytes. They
    // dominate the cost of reading a graph; protobuf's own reader handles the others.
    const size_t left = end_ - next_;
    if (left < 2) return NextOther();
    const auto* p = reinterpret_cast<const unsigned char*>(next_);
    const uint32_t tag = p[0];
    uint32_t number = p[1];
    size_t header = 2;
    if (number >= 0x80) {
      if (left < 3 || p[2] >= 0x80) return NextOther();
      number = (number & 0x7f) | uint32_t{p[2]} << 7;
      header = 3;
    }
    if (tag >= 0x80) return NextOther();
    field_ = tag >> 3;
    type_ = tag & 7;
    if (type_ == kBytes && number <= left - header) {
      bytes_ = absl::string_view(next_ + header, number);
      next_ += header + number;
      return true;
    }
    if (type_ != kVarint || tag == 0) return NextOther();
    number_ = number;
    next_ += header;
    return true;
  }

  bool ok() const { return ok_; }

  // The current field's number and wire type (protobuf's WireType), and whether it has a given
  // number and a matching wire type.
  uint32_t field() const { return field_; }
  uint32_t wire_type() const { return type_; }
  bool IsBytes(uint32_t field) const { return field_ == field && type_ == kBytes; }
  bool IsVarint(uint32_t field) const { return field_ == field && type_ == kVarint; }
  bool IsFixed32(uint32_t field) const { return field_ == field && type_ == kFixed32; }

  // For the current field: the payload if length-delimited, the value of a varint or fixed32, and
  // the whole field with its tag.
  absl::string_view bytes() const { return bytes_; }
  uint64_t number() const { return number_; }
  absl::string_view whole() const { return {begin_, static_cast<size_t>(next_ - begin_)}; }
  // The unread bytes.
  absl::string_view rest() const { return {next_, static_cast<size_t>(end_ - next_)}; }

 private:
  static constexpr uint32_t kVarint = 0, kBytes = 2, kFixed32 = 5;

  // Next, for any field.
  bool NextOther();

  const char* begin_;  // Start of the current field.
  const char* next_;   // Just past it.
  const char* end_;
  uint32_t field_ = 0;
  uint32_t type_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
  bool ok_ = true;
};

// The payload of the last length-delimited field with that number, which is the one that counts;
// empty if none.
inline absl::string_view LastPayload(absl::string_view message, uint32_t field) {
  absl::string_view found;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.IsBytes(field)) found = reader.bytes();
  }
  return found;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_
