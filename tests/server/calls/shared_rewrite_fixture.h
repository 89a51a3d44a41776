// A server whose rewrites wait at a gate and are counted, and callers on threads of their own.
#ifndef SPILLWAY_TESTS_SERVER_CALLS_SHARED_REWRITE_FIXTURE_H_
#define SPILLWAY_TESTS_SERVER_CALLS_SHARED_REWRITE_FIXTURE_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {

class SharedRewriteTest : public ServerFixture {
 protected:
  struct Asked {
    grpc::ClientContext context;
    grpc::Status status;
    std::string graph;
    std::thread thread;

    void Join() { thread.join(); }
  };

  void SetUp() override { StartWith(TestOptions()); }

  void StartWith(Options options) {
    options.limits.set_max_concurrent_requests(2);
    options.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                             const v1::Limits& limits, const core::StopToken& stop,
                             core::PlanReuse* reuse) {
      ++made_;
      return gate_.AsFunction()(graph, asked, limits, stop, reuse);
    };
    Start(options);
  }

  std::unique_ptr<Asked> Ask(bool stream, const std::string& graph = "graph",
                             const v1::RewriteOptions& options = ScopeOptions()) {
    auto asked = std::make_unique<Asked>();
    asked->thread = std::thread([this, stream, graph, options, asked = asked.get()] {
      if (stream) {
        const std::unique_ptr<Stream> call = client_->stub().StreamRewrite(&asked->context);
        v1::StreamRewriteRequest header = HeaderMessage(static_cast<int64_t>(graph.size()));
        *header.mutable_header()->mutable_options() = options;
        call->Write(header);
        call->Write(ChunkMessage(graph));
        call->WritesDone();
        const StreamAnswer answer = ReadAnswer(*call);
        asked->status = answer.status;
        asked->graph = answer.graph;
        return;
      }
      v1::RewriteRequest request;
      request.set_graph_def(graph);
      *request.mutable_options() = options;
      v1::RewriteResponse response;
      asked->status = client_->stub().Rewrite(&asked->context, request, &response);
      asked->graph = response.graph_def();
    });
    return asked;
  }

  // One is being made, and all the others wait for it.
  bool AllWait(int count) {
    return Eventually([&] { return made_ > 0 && server_->shared_requests() == count - 1; });
  }

  Gate gate_;
  std::atomic<int> made_{0};
};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_CALLS_SHARED_REWRITE_FIXTURE_H_
