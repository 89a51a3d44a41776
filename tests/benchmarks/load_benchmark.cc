// A server under load. Prints
//   - rewrites per second in a closed loop of twice as many callers as workers, in units of what as
//     many threads do in process (target: at least 0.85);
//   - at twice that rate, open loop: the 99th percentile of the time to an answer in units of the
//     unloaded one (target: at most 5), how many were refused, and the 99th percentile of the time
//     to a refusal (target: 100 ms);
//   - the time of 64 identical requests at once, in units of one rewrite in process and 64 times
//     the time of a call beyond its rewrite (target: at most 1.3).
// Rewrites are tuned ones, of 50 to 100 ms. Server and clients share the machine.
//
//   build/tests/benchmarks/load_benchmark [--quick]
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "rewrite_core/rewriter.h"
#include "server/server.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::benchmarks {
namespace {

constexpr char kGraph[] = SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb";
constexpr int kIdentical = 64;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "load_benchmark: %s\n", why.c_str());
  _exit(1);  // Other threads are in the middle of calls.
}

std::string ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

v1::RewriteOptions TunedOptions() {
  v1::RewriteOptions options;
  options.mutable_level();
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(int64_t{4} << 30);
  options.mutable_step()->set_batch_size(64);
  options.add_outputs(v1::OUTPUT_GRAPH);
  return options;
}

// The graph in bytes that no other call sends: its field `version`, which is unused, counts.
std::string Distinct(const std::string& graph, uint32_t number) {
  std::string bytes = graph + '\x18';
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * (values.size() - 1))];
}

class Service {
 public:
  Service(int workers, absl::Duration target_wait) {
    server::Options options;
    options.listen = {"127.0.0.1:0"};
    options.metrics_listen = "none";
    options.target_wait = target_wait;
    options.limits.set_max_concurrent_requests(workers);
    auto server = server::Server::BuildAndStart(options);
    if (!server.ok()) Fail(server.status().ToString());
    server_ = *std::move(server);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::RewriteService::NewStub(grpc::CreateCustomChannel(
        server_->addresses().front(), grpc::InsecureChannelCredentials(), arguments));
  }
  v1::RewriteService::Stub& stub() { return *stub_; }

  grpc::Status Rewrite(const std::string& graph) {
    grpc::ClientContext context;
    v1::RewriteRequest request;
    request.set_graph_def(graph);
    *request.mutable_options() = TunedOptions();
    v1::RewriteResponse response;
    return stub_->Rewrite(&context, request, &response);
  }

 private:
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<v1::RewriteService::Stub> stub_;
};

// How many times a second `work(number)` is done by so many threads, for so long.
template <typename Function>
double PerSecond(int threads, double seconds, const Function& work) {
  std::atomic<uint32_t> count{0};
  std::vector<std::thread> all;
  const auto begin = Clock::now();
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      while (SecondsSince(begin) < seconds) work(count++);
    });
  }
  for (std::thread& thread : all) thread.join();
  return count / SecondsSince(begin);
}

struct Outcome {
  std::vector<double> answered, refused;  // Seconds.
};

// Requests come at random, even before earlier ones are answered.
Outcome OpenLoop(Service& service, const std::string& graph, double rate, double seconds) {
  struct Pending {
    grpc::ClientContext context;
    v1::RewriteRequest request;
    v1::RewriteResponse response;
    Clock::time_point begin;
  };
  Outcome outcome;
  std::mutex mu;
  std::atomic<int> open{0};
  std::mt19937 random(1);
  std::exponential_distribution<double> gap(rate);
  const auto begin = Clock::now();
  double at = 0;
  for (uint32_t number = 0; at < seconds; ++number, at += gap(random)) {
    auto* pending = new Pending;
    pending->request.set_graph_def(Distinct(graph, number));
    *pending->request.mutable_options() = TunedOptions();
    std::this_thread::sleep_until(
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at)));
    ++open;
    pending->begin = Clock::now();
    service.stub().async()->Rewrite(
        &pending->context, &pending->request, &pending->response,
        [pending, &mu, &outcome, &open](const grpc::Status& status) {
          const double took = SecondsSince(pending->begin);
          {
            const std::lock_guard lock(mu);
            if (status.ok()) {
              outcome.answered.push_back(took);
            } else if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
              outcome.refused.push_back(took);
            } else {
              Fail(status.error_message());
            }
          }
          delete pending;
          --open;
        });
  }
  while (open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return outcome;
}

