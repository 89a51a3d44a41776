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

#include <cstdint>
#include <string>
#include <vector>

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

// What the options in a request cost, all of it but its graphs: `bytes` of a message of the type of
// `message`. Parses it, too. Errors: LIMIT_EXCEEDED if they have more bytes than
// `max_option_bytes`, fields of type bytes (profiles) apart; INVALID_ARGUMENT (BAD_STREAM) if they
// are no such message.
struct OptionCost {
  int64_t charged_bytes = 0;  // Of memory; 0 for what every request has about as much of.
};
absl::Status ParseOptions(absl::string_view bytes, int64_t max_option_bytes,
                          google::protobuf::Message* message, OptionCost* cost);

grpc::Slice ToSlice(std::string bytes);
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message);
// With one more field of type bytes behind the others.
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message, int field,
                          grpc::Slice payload);
// The same of a message that is serialized.
grpc::ByteBuffer FieldToBuffer(std::string message, int field, grpc::Slice payload);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WIRE_H_
