// Reads the fields of one serialized protobuf message without knowing its schema, on protobuf's own
// CodedInputStream. For messages inside a graph whose bytes are not trusted.
#ifndef SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_
#define SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace spillway::core {

// Iterates over the fields of `bytes`, in order. The views it gives point into `bytes`.
//
//   WireReader reader(bytes);
//   while (reader.Next()) { if (reader.IsBytes(3)) Use(reader.bytes()); }
//   if (!reader.ok()) return ...;
class WireReader {
 public:
  // REQUIRES: bytes.size() <= INT_MAX.
  explicit WireReader(absl::string_view bytes)
      : data_(bytes),
        stream_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  // Moves to the next field. False at the end, or if the bytes are malformed (then ok() is false).
  bool Next() {
    begin_ = stream_.CurrentPosition();
    const uint32_t tag = stream_.ReadTag();
    if (tag == 0) {
      ok_ = ok_ && begin_ == static_cast<int>(data_.size());
      return false;
    }
    field_ = tag >> 3;
    type_ = tag & 7;
    using google::protobuf::internal::WireFormatLite;
    switch (type_) {
      case WireFormatLite::WIRETYPE_VARINT:
        ok_ = stream_.ReadVarint64(&number_);
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        uint32_t size = 0;
        ok_ = stream_.ReadVarint32(&size);
        const int begin = stream_.CurrentPosition();
        ok_ = ok_ && size <= data_.size() - begin && stream_.Skip(static_cast<int>(size));
        if (ok_) bytes_ = data_.substr(begin, size);
        break;
      }
      case WireFormatLite::WIRETYPE_FIXED32: {
        uint32_t value = 0;
        ok_ = stream_.ReadLittleEndian32(&value);
        number_ = value;
        break;
      }
      default:
        ok_ = WireFormatLite::SkipField(&stream_, tag);
    }
    return ok_;
  }

  bool ok() const { return ok_; }

  // Of the current field: its number, and whether it is one of that number and wire type.
  uint32_t field() const { return field_; }
  bool IsBytes(uint32_t field) const { return field_ == field && type_ == 2; }
  bool IsVarint(uint32_t field) const { return field_ == field && type_ == 0; }
  bool IsFixed32(uint32_t field) const { return field_ == field && type_ == 5; }

  // Of the current field: the payload of a length-delimited one, the value of a varint or fixed32,
  // and the whole of it with its tag.
  absl::string_view bytes() const { return bytes_; }
  uint64_t number() const { return number_; }
  absl::string_view whole() const {
    return data_.substr(begin_, stream_.CurrentPosition() - begin_);
  }

 private:
  absl::string_view data_;
  google::protobuf::io::CodedInputStream stream_;
  int begin_ = 0;
  uint32_t field_ = 0;
  uint32_t type_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_WIRE_READER_H_