int Run(bool quick) {
  spdlog::set_level(spdlog::level::off);
  const std::string graph = ReadFile(kGraph);
  const int workers = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  const double seconds = quick ? 2 : 20;
  const auto rewrite = [](const std::string& bytes) {
    const auto answer =
        core::Rewrite(bytes, TunedOptions(), core::DefaultLimits(), core::StopToken());
    if (!answer.ok()) Fail(answer.status().ToString());
  };
  Service service(workers, server::Options().target_wait);
  // Without refusals because of earlier calls.
  Service patient(workers, absl::InfiniteDuration());
  const auto call = [&](const std::string& bytes) {
    const grpc::Status status = patient.Rewrite(bytes);
    if (!status.ok()) Fail(status.error_message());
  };

  const double alone =
      PerSecond(workers, seconds, [&](uint32_t number) { rewrite(Distinct(graph, number)); });
  const double served =
      PerSecond(2 * workers, seconds, [&](uint32_t number) { call(Distinct(graph, number)); });
  std::printf("closed loop, %d workers: %.1f rewrites per second, in process %.1f: %.2f\n", workers,
              served, alone, served / alone);

  const Outcome calm = OpenLoop(service, graph, 0.3 * alone, seconds);
  const double unloaded = Percentile(calm.answered, 0.99);
  const Outcome storm = OpenLoop(service, graph, 2 * alone, seconds);
  std::printf(
      "open loop at 0.3 of that rate: %zu answered, %zu refused, p50 %.0f ms, p99 %.0f ms\n"
      "open loop at twice that rate:  %zu answered, %zu refused, p50 %.0f ms, p99 %.0f ms (%.1f "
      "times), refusals p99 %.0f ms\n",
      calm.answered.size(), calm.refused.size(), 1e3 * Percentile(calm.answered, 0.5),
      1e3 * unloaded, storm.answered.size(), storm.refused.size(),
      1e3 * Percentile(storm.answered, 0.5), 1e3 * Percentile(storm.answered, 0.99),
      Percentile(storm.answered, 0.99) / unloaded, 1e3 * Percentile(storm.refused, 0.99));

  // The fastest of some rounds of each, in turns.
  double one_alone = 1e9, one_served = 1e9, together = 1e9;
  for (int round = 0; round < (quick ? 2 : 10); ++round) {
    auto begin = Clock::now();
    rewrite(Distinct(graph, 1'000'000 + round));
    one_alone = std::min(one_alone, SecondsSince(begin));
    begin = Clock::now();
    call(Distinct(graph, 2'000'000 + round));
    one_served = std::min(one_served, SecondsSince(begin));
    begin = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < kIdentical; ++i) {
      threads.emplace_back([&] { call(Distinct(graph, 3'000'000 + round)); });
    }
    for (std::thread& thread : threads) thread.join();
    together = std::min(together, SecondsSince(begin));
  }
  const double transport = one_served - one_alone;
  std::printf(
      "%d identical at once: %.0f ms; one %.0f ms, of which %.1f ms are not the rewrite: %.2f of "
      "one "
      "rewrite and %d transports\n",
      kIdentical, 1e3 * together, 1e3 * one_served, 1e3 * transport,
      together / (one_alone + kIdentical * transport), kIdentical);
  return 0;
}

}  // namespace
}  // namespace spillway::benchmarks

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::string(argv[1]) == "--quick";
  if (argc > 2 || (argc == 2 && !quick)) {
    std::fprintf(stderr, "usage: load_benchmark [--quick]\n");
    return 2;
  }
  return spillway::benchmarks::Run(quick);
}
