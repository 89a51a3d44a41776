#include "server/base/request_id.h"

#include <string>

#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using ::testing::MatchesRegex;

class RequestIdTest : public ServerFixture {
 protected:
  // Returns the id in the trailing metadata of a call that sends `sent`; empty: sends none.
  std::string Answered(const std::string& sent, const std::string& graph = "graph") {
    grpc::ClientContext context;
    if (!sent.empty()) context.AddMetadata("x-request-id", sent);
    v1::RewriteRequest request;
    request.set_graph_def(graph);
    v1::RewriteResponse response;
    client_->stub().Rewrite(&context, request, &response);
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find("x-request-id");
    if (found == metadata.end()) return "";
    return std::string(found->second.data(), found->second.size());
  }
};

TEST_F(RequestIdTest, SaneOnesComeBack) {
  EXPECT_EQ(Answered("job-17/step:3"), "job-17/step:3") << "the call fails, the id comes";
  EXPECT_EQ(Answered(std::string(128, 'i')), std::string(128, 'i'));
}

TEST_F(RequestIdTest, OthersAreReplaced) {
  const std::string generated = "[0-9a-f]{16}";
  const std::string first = Answered("");
  EXPECT_THAT(first, MatchesRegex(generated));
  EXPECT_NE(Answered(""), first);
  for (const std::string& bad : {std::string(129, 'i'), std::string("two words"),
                                 std::string("a\"quote"), std::string("back\\slash")}) {
    EXPECT_THAT(Answered(bad), MatchesRegex(generated)) << bad;
  }
}

// Returns the trailing metadata `traceparent` of a call that sends it.
TEST_F(RequestIdTest, AWellFormedTraceparentComesBack) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  for (const std::string& sent : {good, good + "-more", std::string("none")}) {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", sent);
    v1::RewriteResponse response;
    client_->stub().Rewrite(&context, v1::RewriteRequest(), &response);
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find("traceparent");
    EXPECT_EQ(found != metadata.end(), sent == good) << sent;
    if (found == metadata.end()) continue;
    EXPECT_EQ(std::string(found->second.data(), found->second.size()), good);
  }
}

TEST_F(RequestIdTest, ComesBackWithSuccessAndOnStreams) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  Start(options);
  EXPECT_EQ(Answered("fine"), "fine");
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "streamed");
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  stream->WritesDone();
  EXPECT_FALSE(ReadAnswer(*stream).status.ok());
  EXPECT_EQ(context.GetServerTrailingMetadata().count("x-request-id"), 1u);
}

}  // namespace
}  // namespace spillway::server
