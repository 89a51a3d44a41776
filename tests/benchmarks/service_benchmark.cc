// The cost of the service beyond the rewrite. Prints
//   - time per call over loopback minus core::Rewrite in process, in units of the time of an echo
//     service that moves the same bytes with gRPC's same API, for a unary call (target: at most
//     0.9) and for a stream (1.2; 0.6 of a large graph); and the whole time if the answer is
//     kept (1.5);
//   - the peak memory of a spillwayd that streams a large graph, beyond that of its start, in
//     units of the graph's bytes; once if the bytes are weights in constants, as in real graphs
//     of this size (target: at most 2.2), and once for millions of nodes (at most 3.0);
//   - size of the programs and time until they are up.
// The server's and the echo's calls and the rewrite in process take turns, so that all see the same
// machine, and the fastest of each is taken: other load only makes them slower.
//
//   build/tests/benchmarks/service_benchmark [--quick]
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rewrite_core/rewriter.h"
#include "server/server.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"
#include "tests/benchmarks/floor.h"
#include "tests/server/child_process.h"
#include "tests/testing/training_graph.h"

namespace spillway::benchmarks {
namespace {

constexpr char kGraph[] = SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb";
constexpr char kBinDir[] = SPILLWAY_BIN_DIR;
constexpr size_t kChunkBytes = 512 << 10;  // Of the client library.
constexpr double kUnaryTarget = 0.9;
constexpr double kStreamTarget = 1.2;
constexpr double kLargeStreamTarget = 0.6;
constexpr size_t kLargeBytes = 10'000'000;
constexpr double kKeptTarget = 1.5;
constexpr double kWeightsTarget = 2.2;
constexpr double kNodesTarget = 3.0;
constexpr int64_t kMemoryGraphBytes = 500'000'000;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "service_benchmark: %s\n", why.c_str());
  std::exit(1);
}

void Require(const grpc::Status& status) {
  if (!status.ok()) Fail(status.error_message());
}

std::string ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

double Fastest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

v1::RewriteOptions Options() {
  v1::RewriteOptions options;
  options.mutable_scope();
  return options;
}

// The answers of a rewrite, without one: the same messages, from memory, for any request.
class EchoService final : public v1::RewriteService::CallbackService {
 public:
  explicit EchoService(const v1::RewriteResponse& answer) : answer_(answer) {}

  grpc::ServerUnaryReactor* Rewrite(grpc::CallbackServerContext* context,
                                    const v1::RewriteRequest* /*request*/,
                                    v1::RewriteResponse* response) override {
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerBidiReactor<v1::StreamRewriteRequest, v1::StreamRewriteResponse>* StreamRewrite(
      grpc::CallbackServerContext* /*context*/) override {
    return new EchoStream(answer_);
  }

 private:
  class EchoStream final
      : public grpc::ServerBidiReactor<v1::StreamRewriteRequest, v1::StreamRewriteResponse> {
   public:
    explicit EchoStream(const v1::RewriteResponse& answer) : answer_(answer) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (ok) {
        received_.append(request_.chunk());
        return StartRead(&request_);
      }
      *response_.mutable_header()->mutable_report() = answer_.report();
      response_.mutable_header()->mutable_graph()->set_total_size_bytes(answer_.graph_def().size());
      StartWrite(&response_);
    }
    void OnWriteDone(bool /*ok*/) override {
      const std::string& graph = answer_.graph_def();
      if (sent_ == graph.size()) return Finish(grpc::Status::OK);
      const size_t size = std::min<size_t>(1 << 20, graph.size() - sent_);  // As the server does.
      response_.set_chunk(graph.data() + sent_, size);
      sent_ += size;
      StartWrite(&response_);
    }
    void OnDone() override { delete this; }

   private:
    const v1::RewriteResponse& answer_;
    v1::StreamRewriteRequest request_;
    v1::StreamRewriteResponse response_;
    std::string received_;
    size_t sent_ = 0;
  };

  const v1::RewriteResponse answer_;
};

class Caller {
 public:
  explicit Caller(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::RewriteService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }

  double UnarySeconds(const v1::RewriteRequest& request, size_t expected_bytes) {
    const auto begin = Clock::now();
    grpc::ClientContext context;
    v1::RewriteResponse response;
    Require(stub_->Rewrite(&context, request, &response));
    const double seconds = SecondsSince(begin);
    if (response.graph_def().size() != expected_bytes) Fail("an answer of another size");
    return seconds;
  }

