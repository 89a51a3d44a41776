// Calls of the server, of any bytes: the first says which method, then come the call's messages,
// each behind its length. They go the server's way, except gRPC's transport and the queue: sizes
// are checked, graph and options taken apart, uploads put together, the task run, and its answer
// made bytes. Limits are small, so that inputs of a fuzzer's size reach them.
//
// What must hold: an error blames the request, with a reason; options take no more memory than was
// requested before parsing; every answer can be sent and read.
#include <prometheus/registry.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_writer.h"
#include "server/base/wire.h"
#include "server/calls/stream_assembler.h"
#include "server/work/rewrite_answer.h"
#include "server/work/stream_methods.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/length_mutator.h"

// libFuzzer's, which a replay does not have and does not need.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size,
                                                         size_t max_size);

namespace spillway::testing {
namespace {

// One input takes a second at most, under sanitizers too; then its work must stop.
constexpr int64_t kMaxSteps = 1'000'000;
constexpr int kMethods = 6;
// Free bytes of every request (wire.cc), and protobuf's bytes for an empty message.
constexpr int64_t kFreeBytes = 80 << 10;

server::Options SmallOptions() {
  server::Options options;
  options.limits = FuzzLimits();
  options.limits.set_max_graph_bytes(32 << 10);
  options.limits.set_max_unary_bytes(48 << 10);
  options.limits.set_max_chunk_bytes(16 << 10);
  options.limits.set_max_option_bytes(8 << 10);
  options.limits.set_max_node_count(1000);
  options.limits.set_max_input_count(2000);
  options.max_response_bytes = 1 << 20;
  return options;
}

// Objects living as long as a server.
struct Server {
  server::Options options = SmallOptions();
  prometheus::Registry registry;
  server::Metrics metrics{registry, "fuzzed"};
};

// A request, its method chosen.
struct Input {
  int method = 0;
  std::vector<std::string> messages;
};

Input Read(absl::string_view bytes) {
  Input input;
  if (bytes.empty()) return input;
  input.method = static_cast<unsigned char>(bytes[0]) % kMethods;
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    uint64_t size = 0;
    int shift = 0;
    bool more = true;
    for (; more && !bytes.empty() && shift < 64; shift += 7) {
      more = (bytes[0] & 0x80) != 0;
      size |= uint64_t{bytes[0] & 0x7fu} << shift;
      bytes.remove_prefix(1);
    }
    const absl::string_view message = bytes.substr(0, size);
    input.messages.emplace_back(message);
    bytes.remove_prefix(message.size());
  }
  return input;
}

std::string Write(const Input& input) {
  std::string bytes(1, static_cast<char>(input.method));
  for (const std::string& message : input.messages) {
    core::AppendVarint(message.size(), &bytes);
    bytes += message;
  }
  return bytes;
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  // In two pieces, as long ones come.
  const grpc::Slice slices[] = {grpc::Slice(bytes.substr(0, bytes.size() / 2)),
                                grpc::Slice(bytes.substr(bytes.size() / 2))};
  return grpc::ByteBuffer(slices, 2);
}

void RequireSendable(const google::protobuf::Message& answer) {
  const grpc::ByteBuffer sent = server::ToBuffer(answer);
  const std::unique_ptr<google::protobuf::Message> read(answer.New());
  const grpc::Slice slice = server::OnePiece(sent);
  RequireNone(read->ParseFromArray(slice.begin(), static_cast<int>(slice.size()))
                  ? ""
                  : "an answer that cannot be read");
}

// As server/base/wire.h, with the requested memory compared with the used memory.
absl::Status ParseOptions(absl::string_view bytes, const server::Options& options,
                          google::protobuf::Message* message) {
  int64_t held = 0;
  absl::Status status = server::ParseOptions(
      bytes, options.limits.max_option_bytes(),
      [&held](int64_t asked) {
        held += asked;
        return absl::OkStatus();
      },
      message);
  const auto taken = static_cast<int64_t>(message->SpaceUsedLong());
  if (status.ok() && taken > held + kFreeBytes) {
    RequireNone(absl::StrCat("options of ", bytes.size(), " bytes take ", taken, ", not ", held));
  }
  return status;
}

absl::Status Unary(const Input& input, Server& on) {
  if (input.messages.empty()) return absl::OkStatus();  // gRPC's own error.
  const std::string& message = input.messages.front();
  if (static_cast<int64_t>(message.size()) > on.options.limits.max_unary_bytes()) {
    return absl::OkStatus();  // Refused before it is read.
  }
  std::string rest;
  const absl::string_view graph =
      server::SplitField(v1::RewriteRequest::kGraphDefFieldNumber, message, &rest);
  v1::RewriteRequest others;
  if (absl::Status s = ParseOptions(rest, on.options, &others); !s.ok()) return s;
  const auto answer = server::MakeAnswer(graph, others.options(), on.options,
                                         core::StopToken::AfterStepsForTest(kMaxSteps));
  absl::Status status = server::TakeAnswer(*answer, others.options(), server::Framing::kOneMessage,
                                           on.options, on.metrics);
  if (!status.ok()) return status;
  v1::RewriteResponse response = answer->response;
  response.set_graph_def(answer->graph);
  RequireSendable(response);
  return absl::OkStatus();
}

// Takes a method's output.
class Sink final : public server::AnswerSink {
 public:
  absl::Status Send(const google::protobuf::Message& message) override {
    RequireSendable(message);
    return absl::OkStatus();
  }
  void SendBytes(int, std::shared_ptr<const std::string>) override {}
};

// As streamed_call.h.
absl::Status Streamed(const server::StreamMethod& method, const Input& input, Server& on) {
  server::StreamAssembler assembler(on.options.limits);
  std::unique_ptr<google::protobuf::Message> header;
  for (const std::string& bytes : input.messages) {
    const grpc::ByteBuffer message = Buffer(bytes);
    std::vector<grpc::Slice> slices;
    const auto chunk = server::OnlyField(server::kChunkField, message, &slices);
    if (!chunk.empty()) {
      if (absl::Status s = assembler.AddChunk(chunk); !s.ok()) return s;
      continue;
    }
    std::unique_ptr<google::protobuf::Message> request(method.request.New());
    absl::Status s =
        ParseOptions(server::View(server::OnePiece(message)), on.options, request.get());
    if (!s.ok()) return s;
    if (s = assembler.Add(*request); !s.ok()) return s;
    if (header == nullptr) header = std::move(request);
  }
  if (absl::Status s = assembler.FinishUpload(); !s.ok()) return s;
  const core::StopToken stop = core::StopToken::AfterStepsForTest(kMaxSteps);
  if (absl::Status s = assembler.VerifyGraphs(stop); !s.ok()) return s;
  const server::WorkContext context = {assembler.graphs(), on.options, stop, on.metrics};
  Sink sink;
  if (method.run != nullptr) return method.run(*header, context, sink);
  const auto& rewrite = static_cast<const v1::StreamRewriteRequest&>(*header).header();
  return server::SendAnswer(
      server::MakeAnswer(context.graphs[0], rewrite.options(), on.options, stop), rewrite, context,
      sink);
}

absl::Status Serve(const Input& input, Server& on) {
  if (input.method == 0) return Unary(input, on);
  return Streamed(server::StreamMethods()[input.method - 1], input, on);
}

// The fault in it; empty if the error blames the request, or is that of the steps.
std::string WrongError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return "";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
      return core::GetErrorReason(status) == v1::ERROR_REASON_UNSPECIFIED
                 ? absl::StrCat("no reason: ", status.ToString())
                 : "";
    default:
      return status.ToString();
  }
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  static Server& on = *new Server;
  RequireNone(WrongError(Serve(Read({reinterpret_cast<const char*>(data), size}), on)));
  return 0;
}

// Half of the time libFuzzer's own mutations, otherwise one of lengths: of a field, or of how many
// messages there are.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  using namespace spillway::testing;
  Random random(seed);
  Input input = Read({reinterpret_cast<const char*>(data), size});
  if (input.messages.empty() || random.OneIn(2)) return LLVMFuzzerMutate(data, size, max_size);
  const int which = random.Below(static_cast<int>(input.messages.size()));
  const auto message = input.messages.begin() + which;
  switch (random.Below(8)) {
    case 0:
      input.messages.insert(message, std::string(*message));
      break;
    case 1:
      input.messages.erase(message);
      break;
    default:
      *message = ScaleLengths(*message, max_size, &random);
  }
  const std::string bytes = Write(input);
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
