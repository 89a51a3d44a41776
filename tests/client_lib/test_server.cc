#include "tests/client_lib/test_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/health_check_service_interface.h"
#include "openssl/sha.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::testing {
namespace {

// Not a divisor of common sizes, so that answers end in a part of a chunk.
constexpr size_t kAnswerChunkBytes = 100'003;

std::string Sha256Of(const std::string& bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

grpc::Status BadStream(const std::string& what) {
  return ToGrpc(core::InvalidError(v1::ERROR_REASON_BAD_STREAM, what));
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  status.ForEachPayload([&details](absl::string_view type_url, const absl::Cord& value) {
    google::protobuf::Any* detail = details.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(value));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      details.SerializeAsString());
}

TestServer::TestServer(const ServerOptions& options) : options_(options) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(
      absl::StrCat("127.0.0.1:", options_.port),
      options_.credentials != nullptr ? options_.credentials : grpc::InsecureServerCredentials(),
      &port);
  builder.SetMaxReceiveMessageSize(options_.max_message_bytes);
  if (options_.has_service) {
    builder.RegisterService(this);
  } else {
    builder.RegisterCallbackGenericService(&no_service_);
  }
  server_ = builder.BuildAndStart();
  target_ = absl::StrCat("127.0.0.1:", port);
  for (const char* service : {"", "spillway.v1.RewriteService"}) {
    server_->GetHealthCheckService()->SetServingStatus(service, options_.healthy);
  }
}

// At once: a call that hangs is cancelled.
TestServer::~TestServer() { server_->Shutdown(std::chrono::system_clock::now()); }

grpc::Status TestServer::FailEarly(grpc::ServerContext* context) {
  switch (options_.fault) {
    case Fault::kEarlyError:
      if (!options_.pushback_ms.empty()) {
        context->AddTrailingMetadata("grpc-retry-pushback-ms", options_.pushback_ms);
      }
      return ToGrpc(core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                                "no room now", {{"inflight_bytes", "7"}}));
    case Fault::kTransportError:
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
    case Fault::kHang:
      ++hanging_;
      while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      ++released_;
      return grpc::Status::CANCELLED;
    default:
      return grpc::Status::OK;
  }
}

grpc::Status TestServer::Rewrite(grpc::ServerContext* context, const v1::RewriteRequest* request,
                                 v1::RewriteResponse* response) {
  ++unary_calls_;
  if (grpc::Status status = FailEarly(context); !status.ok()) return status;
  auto result = core::Rewrite(request->graph_def(), request->options(), core::DefaultLimits(),
                              core::StopToken());
  if (!result.ok()) return ToGrpc(result.status());
  *response = *std::move(result);
  return grpc::Status::OK;
}

grpc::Status TestServer::StreamRewrite(grpc::ServerContext* context, Stream* stream) {
  ++stream_calls_;
  v1::StreamRewriteRequest message;
  if (!stream->Read(&message) || !message.has_header()) return BadStream("no header");
  const v1::StreamRewriteHeader header = message.header();
  if (grpc::Status status = FailEarly(context); !status.ok()) return status;
  std::string graph_def;
  while (stream->Read(&message)) {
    if (message.has_header()) return BadStream("a second header");
    largest_chunk_bytes_ = std::max<int64_t>(largest_chunk_bytes_, message.chunk().size());
    graph_def += message.chunk();
  }
  if (static_cast<int64_t>(graph_def.size()) != header.graph().total_size_bytes()) {
    return BadStream("another size than announced");
  }
  // Optional in the protocol, but this client always sends it.
  if (header.graph().sha256() != Sha256Of(graph_def)) return BadStream("another digest");
  auto result =
      core::Rewrite(graph_def, header.options(), core::DefaultLimits(), core::StopToken());
  if (!result.ok()) return ToGrpc(result.status());
  return Answer(*std::move(result), stream);
}

grpc::Status TestServer::Answer(v1::RewriteResponse response, Stream* stream) const {
  if (options_.fault == Fault::kNoAnswer) return grpc::Status::OK;
  const std::string& graph_def = response.graph_def();
  v1::StreamRewriteResponse message;
  v1::StreamRewriteResult* header = message.mutable_header();
  if (response.has_report()) header->mutable_report()->Swap(response.mutable_report());
  if (response.has_patch()) header->mutable_patch()->Swap(response.mutable_patch());
  int64_t size = graph_def.size();
  if (options_.fault == Fault::kShortAnswer) ++size;
  if (options_.fault == Fault::kLongAnswer) --size;
  if (options_.fault == Fault::kHugeAnswer) size = int64_t{1} << 40;
  if (options_.fault == Fault::kLargeAnswer) size = std::numeric_limits<int32_t>::max();
  header->mutable_graph()->set_total_size_bytes(size);
  header->mutable_graph()->set_sha256(
      Sha256Of(options_.fault == Fault::kWrongDigest ? "another" : graph_def));
  if (options_.fault == Fault::kNoDigest) header->mutable_graph()->clear_sha256();
  if (options_.fault != Fault::kNoHeader) stream->Write(message);
  if (options_.fault == Fault::kTwoHeaders) stream->Write(message);
  for (size_t begin = 0; begin < graph_def.size(); begin += kAnswerChunkBytes) {
    message.set_chunk(graph_def.substr(begin, kAnswerChunkBytes));
    if (!stream->Write(message)) break;
  }
  return grpc::Status::OK;
}

grpc::Status TestServer::GetCapabilities(grpc::ServerContext* context,
                                         const v1::GetCapabilitiesRequest*,
                                         v1::GetCapabilitiesResponse* response) {
  if (grpc::Status status = FailEarly(context); !status.ok()) return status;
  response->set_version(core::Version());
  for (const v1::Strategy strategy : core::Strategies()) response->add_strategies(strategy);
  *response->mutable_limits() = core::DefaultLimits();
  return grpc::Status::OK;
}

}  // namespace spillway::testing
