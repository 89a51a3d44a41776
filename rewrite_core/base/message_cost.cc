#include "rewrite_core/base/message_cost.h"

#include "rewrite_core/base/wire_reader.h"

namespace spillway::core {
namespace {

using google::protobuf::FieldDescriptor;

// Of protobuf 3.21, with the allocator's own: a message without its fields, what each field takes
// in it at most (a repeated one has a size, a capacity and a pointer), a string, an unknown field.
// Lists double, so that an item has up to two places in them.
constexpr int64_t kMessageBytes = 64;
constexpr int64_t kFieldBytes = 24;
constexpr int64_t kStringBytes = 48;
constexpr int64_t kUnknownFieldBytes = 64;
constexpr int64_t kPointerBytes = 2 * 8;
constexpr int64_t kNumberBytes = 2 * 8;

// Deeper ones protobuf's parser refuses.
constexpr int kMaxDepth = 100;

void Add(const google::protobuf::Descriptor& type, absl::string_view bytes, int depth,
         MessageCost* cost) {
  cost->memory_bytes += kMessageBytes + kFieldBytes * type.field_count() + kPointerBytes;
  for (WireReader reader(bytes); reader.Next();) {
    const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(reader.field()));
    const bool has_payload = reader.IsBytes(reader.field());
    const int64_t size = has_payload ? static_cast<int64_t>(reader.bytes().size()) : 0;
    if (field == nullptr) {
      cost->memory_bytes += kUnknownFieldBytes + size;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (has_payload && depth < kMaxDepth) {
        Add(*field->message_type(), reader.bytes(), depth + 1, cost);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      cost->memory_bytes += kPointerBytes + kStringBytes + size;
      if (field->type() == FieldDescriptor::TYPE_BYTES) cost->blob_bytes += size;
    } else {
      // One number, or a packed list of such, each of a byte at least.
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
