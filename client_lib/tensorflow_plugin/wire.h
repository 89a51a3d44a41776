// Reads and writes the fields of a serialized protobuf message. The plug-in uses only a few fields
// of GraphDef and NodeDef, and so avoids linking protobuf, of which TensorFlow has its own copy in
// the process.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_WIRE_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::tensorflow_plugin {

// Iterates over the fields of `bytes`, in order. The views point into `bytes`.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field. Returns false at the end, or if the bytes are malformed (`ok()` is
  // false).
  bool Next() {
    if (rest_.empty()) return false;
    const std::string_view begin = rest_;
    uint64_t tag = 0, number = 0;
    ok_ = Varint(&tag);
    if (!ok_) return false;
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = tag & 7;
    payload_ = {};
    switch (type_) {
      case kVarint:
        ok_ = Varint(&number);
        break;
      case kFixed64:
        ok_ = Take(8);
        break;
      case kBytes:
        ok_ = Varint(&number) && number <= rest_.size() && Take(number);
        break;
      case kFixed32:
        ok_ = Take(4);
        break;
      default:
        ok_ = false;
    }
    if (ok_) whole_ = begin.substr(0, begin.size() - rest_.size());
    return ok_;
  }

  bool ok() const { return ok_; }
  // Of the current field.
  bool IsBytes(uint32_t field) const { return field_ == field && type_ == kBytes; }
  std::string_view payload() const { return payload_; }
  std::string_view whole() const { return whole_; }  // Includes the tag.

 private:
  static constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Take(size_t size) {
    if (size > rest_.size()) return false;
    payload_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_, payload_, whole_;
  uint32_t field_ = 0;
  uint64_t type_ = 0;
  bool ok_ = true;
};

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline void AppendBytesField(uint32_t field, std::string_view bytes, std::string* out) {
  AppendVarint(field << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_WIRE_H_
