// Between gRPC's bytes and messages. The service's methods are gRPC's raw ones: what a request will
// take in memory is known before it is parsed, large bytes are copied once or not at all, and a
// failed allocation is an exception of ours, not the end of the process.
//
// Thread safety: pure functions. They may throw std::bad_alloc.
#ifndef SPILLWAY_SERVER_WIRE_H_
#define SPILLWAY_SERVER_WIRE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace spillway::server {

inline absl::string_view View(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// In one piece; not copied if they came so.
grpc::Slice OnePiece(const grpc::ByteBuffer& bytes);

// If a message consists of one field of type bytes with this number: its payload, in the pieces in
// which it came; `slices` hold them. Empty otherwise.
std::vector<absl::string_view> OnlyField(int field, const grpc::ByteBuffer& bytes,
                                         std::vector<grpc::Slice>* slices);

// Takes `message` apart: the payload of its last field of type bytes with this number, which points
// into it, and all other bytes, which are appended to `rest`: what is no message, too.
absl::string_view SplitField(int field, absl::string_view message, std::string* rest);

// Parses the options in a request, all of it but its graphs: `bytes` of a message of the type of
// `message`. `hold` is asked first for what they will take in memory, in bytes, if that is more
// than every request has. Errors: its; LIMIT_EXCEEDED if they have more bytes than
// `max_option_bytes`, fields of type bytes (profiles) apart; INVALID_ARGUMENT (BAD_STREAM) if they
// are no such message.
absl::Status ParseOptions(absl::string_view bytes, int64_t max_option_bytes,
                          absl::FunctionRef<absl::Status(int64_t)> hold,
                          google::protobuf::Message* message);

grpc::Slice ToSlice(std::string bytes);
// `size` bytes of `bytes` from `begin` on, not copied.
grpc::Slice SharedSlice(const std::shared_ptr<const std::string>& bytes, size_t begin, size_t size);
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message);
// With one more field of type bytes behind the others.
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message, int field,
                          grpc::Slice payload);
// The same of a message that is serialized.
grpc::ByteBuffer FieldToBuffer(std::string message, int field, grpc::Slice payload);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WIRE_H_
