// Appends protobuf fields to a string, in the encoding that protobuf itself writes.
#ifndef SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_
#define SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"

namespace spillway::core {

inline void AppendVarint(uint64_t value, std::string* out) {
  uint8_t buffer[10];  // The longest varint.
  const uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, buffer);
  out->append(reinterpret_cast<const char*>(buffer), end - buffer);
}

inline void AppendVarintField(uint32_t field, uint64_t value, std::string* out) {
  AppendVarint(field << 3, out);
  AppendVarint(value, out);
}

inline void AppendBytesField(uint32_t field, absl::string_view bytes, std::string* out) {
  AppendVarint(field << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_WIRE_WRITER_H_
