#include "server/calls/reflection_service.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "server/base/status_to_grpc.h"
#include "server/calls/check_caller.h"
#include "server/calls/idle_timer.h"
#include "server/memory/guarded.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

// Of a question, which names a file or a symbol in one.
constexpr size_t kMaxRequestBytes = 16 << 10;

// Each of these files defines one service.
const FileDescriptor* const* ServiceFiles() {
  static const FileDescriptor* const files[] = {
      v1::RewriteRequest::descriptor()->file(),
      grpc::health::v1::HealthCheckRequest::descriptor()->file(),
      ServerReflectionRequest::descriptor()->file(), nullptr};
  return files;
}

// Adds `file`, then its imports, each once.
void AddFiles(const FileDescriptor* file, ServerReflectionResponse* response) {
  std::vector<const FileDescriptor*> files = {file};
  absl::flat_hash_set<const FileDescriptor*> seen = {file};
  for (size_t i = 0; i < files.size(); ++i) {
    google::protobuf::FileDescriptorProto proto;
    files[i]->CopyTo(&proto);
    proto.SerializeToString(
        response->mutable_file_descriptor_response()->add_file_descriptor_proto());
    for (int j = 0; j < files[i]->dependency_count(); ++j) {
      if (seen.insert(files[i]->dependency(j)).second) files.push_back(files[i]->dependency(j));
    }
  }
}

void SetError(grpc::StatusCode code, const std::string& message,
              ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

void AddFilesOr(const FileDescriptor* file, const std::string& error,
                ServerReflectionResponse* response) {
  if (file == nullptr) return SetError(grpc::StatusCode::NOT_FOUND, error, response);
  AddFiles(file, response);
}

void Answer(const ServerReflectionRequest& request, ServerReflectionResponse* response) {
  response->set_valid_host(request.host());
  *response->mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return AddFilesOr(pool.FindFileByName(request.file_by_filename()), "file not found",
                        response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return AddFilesOr(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                        "symbol not found", response);
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& asked = request.file_containing_extension();
      const auto* const type = pool.FindMessageTypeByName(asked.containing_type());
      const FieldDescriptor* const field =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, asked.extension_number());
      return AddFilesOr(field == nullptr ? nullptr : field->file(), "extension not found",
                        response);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const auto* const type = pool.FindMessageTypeByName(request.all_extension_numbers_of_type());
      if (type == nullptr) return SetError(grpc::StatusCode::NOT_FOUND, "type not found", response);
      std::vector<const FieldDescriptor*> extensions;
      pool.FindAllExtensions(type, &extensions);
      auto* const numbers = response->mutable_all_extension_numbers_response();
      numbers->set_base_type_name(type->full_name());
      for (const FieldDescriptor* field : extensions)
        numbers->add_extension_number(field->number());
      return;
    }
    case ServerReflectionRequest::kListServices:
      for (const FileDescriptor* const* file = ServiceFiles(); *file != nullptr; ++file) {
        response->mutable_list_services_response()->add_service()->set_name(
            (*file)->service(0)->full_name());
      }
      return;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  SetError(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing", response);
}

}  // namespace

// Answers one question after another.
class ReflectionService::Stream final
    : public grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse> {
 public:
  Stream(ReflectionService& service, grpc::CallbackServerContext& context)
      : service_(service),
        first_message_(service.state_.half_open, context, HalfOpenCalls::Message::kSmall),
        idle_timer_(*service.state_.options.clock, service.state_.options.idle_timeout,
                    [&context] { context.TryCancel(); }) {
    const int others = service_.streams_.fetch_add(1, std::memory_order_relaxed);
    const absl::Status status = Guarded([&] { return Admit(context, others); });
    if (status.ok()) {
      Read();
    } else {
      Finish(ToGrpcStatus(status));
    }
  }

  void OnReadDone(bool ok) override {
    idle_timer_.Pause();
    first_message_.End();
    if (!ok) return Finish(grpc::Status::OK);
    response_.Clear();
    const absl::Status status = Guarded([this] {
      // The answer repeats it.
      if (request_.ByteSizeLong() > kMaxRequestBytes) {
        return absl::ResourceExhaustedError("a question of reflection is too long; ask by name");
      }
      server::Answer(request_, &response_);
      return absl::OkStatus();
    });
    if (!status.ok()) return Finish(ToGrpcStatus(status));
    idle_timer_.Wait();
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    idle_timer_.Pause();
    if (!ok) return Finish(grpc::Status::CANCELLED);
    Read();
  }
  void OnDone() override {
    service_.streams_.fetch_sub(1, std::memory_order_relaxed);
    delete this;
  }

 private:
  absl::Status Admit(const grpc::CallbackServerContext& context, int others) {
    if (others >= kMaxStreams) {
      return absl::ResourceExhaustedError("too many streams ask for reflection; try again later");
    }
    if (!first_message_.status().ok()) return first_message_.status();
    return CheckCaller(context, "ServerReflectionInfo", service_.state_);
  }

  void Read() {
    idle_timer_.Wait();
    StartRead(&request_);
  }

  ReflectionService& service_;
  HalfOpenCalls::Wait first_message_;
  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
  IdleTimer idle_timer_;  // Last, so that it is destroyed first.
};

grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>*
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext* context) {
  return new Stream(*this, *context);
}

}  // namespace spillway::server
