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
#include "rewrite_core/base/crc32c.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/request_check.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::testing {
namespace {

// Not a divisor of common sizes, so that answers end in a part of a chunk.
constexpr size_t kAnswerChunkBytes = 100'003;

// Optional in the protocol, but this client always sends it.
bool HasChecksumOf(const v1::GraphHeader& header, const std::string& graph) {
  return header.has_crc32c() && header.crc32c() == core::ExtendCrc32c(0, graph);
}

std::vector<v1::GraphHeader> Announced(const v1::DiffHeader& header) {
  return {header.graph_a(), header.graph_b()};
}
template <typename Header>
std::vector<v1::GraphHeader> Announced(const Header& header) {
  return {header.graph()};
}

grpc::Status BrokenOff() { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed"); }

grpc::Status BadStream(const std::string& what) {
  return ToGrpc(core::InvalidError(v1::ERROR_REASON_BAD_STREAM, what));
}

absl::StatusOr<v1::RewriteResponse> RewriteAndAnswerWhatIsAsked(const std::string& graph_def,
                                                                v1::RewriteOptions options,
                                                                bool dry_run) {
  if (dry_run) options.set_dry_run(true);
  auto response = core::Rewrite(graph_def, options, core::DefaultLimits(), core::StopToken());
  if (response.ok() && !core::AsksFor(v1::OUTPUT_REPORT, options)) response->clear_report();
  return response;
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
  if (options_.max_connection_age != absl::InfiniteDuration()) {
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(absl::ToInt64Milliseconds(options_.max_connection_age)));
  }
  if (options_.has_service) {
    builder.RegisterService(this);
  } else {
    builder.RegisterCallbackGenericService(&no_service_);
  }
  server_ = builder.BuildAndStart();
  target_ = absl::StrCat("127.0.0.1:", port);
  SetHealthy(options_.healthy);
}

// At once: a call that hangs is cancelled.
TestServer::~TestServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void TestServer::SetHealthy(bool healthy) {
  for (const char* service : {"", "spillway.v1.RewriteService"}) {
    server_->GetHealthCheckService()->SetServingStatus(service, healthy);
  }
}

std::multimap<std::string, std::string> TestServer::last_metadata() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_metadata_;
}

std::set<std::string> TestServer::peers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return peers_;
}

grpc::Status TestServer::Begin(grpc::ServerContext* context) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    last_metadata_.clear();
    for (const auto& [key, value] : context->client_metadata()) {
      last_metadata_.emplace(std::string(key.data(), key.size()),
                             std::string(value.data(), value.size()));
    }
    peers_.insert(context->peer());
  }
  absl::SleepFor(options_.delay);
  switch (options_.fault) {
    case Fault::kEarlyError:
      if (!options_.pushback_ms.empty()) {
        context->AddTrailingMetadata("grpc-retry-pushback-ms", options_.pushback_ms);
      }
      return ToGrpc(core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                                "no room now", {{"inflight_bytes", "7"}}));
    case Fault::kTransportError:
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
    case Fault::kHangsOnce:
      if (hanging_ > 0) return grpc::Status::OK;
      [[fallthrough]];
    case Fault::kHang:
    case Fault::kHangsInAnswer:
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
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  auto result =
      RewriteAndAnswerWhatIsAsked(request->graph_def(), request->options(), options_.dry_run);
  if (!result.ok()) return ToGrpc(result.status());
  *response = *std::move(result);
  return grpc::Status::OK;
}