  // Sends and puts together, like the client library, except for the digests.
  double StreamSeconds(absl::string_view graph, const v1::RewriteOptions& options,
                       size_t expected_bytes) {
    const auto begin = Clock::now();
    grpc::ClientContext context;
    const auto stream = stub_->StreamRewrite(&context);
    v1::StreamRewriteRequest request;
    *request.mutable_header()->mutable_options() = options;
    request.mutable_header()->mutable_graph()->set_total_size_bytes(graph.size());
    stream->Write(request);
    for (size_t at = 0; at < graph.size(); at += kChunkBytes) {
      const absl::string_view chunk = graph.substr(at, kChunkBytes);
      request.set_chunk(chunk.data(), chunk.size());
      if (!stream->Write(request)) break;
    }
    stream->WritesDone();
    std::string result;
    v1::StreamRewriteResponse response;
    while (stream->Read(&response)) {
      if (response.has_header()) result.reserve(response.header().graph().total_size_bytes());
      result.append(response.chunk());
    }
    Require(stream->Finish());
    const double seconds = SecondsSince(begin);
    if (result.size() != expected_bytes) Fail("an answer of another size");
    return seconds;
  }

 private:
  std::unique_ptr<v1::RewriteService::Stub> stub_;
};

std::unique_ptr<server::Server> StartServer(int64_t cache_bytes) {
  server::Options options;
  options.listen = {"127.0.0.1:0"};
  options.metrics_listen = "none";
  options.cache_bytes = cache_bytes;
  auto server = server::Server::BuildAndStart(options);
  if (!server.ok()) Fail(server.status().ToString());
  return *std::move(server);
}

void MeasureCalls(const std::string& name, const std::string& graph, int repetitions) {
  const v1::RewriteOptions options = Options();
  const auto answer = core::Rewrite(graph, options, core::DefaultLimits(), core::StopToken());
  if (!answer.ok()) Fail(answer.status().ToString());
  const size_t size = answer->graph_def().size();

  const auto making = StartServer(/*cache_bytes=*/0);
  const auto keeping = StartServer(int64_t{256} << 20);
  EchoService echo_service(*answer);
  grpc::ServerBuilder builder;
  int echo_port = 0;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &echo_port);
  builder.RegisterService(&echo_service);
  const std::unique_ptr<grpc::Server> echo_server = builder.BuildAndStart();

  Caller echo(absl::StrCat("127.0.0.1:", echo_port));
  v1::RewriteRequest request;
  request.set_graph_def(graph);
  *request.mutable_options() = options;
  const struct {
    const char* name;
    bool stream, kept;
  } calls[] = {{"unary", false, false},
               {"stream", true, false},
               {"unary, kept", false, true},
               {"stream, kept", true, true}};
  for (const auto& [call, stream, kept] : calls) {
    Caller service((kept ? keeping : making)->addresses().front());
    std::vector<double> in_process, over_service, over_echo;
    for (int i = 0; i < repetitions + 2; ++i) {
      const auto begin = Clock::now();
      if (!kept && !core::Rewrite(graph, options, core::DefaultLimits(), core::StopToken()).ok()) {
        std::abort();
      }
      const double alone = kept ? 0 : SecondsSince(begin);
      const double served = stream ? service.StreamSeconds(graph, options, size)
                                   : service.UnarySeconds(request, size);
      const double echoed =
          stream ? echo.StreamSeconds(graph, options, size) : echo.UnarySeconds(request, size);
      if (i < 2) continue;  // Connections and caches.
      in_process.push_back(alone);
      over_service.push_back(served);
      over_echo.push_back(echoed);
    }
    const double alone = 1e3 * Fastest(in_process);
    const double served = 1e3 * Fastest(over_service);
    const double echoed = 1e3 * Fastest(over_echo);
    const double stream_target = graph.size() < kLargeBytes ? kStreamTarget : kLargeStreamTarget;
    const double target = kept ? kKeptTarget : stream ? stream_target : kUnaryTarget;
    std::printf("%-14s %6.1f MB  %-12s %9.2f %9.2f %9.2f %9.2f %9.1f\n", name.c_str(),
                graph.size() / 1e6, call, alone, served, echoed, (served - alone) / echoed, target);
    std::fflush(stdout);
  }
  echo_server->Shutdown();
}

// A field of /proc/PID/status in bytes.
int64_t ProcBytes(pid_t pid, absl::string_view field) {
  const std::string status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    int64_t kib = 0;
    if (absl::ConsumePrefix(&line, absl::StrCat(field, ":")) && absl::ConsumeSuffix(&line, "kB") &&
        absl::SimpleAtoi(line, &kib)) {
      return kib * 1024;
    }
  }
  Fail(absl::StrCat("no ", field, " of process ", pid));
}

// A spillwayd of its own.
struct Daemon {
  server::ChildProcess process{
      {absl::StrCat(kBinDir, "/spillwayd"), "--listen=127.0.0.1:0", "--metrics-listen=none"}};
  std::string address = std::string(absl::StripPrefix(
      process.ReadLine(), absl::StrCat("spillwayd ", core::Version(), " listening on ")));

  ~Daemon() {
    process.Signal(SIGTERM);
    process.Wait();
  }
};

constexpr int64_t kSmallNodes = 10'000;

std::string TrainingGraph(int64_t nodes) {
  testing::TrainingGraphOptions options;
  options.nodes = nodes;
  return testing::MakeTrainingGraph(options);
}

