// Appends protobuf fields to a string, in the encoding that protobuf itself writes.
#ifndef SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_
#define SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"

namespace spillway::core {

// The bytes of a varint, and of a length-delimited field whose number is below 16.
inline size_t VarintSize(uint64_t value) {
  return google::protobuf::io::CodedOutputStream::VarintSize64(value);
}
inline size_t BytesFieldSize(size_t size) { return 1 + VarintSize(size) + size; }

inline void AppendVarint(uint64_t value, std::string* out) {
  if (value < 0x80) {
    out->push_back(static_cast<char>(value));
    return;
  }
  uint8_t buffer[10];  // The longest varint.
  const uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, buffer);
  out->append(reinterpret_cast<const char*>(buffer), end - buffer);
}

inline void AppendVarintField(uint32_t field, uint64_t value, std::string* out) {
  AppendVarint(field << 3, out);
  AppendVarint(value, out);
}

inline void AppendBytesField(uint32_t field, absl::string_view bytes, std::string* out) {
  if (field < 16 && bytes.size() < 0x80) {  // Nearly all.
    const char header[] = {static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())};
    out->append(header, sizeof(header));
  } else {
    AppendVarint(field << 3 | 2, out);
    AppendVarint(bytes.size(), out);
  }
  out->append(bytes.data(), bytes.size());
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_