grpc::Status TestServer::StreamRewrite(grpc::ServerContext* context, Stream* stream) {
  ++stream_calls_;
  v1::StreamRewriteRequest message;
  if (!stream->Read(&message) || !message.has_header()) return BadStream("no header");
  const v1::StreamRewriteHeader header = message.header();
  if (options_.fault == Fault::kHangsInAnswer) stream->SendInitialMetadata();
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  std::string graph_def;
  while (stream->Read(&message)) {
    if (message.has_header()) return BadStream("a second header");
    largest_chunk_bytes_ = std::max<int64_t>(largest_chunk_bytes_, message.chunk().size());
    graph_def += message.chunk();
  }
  if (static_cast<int64_t>(graph_def.size()) != header.graph().total_size_bytes()) {
    return BadStream("another size than announced");
  }
  if (!HasChecksumOf(header.graph(), graph_def)) return BadStream("another checksum");
  auto result = RewriteAndAnswerWhatIsAsked(graph_def, header.options(), options_.dry_run);
  if (!result.ok()) return ToGrpc(result.status());
  return Answer(*std::move(result), stream);
}

template <typename Writer, typename Message>
void TestServer::WriteNews(Writer* writer, Message message) const {
  if (options_.fault != Fault::kNewer) return;
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(4000, "news");
  writer->Write(message);
}

grpc::Status TestServer::Answer(v1::RewriteResponse response, Stream* stream) const {
  if (options_.fault == Fault::kNoAnswer) return grpc::Status::OK;
  const std::string& graph_def = response.graph_def();
  v1::StreamRewriteResponse message;
  v1::StreamRewriteResult* header = message.mutable_header();
  if (response.has_report()) header->mutable_report()->Swap(response.mutable_report());
  if (response.has_patch()) header->mutable_patch()->Swap(response.mutable_patch());
  if (response.has_plan()) header->mutable_plan()->Swap(response.mutable_plan());
  int64_t size = graph_def.size();
  if (options_.fault == Fault::kShortAnswer) ++size;
  if (options_.fault == Fault::kLongAnswer) --size;
  if (options_.fault == Fault::kHugeAnswer) size = int64_t{1} << 40;
  if (options_.fault == Fault::kLargeAnswer) size = std::numeric_limits<int32_t>::max();
  header->mutable_graph()->set_total_size_bytes(size);
  header->mutable_graph()->set_crc32c(
      core::ExtendCrc32c(0, options_.fault == Fault::kWrongChecksum ? "another" : graph_def));
  if (options_.fault == Fault::kNoChecksum) header->mutable_graph()->clear_crc32c();
  WriteNews(stream, v1::StreamRewriteResponse());
  if (options_.fault != Fault::kNoHeader) stream->Write(message);
  if (options_.fault == Fault::kTwoHeaders) stream->Write(message);
  for (size_t begin = 0; begin < graph_def.size(); begin += kAnswerChunkBytes) {
    message.set_chunk(graph_def.substr(begin, kAnswerChunkBytes));
    if (!stream->Write(message)) break;
  }
  return grpc::Status::OK;
}

template <typename Header, typename Message, typename Reader>
grpc::Status TestServer::ReadQuestion(grpc::ServerContext* context, Reader* reader, Header* header,
                                      std::vector<std::string>* graphs) {
  ++questions_;
  // In gRPC's words for an unregistered method.
  if (options_.fault == Fault::kOlder) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  Message message;
  if (!reader->Read(&message) || !message.has_header()) return BadStream("no header");
  *header = message.header();
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  const std::vector<v1::GraphHeader> announced = Announced(*header);
  graphs->assign(announced.size(), "");
  size_t now = 0;
  while (reader->Read(&message)) {
    if (message.has_header()) return BadStream("a second header");
    largest_chunk_bytes_ = std::max<int64_t>(largest_chunk_bytes_, message.chunk().size());
    const auto is_whole = [&] {
      return static_cast<int64_t>((*graphs)[now].size()) == announced[now].total_size_bytes();
    };
    while (now + 1 < announced.size() && is_whole()) ++now;
    (*graphs)[now] += message.chunk();
  }
  for (size_t i = 0; i < announced.size(); ++i) {
    if (static_cast<int64_t>((*graphs)[i].size()) != announced[i].total_size_bytes() ||
        !HasChecksumOf(announced[i], (*graphs)[i])) {
      return BadStream("another graph than announced");
    }
  }
  return grpc::Status::OK;
}

