#include "rewrite_core/base/message_cost.h"

#include "google/protobuf/wire_format_lite.h"
#include "rewrite_core/base/wire_reader.h"

namespace spillway::core {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Sizes for protobuf 3.21, including allocator overhead: a message without its fields, the maximum
// that each field takes in it (a repeated one has a size, a capacity and a pointer), a string, an
// unknown field (a string in a list). Lists double, so that an item takes up to two slots.
constexpr int64_t kMessageBytes = 64;
constexpr int64_t kFieldBytes = 24;
constexpr int64_t kStringBytes = 48;
constexpr int64_t kUnknownFieldBytes = 80;
constexpr int64_t kPointerBytes = 2 * 8;
constexpr int64_t kNumberBytes = 2 * 8;

// An unknown group is a message of unknown fields, of at least two bytes each.
constexpr int64_t kUnknownGroupBytesPerByte = kUnknownFieldBytes / 2;

// Protobuf's parser rejects deeper ones.
constexpr int kMaxDepth = 100;

// Whether the parser accepts this wire type for the field. If not, it keeps an unknown field.
bool IsKnown(const FieldDescriptor& field, WireFormatLite::WireType type) {
  const WireFormatLite::WireType own =
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
  return type == own || (type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && field.is_packable());
}

int64_t UnknownCost(const WireReader& reader, WireFormatLite::WireType type) {
  switch (type) {
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return kUnknownFieldBytes + static_cast<int64_t>(reader.bytes().size());
    case WireFormatLite::WIRETYPE_START_GROUP:
      return kUnknownFieldBytes +
             kUnknownGroupBytesPerByte * static_cast<int64_t>(reader.whole().size());
    default:
      return kUnknownFieldBytes;
  }
}

void Add(const google::protobuf::Descriptor& type, absl::string_view bytes, int depth,
         MessageCost* cost) {
  cost->memory_bytes += kMessageBytes + kFieldBytes * type.field_count() + kPointerBytes;
  for (WireReader reader(bytes); reader.Next();) {
    const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(reader.field()));
    const auto wire_type = static_cast<WireFormatLite::WireType>(reader.wire_type());
    if (field == nullptr || !IsKnown(*field, wire_type)) {
      cost->memory_bytes += UnknownCost(reader, wire_type);
      continue;
    }
    const bool has_payload = wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const int64_t size = has_payload ? static_cast<int64_t>(reader.bytes().size()) : 0;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (depth < kMaxDepth) Add(*field->message_type(), reader.bytes(), depth + 1, cost);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      cost->memory_bytes += kPointerBytes + kStringBytes + size;
      if (field->type() == FieldDescriptor::TYPE_BYTES) cost->blob_bytes += size;
    } else {
      // One number, or a packed list of numbers of at least one byte each.
      cost->memory_bytes += kNumberBytes * (has_payload ? size : 1);
    }
  }
}

}  // namespace

MessageCost CostOf(const google::protobuf::Descriptor& type, absl::string_view bytes) {
  MessageCost cost;
  Add(type, bytes, 0, &cost);
  return cost;
}

}  // namespace spillway::core