// A training graph of about so many bytes.
std::string ManyNodes(int64_t graph_bytes) {
  const double bytes_per_node =
      static_cast<double>(TrainingGraph(kSmallNodes).size()) / kSmallNodes;
  return TrainingGraph(static_cast<int64_t>(graph_bytes / bytes_per_node));
}

// A small one, and constants of 1 MiB up to so many bytes.
std::string ManyWeights(int64_t graph_bytes) {
  std::string graph = TrainingGraph(kSmallNodes);
  graph.reserve(graph_bytes + (2 << 20));
  for (int i = 0; static_cast<int64_t>(graph.size()) < graph_bytes; ++i) {
    testing::GraphDef more;  // Messages of one type are merged by appending them.
    testing::NodeDef* node = more.add_node();
    node->set_name(absl::StrCat("weights/", i));
    node->set_op("Const");
    constexpr int kFloat = 1;
    (*node->mutable_attr())["dtype"].set_type(kFloat);
    testing::TensorProto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(kFloat);
    tensor->mutable_tensor_shape()->add_dim()->set_size(1 << 18);
    tensor->set_tensor_content(std::string(1 << 20, 'w'));
    more.AppendToString(&graph);
  }
  return graph;
}

void MeasureMemory(const char* name, const std::string& graph, double target) {
  size_t size = 0;
  {
    const auto answer = core::Rewrite(graph, Options(), core::DefaultLimits(), core::StopToken());
    if (!answer.ok()) Fail(answer.status().ToString());
    size = answer->graph_def().size();
  }
  Daemon daemon;
  const int64_t before = ProcBytes(daemon.process.pid(), "VmRSS");
  Caller caller(daemon.address);
  const double seconds = caller.StreamSeconds(graph, Options(), size);
  const int64_t peak = ProcBytes(daemon.process.pid(), "VmHWM");
  std::printf(
      "memory, %s: %.0f MB streamed in %.1f s, answer %.0f MB; server %.0f MB at start, %.0f MB at "
      "its peak: %.2f times the graph (target %.1f)\n",
      name, graph.size() / 1e6, seconds, size / 1e6, before / 1e6, peak / 1e6,
      static_cast<double>(peak - before) / graph.size(), target);
  std::fflush(stdout);
}

std::string Run(std::vector<std::string> command) {
  server::ChildProcess process(command);
  std::string out = process.ReadStdout();
  if (process.Wait() != 0) Fail(absl::StrCat(command[0], " failed"));
  return out;
}

void MeasurePrograms(int repetitions) {
  const std::string folder = std::filesystem::temp_directory_path() / "service-benchmark-XXXXXX";
  std::string name = folder;
  if (mkdtemp(name.data()) == nullptr) Fail("no temporary folder");
  for (const char* program : {"spillway", "spillwayd"}) {
    const std::string path = absl::StrCat(kBinDir, "/", program);
    const std::string stripped = absl::StrCat(name, "/", program);
    Run({"strip", "-o", stripped, path});
    std::vector<double> version;
    for (int i = 0; i < repetitions; ++i) {
      const auto begin = Clock::now();
      Run({path, "--version"});
      version.push_back(SecondsSince(begin));
    }
    std::printf("%s: %.1f MB, %.1f MB stripped; --version in %.0f ms\n", program,
                std::filesystem::file_size(path) / 1e6, std::filesystem::file_size(stripped) / 1e6,
                1e3 * Fastest(version));
  }
  std::filesystem::remove_all(name);
  std::vector<double> serving;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = Clock::now();
    Daemon daemon;
    Run({absl::StrCat(kBinDir, "/spillway"), "health", "--server", daemon.address});
    serving.push_back(SecondsSince(begin));
  }
  std::printf("spillwayd: SERVING in %.0f ms from its start, as `spillway health` sees it\n",
              1e3 * Fastest(serving));
}

int Main(bool quick) {
  spdlog::set_level(spdlog::level::warn);  // One line per request would be measured, too.
  std::printf(
      "in milliseconds; the ratio is (service - in process) / echo\n"
      "graph              size  call         in process   service      echo     ratio    target\n");
  MeasureCalls("resnet50_tf1", ReadFile(kGraph), quick ? 20 : 500);
  MeasureCalls("synthetic", TrainingGraph(quick ? kSmallNodes : 10 * kSmallNodes), quick ? 3 : 30);
  const int64_t graph_bytes = quick ? kMemoryGraphBytes / 10 : kMemoryGraphBytes;
  MeasureMemory("weights", ManyWeights(graph_bytes), kWeightsTarget);
  MeasureMemory("nodes", ManyNodes(graph_bytes), kNodesTarget);
  MeasurePrograms(quick ? 3 : 20);
  return 0;
}

}  // namespace
}  // namespace spillway::benchmarks

int main(int argc, char** argv) {
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--quick") {
      quick = true;
    } else {
      std::fprintf(stderr, "Usage: %s [--quick]\n", argv[0]);
      return 2;
    }
  }
  return spillway::benchmarks::Main(quick);
}