grpc::Status TestServer::Inspect(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::InspectResponse, v1::InspectRequest>* stream) {
  v1::InspectHeader header;
  std::vector<std::string> graphs;
  grpc::Status status =
      ReadQuestion<v1::InspectHeader, v1::InspectRequest>(context, stream, &header, &graphs);
  if (!status.ok()) return status;
  if (options_.fault == Fault::kNoAnswer) return grpc::Status::OK;
  WriteNews(stream, v1::InspectResponse());
  int64_t sent = 0;
  const auto send = [&](v1::InspectResponse&& part) {
    if (part.has_summary() && options_.fault == Fault::kNoHeader) return true;
    stream->Write(part);
    if (part.has_summary() && options_.fault == Fault::kTwoHeaders) stream->Write(part);
    sent += part.tensors().tensors_size();
    return options_.fault != Fault::kBreaksOff || questions_ > 1 || sent == 0;
  };
  const absl::Status done =
      core::Inspect(graphs[0], header.options(), core::DefaultLimits(), core::StopToken(), send);
  if (options_.fault == Fault::kBreaksOff && questions_ == 1) return BrokenOff();
  return ToGrpc(done);
}

grpc::Status TestServer::Simulate(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::SimulateRequest>* reader,
                                  v1::SimulateResponse* response) {
  v1::SimulateHeader header;
  std::vector<std::string> graphs;
  grpc::Status status =
      ReadQuestion<v1::SimulateHeader, v1::SimulateRequest>(context, reader, &header, &graphs);
  if (!status.ok() || options_.fault == Fault::kNoAnswer) return status;
  auto report =
      core::SimulateGraph(graphs[0], header.options(), core::DefaultLimits(), core::StopToken());
  if (!report.ok()) return ToGrpc(report.status());
  *response->mutable_report() = *std::move(report);
  return grpc::Status::OK;
}

grpc::Status TestServer::Explore(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ExploreResponse, v1::ExploreRequest>* stream) {
  v1::ExploreHeader header;
  std::vector<std::string> graphs;
  grpc::Status status =
      ReadQuestion<v1::ExploreHeader, v1::ExploreRequest>(context, stream, &header, &graphs);
  if (!status.ok() || options_.fault == Fault::kNoAnswer) return status;
  v1::ExploreResponse message;
  WriteNews(stream, message);
  auto report = core::Explore(graphs[0], header.options(), core::DefaultLimits(), core::StopToken(),
                              [&](const v1::ExploredSize& size) {
                                *message.mutable_size() = size;
                                stream->Write(message);
                              });
  if (!report.ok()) return ToGrpc(report.status());
  if (options_.fault == Fault::kBreaksOff && questions_ == 1) return BrokenOff();
  *message.mutable_report() = *std::move(report);
  stream->Write(message);
  if (options_.fault == Fault::kTwoHeaders) stream->Write(message);
  return grpc::Status::OK;
}

grpc::Status TestServer::Diff(grpc::ServerContext* context,
                              grpc::ServerReader<v1::DiffRequest>* reader,
                              v1::DiffResponse* response) {
  v1::DiffHeader header;
  std::vector<std::string> graphs;
  grpc::Status status =
      ReadQuestion<v1::DiffHeader, v1::DiffRequest>(context, reader, &header, &graphs);
  if (!status.ok() || options_.fault == Fault::kNoAnswer) return status;
  auto diff = core::DiffGraphs(graphs[0], graphs[1], core::DefaultLimits(), core::StopToken());
  if (!diff.ok()) return ToGrpc(diff.status());
  *response->mutable_diff() = *std::move(diff);
  return grpc::Status::OK;
}

grpc::Status TestServer::GetCapabilities(grpc::ServerContext* context,
                                         const v1::GetCapabilitiesRequest*,
                                         v1::GetCapabilitiesResponse* response) {
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  response->set_version(core::Version());
  for (const v1::Strategy strategy : core::Strategies()) response->add_strategies(strategy);
  *response->mutable_limits() = core::DefaultLimits();
  return grpc::Status::OK;
}

}  // namespace spillway::testing
