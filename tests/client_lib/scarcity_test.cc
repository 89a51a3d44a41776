// A stream where memory or threads end: an error of the call, never the end of the program. This
// program has an operator new and a pthread_create of its own, which fail on demand.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace {

// Of the thread that makes the call: the server of the test is in this process, too.
thread_local size_t allocation_limit = std::numeric_limits<size_t>::max();
thread_local size_t largest_allocation = 0;
thread_local bool no_threads = false;

}  // namespace

void* operator new(size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  void* const memory = size > allocation_limit ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inlined: GCC 12 would take the two for a pair that does not match.
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// Visible to libstdc++, regardless of the program's other symbols.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
    void* argument) noexcept {
  if (no_threads) return EAGAIN;
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}

namespace spillway {
namespace {

using testing::Fault;
using testing::GraphWithPadding;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::ServerOptions;
using testing::TestServer;

constexpr size_t kMiB = 1 << 20;

Client StreamingClient(const TestServer& server) {
  RemoteOptions options;
  options.target = server.target();
  options.unary_max_bytes = -1;
  return Client(MakeRemoteConnection(options));
}

TEST(ScarcityTest, NothingIsSetAsideOnTheServersWord) {
  ServerOptions options;
  options.fault = Fault::kLargeAnswer;
  const TestServer server(options);
  const std::string graph = ReadFile(kMnistPath);
  ASSERT_LT(graph.size(), kMiB);
  largest_allocation = 0;
  const auto response = StreamingClient(server).Rewrite(graph, MnistOptions());
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "BAD_STREAM") << response.status();
  EXPECT_LT(largest_allocation, 4 * kMiB);
}

TEST(ScarcityTest, AnAnswerForWhichThereIsNoMemory) {
  const TestServer server;
  const Client client = StreamingClient(server);
  const std::string graph = GraphWithPadding(20 << 20);
  allocation_limit = 8 * kMiB;
  const auto response = client.Rewrite(graph, MnistOptions());
  allocation_limit = std::numeric_limits<size_t>::max();
  EXPECT_EQ(response.status().code(), absl::StatusCode::kResourceExhausted) << response.status();
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("memory"));
  EXPECT_TRUE(client.Rewrite(graph, MnistOptions()).ok()) << "the client goes on";
}

TEST(ScarcityTest, ACallForWhichThereIsNoThread) {
  const TestServer server;
  const Client client = StreamingClient(server);
  const std::string graph = ReadFile(kMnistPath);
  ASSERT_TRUE(client.Rewrite(graph, MnistOptions()).ok());  // gRPC has its own threads now.
  no_threads = true;
  const auto response = client.Rewrite(graph, MnistOptions());
  no_threads = false;
  EXPECT_EQ(response.status().code(), absl::StatusCode::kResourceExhausted) << response.status();
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("thread"));
  EXPECT_TRUE(client.Rewrite(graph, MnistOptions()).ok()) << "the client goes on";
}

}  // namespace
}  // namespace spillway
