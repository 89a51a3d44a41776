#include "server/base/wire.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/message_cost.h"
#include "rewrite_core/base/wire_reader.h"
#include "server/base/limit_error.h"

namespace spillway::server {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kBytesType = 2;  // Protobuf's wire type of length-delimited fields.

// Options of some hundred bytes are part of a request's fixed cost.
constexpr int64_t kFreeBytes = 64 << 10;

void AppendVarint(uint64_t value, std::string* to) {
  uint8_t buffer[10];
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, buffer);
  to->append(reinterpret_cast<const char*>(buffer), end - buffer);
}

// Reads a varint and removes it from `bytes`; false without one.
bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

grpc::Slice OnePiece(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok()) return slice;
  std::vector<grpc::Slice> slices;
  std::string all;
  if (!bytes.Dump(&slices).ok()) return slice;  // An empty message.
  all.reserve(bytes.Length());
  for (const grpc::Slice& part : slices) all.append(View(part).data(), part.size());
  return ToSlice(std::move(all));
}

std::vector<absl::string_view> OnlyField(int field, const grpc::ByteBuffer& bytes,
                                         std::vector<grpc::Slice>* slices) {
  if (!bytes.Dump(slices).ok() || slices->empty()) return {};  // An empty message has none.
  absl::string_view first = View(slices->front());
  uint64_t tag = 0, size = 0;
  // If the first piece ends within these, the chunk is too small to matter.
  if (!TakeVarint(&first, &tag) || !TakeVarint(&first, &size) ||
      tag != (static_cast<uint32_t>(field) << 3 | kBytesType)) {
    return {};
  }
  std::vector<absl::string_view> parts = {first};
  uint64_t there = first.size();
  for (size_t i = 1; i < slices->size(); ++i) {
    parts.push_back(View((*slices)[i]));
    there += (*slices)[i].size();
  }
  if (there != size) return {};
  return parts;
}

absl::string_view SplitField(int field, absl::string_view message, std::string* rest) {
  absl::string_view payload;
  core::WireReader reader(message);
  while (reader.Next()) {
    if (reader.IsBytes(field)) {
      payload = reader.bytes();
    } else {
      rest->append(reader.whole().data(), reader.whole().size());
    }
  }
  if (!reader.ok()) rest->append(reader.rest().data(), reader.rest().size());
  return payload;
}

absl::Status ParseOptions(absl::string_view bytes, int64_t max_option_bytes,
                          absl::FunctionRef<absl::Status(int64_t)> hold,
                          google::protobuf::Message* message) {
  const core::MessageCost found = core::CostOf(*message->GetDescriptor(), bytes);
  const int64_t option_bytes = static_cast<int64_t>(bytes.size()) - found.blob_bytes;
  if (option_bytes > max_option_bytes) {
    return LimitError(
        absl::StrCat("the options have ", option_bytes, " bytes and this server takes at most ",
                     max_option_bytes, ": give fewer feeds, targets, scopes or sizes"),
        option_bytes, max_option_bytes);
  }
  if (found.memory_bytes > kFreeBytes) {
    if (absl::Status status = hold(found.memory_bytes - kFreeBytes); !status.ok()) return status;
  }
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_STREAM,
        absl::StrCat("these bytes are not a serialized ", message->GetDescriptor()->full_name(),
                     "; send one, as clients generated from the .proto files do"));
  }
  return absl::OkStatus();
}

grpc::Slice ToSlice(std::string bytes) {
  auto* owned = new std::string(std::move(bytes));
  return grpc::Slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
}

grpc::Slice SharedSlice(const std::shared_ptr<const std::string>& bytes, size_t begin,
                        size_t size) {
  auto* owner = new std::shared_ptr<const std::string>(bytes);
  return grpc::Slice(
      const_cast<char*>(bytes->data() + begin), size,
      [](void* shared) { delete static_cast<std::shared_ptr<const std::string>*>(shared); }, owner);
}

grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice = ToSlice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message, int field,
                          grpc::Slice payload) {
  return FieldToBuffer(message.SerializeAsString(), field, std::move(payload));
}

grpc::ByteBuffer FieldToBuffer(std::string message, int field, grpc::Slice payload) {
  AppendVarint(static_cast<uint32_t>(field) << 3 | kBytesType, &message);
  AppendVarint(payload.size(), &message);
  const grpc::Slice slices[] = {ToSlice(std::move(message)), std::move(payload)};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace spillway::server
