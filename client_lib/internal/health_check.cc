#include "client_lib/internal/health_check.h"

#include "client_lib/internal/service_names.h"
#include "client_lib/internal/status_conversion.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace spillway::internal {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// Each of the two messages has one field. They are encoded by hand, since Debian has no library for
// them and a generated copy would clash with any other in the process.
//   HealthCheckRequest { string service = 1; }  HealthCheckResponse { ServingStatus status = 1; }
constexpr int kServiceField = 1;
constexpr int kStatusField = 1;

grpc::ByteBuffer MakeRequest(absl::string_view service) {
  UnknownFieldSet fields;
  fields.AddLengthDelimited(kServiceField, std::string(service));
  std::string bytes;
  fields.SerializeToString(&bytes);
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

ServingStatus ParseResponse(const grpc::ByteBuffer& response) {
  grpc::Slice slice;
  UnknownFieldSet fields;
  if (!response.DumpToSingleSlice(&slice).ok() ||
      !fields.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return ServingStatus::kUnknown;
  }
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() != kStatusField || field.type() != UnknownField::TYPE_VARINT) continue;
    switch (field.varint()) {
      case 1:
        return ServingStatus::kServing;
      case 2:
        return ServingStatus::kNotServing;
      case 3:
        return ServingStatus::kServiceUnknown;
      default:
        return ServingStatus::kUnknown;
    }
  }
  return ServingStatus::kUnknown;
}

}  // namespace

absl::StatusOr<ServingStatus> CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                                          absl::string_view service, absl::string_view target,
                                          const CallLimits& limits, const CallHeaders& headers) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  RemoteCall call(limits, headers);
  const auto reader =
      stub.PrepareUnaryCall(call.context(), kHealthCheckMethod, MakeRequest(service), &queue);
  reader->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  reader->Finish(&response, &status, &tag);
  queue.Next(&tag, &ok);
  // The protocol's code for an unknown service.
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return ServingStatus::kServiceUnknown;
  if (!status.ok()) return FromGrpc(status, target);
  return ParseResponse(response);
}

}  // namespace spillway::internal
