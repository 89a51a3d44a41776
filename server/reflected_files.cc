#include "server/reflected_files.h"

#include <google/protobuf/message.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.pb.h"

namespace spillway::server {

void LinkReflectedFiles() {
  // gRPC's own health service reads and writes its messages without descriptors
  // (src/cpp/server/health/default_health_check_service.cc).
  google::protobuf::LinkMessageReflection<grpc::health::v1::HealthCheckRequest>();
  // status_to_grpc.cc sends messages with the wire format of these.
  google::protobuf::LinkMessageReflection<google::rpc::ErrorInfo>();
  google::protobuf::LinkMessageReflection<google::rpc::Status>();
}

}  // namespace spillway::server
