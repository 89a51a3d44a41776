// Conversion between gRPC's byte buffers and messages. The service uses gRPC's raw methods, so that
// a request's memory is known before it is parsed, large fields are copied at most once, and a
// failed allocation is an exception in the server's code, not the end of the process.
//
// Thread safety: pure functions. They may throw std::bad_alloc.
#ifndef SPILLWAY_SERVER_BASE_WIRE_H_
#define SPILLWAY_SERVER_BASE_WIRE_H_

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

// Returns the bytes in one piece; not copied if they already are.
grpc::Slice OnePiece(const grpc::ByteBuffer& bytes);

// If a message consists of a single field of type bytes with this number, returns its payload, in
// the pieces in which it arrived, which `slices` keep alive. Otherwise returns nothing.
std::vector<absl::string_view> OnlyField(int field, const grpc::ByteBuffer& bytes,
                                         std::vector<grpc::Slice>* slices);

// Splits `message`: returns the payload of its last field of type bytes with this number, which
// points into it, and appends all other bytes to `rest`, even if they are not a valid message.
absl::string_view SplitField(int field, absl::string_view message, std::string* rest);

// Parses the options in a request, i.e. all of it but its graphs: `bytes` of a message of the type
// of `message`. First calls `hold` with the bytes of memory that they will take, if that is more
// than every request has. Errors: those of `hold`; LIMIT_EXCEEDED if they exceed
// `max_option_bytes`, not counting fields of type bytes (profiles); INVALID_ARGUMENT (BAD_STREAM)
// if they are not such a message.
absl::Status ParseOptions(absl::string_view bytes, int64_t max_option_bytes,
                          absl::FunctionRef<absl::Status(int64_t)> hold,
                          google::protobuf::Message* message);

grpc::Slice ToSlice(std::string bytes);
// Returns `size` bytes of `bytes` from `begin` on, without copying.
grpc::Slice SharedSlice(const std::shared_ptr<const std::string>& bytes, size_t begin, size_t size);
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message);
// The same with one more field of type bytes after the others.
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message, int field,
                          grpc::Slice payload);
// The same for a serialized message.
grpc::ByteBuffer FieldToBuffer(std::string message, int field, grpc::Slice payload);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_WIRE_H_
