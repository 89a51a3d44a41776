// Rewrite is a pure function: concurrent rewrites do not affect it. Under the thread sanitizer
// (preset `tsan`) this also shows that nothing is shared without a lock.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

struct Request {
  std::string graph;
  v1::RewriteOptions options;
};

// Both strategies, on graphs with and without conditionals.
std::vector<Request> Requests() {
  std::vector<Request> requests;
  for (const char* name : {"mnist_deep", "cond_v1"}) {
    const std::string graph = testing::ReadTestGraph(absl::StrCat(name, "/graph_shapes.pb"));
    v1::RewriteOptions scope;
    scope.mutable_scope()->set_lb(3);
    requests.push_back({graph, scope});
    v1::RewriteOptions level;
    level.mutable_level()->set_swapout_threshold(1);
    level.mutable_level()->set_swapin_ahead(1);
    level.mutable_level()->set_swapin_groupby(0);
    requests.push_back({graph, level});
  }
  return requests;
}

std::string RewrittenGraph(const Request& request) {
  const absl::StatusOr<v1::RewriteResponse> response =
      Rewrite(request.graph, request.options, DefaultLimits(), StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->graph_def() : "";
}

TEST(RewriterThreadsTest, ManyAtOnceGiveWhatEachGivesAlone) {
  constexpr int kThreadsEach = 2;
  const std::vector<Request> requests = Requests();
  std::vector<std::string> at_once(requests.size() * kThreadsEach);
  std::vector<std::thread> threads;
  // First, so that several threads build the tables that are made on first use.
  for (size_t i = 0; i < at_once.size(); ++i) {
    threads.emplace_back([&, i] { at_once[i] = RewrittenGraph(requests[i % requests.size()]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < at_once.size(); ++i) {
    const Request& request = requests[i % requests.size()];
    EXPECT_NE(at_once[i], request.graph) << "request " << i << " swaps nothing, which shows little";
    EXPECT_EQ(at_once[i], RewrittenGraph(request)) << "request " << i;
  }
}

}  // namespace
}  // namespace spillway::core
