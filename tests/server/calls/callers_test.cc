// Effects that one caller cannot have on another, for callers distinguished by names, addresses, a
// proxy's headers, or a Unix socket. Each connection of a caller claims another identity, if that
// must not count.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/caller.h"
#include "server/memory/caller_shares.h"
#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr int64_t kPiece = int64_t{1} << 20;

enum class By { kNames, kAddresses, kProxy, kProxyIpv6, kUnixSocket };

class CallersTest : public ServerFixture, public testing::WithParamInterface<By> {
 protected:
  enum Who { kBad, kGood };

  void SetUp() override {}
  void TearDown() override {
    gate_.Open();
    for (std::thread& thread : threads_) thread.join();
    connections_.clear();
    ServerFixture::TearDown();
    client_.reset();
    server_.reset();  // Before the gate is destroyed.
  }

  void StartFor(Options options) {
    socket_ = absl::StrCat("unix:", folder_.path("s"));
    options.listen = {"127.0.0.1:0", socket_};
    if (GetParam() == By::kNames) {
      // The tokens "bad" and "good".
      options.access_file = folder_.Write(
          "callers", absl::StrCat("caller { name: \"bad\" token_sha256: \"", Hex(DigestOf("bad")),
                                  "\" } caller { name: \"good\" token_sha256: \"",
                                  Hex(DigestOf("good")), "\" }"));
    }
    Start(options);
  }

  // A new connection.
  TestClient& Connect(Who who) {
    const bool on_socket = GetParam() == By::kProxy || GetParam() == By::kProxyIpv6 ||
                           (GetParam() == By::kUnixSocket && who == kGood);
    if (on_socket) {
      connections_.push_back(std::make_unique<TestClient>(socket_));
    } else if (GetParam() == By::kAddresses && who == kGood) {
      connections_.push_back(std::make_unique<TestClient>(server_->port(), /*host=*/2));
    } else {
      connections_.push_back(std::make_unique<TestClient>(address()));
    }
    return *connections_.back();
  }

  // The caller's claim of identity: another in each call.
  void Claim(Who who, grpc::ClientContext& context) {
    const int number = ++claims_;
    switch (GetParam()) {
      case By::kNames:
        context.AddMetadata("authorization", who == kGood ? "Bearer good" : "Bearer bad");
        context.AddMetadata(kProxiedPeerKey, absl::StrCat("192.0.2.", number));
        break;
      case By::kAddresses:
        context.AddMetadata(kProxiedPeerKey, absl::StrCat("192.0.2.", number));
        break;
      case By::kProxy:
        context.AddMetadata(kProxiedPeerKey,
                            absl::StrCat("ipv4:192.0.2.", who == kGood ? 2 : 1, ":", number));
        break;
      case By::kProxyIpv6:
        context.AddMetadata(kProxiedPeerKey,
                            absl::StrCat("2001:db8:0:", who == kGood ? 2 : 1, "::", number));
        break;
      case By::kUnixSocket:
        break;
    }
  }

  grpc::Status Rewrite(Who who, size_t bytes) {
    grpc::ClientContext context;
    Claim(who, context);
    // Only passes if the test fails.
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::RewriteRequest request;
    request.set_graph_def(std::string(bytes, 'g'));
    request.mutable_options()->mutable_scope();
    v1::RewriteResponse response;
    return Connect(who).stub().Rewrite(&context, request, &response);
  }

  struct Upload {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;

    void Send(int64_t bytes) {
      for (int64_t at = 0; at < bytes; at += kPiece) {
        stream->Write(ChunkMessage(std::string(std::min(kPiece, bytes - at), 'g')));
      }
    }
    grpc::Status End() {
      stream->WritesDone();
      return ReadAnswer(*stream).status;
    }
  };
  std::unique_ptr<Upload> Announce(Who who, int64_t bytes) {
    auto upload = std::make_unique<Upload>();
    Claim(who, upload->context);
    upload->stream = Connect(who).stub().StreamRewrite(&upload->context);
    EXPECT_TRUE(upload->stream->Write(HeaderMessage(bytes)));
    return upload;
  }
  bool Holds(int64_t bytes) {
    return Eventually([&] { return server_->inflight_bytes() == bytes; });
  }

  static Options BytesOptions(int64_t all, int64_t of_one) {
    Options options = TestOptions();
    options.limits.set_max_inflight_bytes(all);
    options.max_caller_bytes = of_one;
    options.min_upload_rate = 0;
    options.rewrite = &FakeRewrite;
    return options;
  }

  static std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

  static void ExpectOverloaded(const grpc::Status& status, const std::string& why) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).reason(), "OVERLOADED");
    EXPECT_THAT(status.error_message(), HasSubstr(why));
  }

  const test_certs::TempFolder folder_;
  std::string socket_;
  Gate gate_;
  int claims_ = 0;
  std::vector<std::unique_ptr<TestClient>> connections_;
  std::vector<std::thread> threads_;
};

// More connections than workers, each with work that does not end.
TEST_P(CallersTest, ConnectionsOfOneDoNotStarveAnother) {
  constexpr int kWorkers = 2, kConnections = 5;
  Options options = TestOptions();
  options.limits.set_max_concurrent_requests(kWorkers);
  options.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                           const v1::Limits& limits, const core::StopToken& stop,
                           core::PlanReuse* reuse) {
    const RewriteFunction run = graph.size() < 100 ? &FakeRewrite : gate_.AsFunction();
    return run(graph, asked, limits, stop, reuse);
  };
  StartFor(options);
  for (int i = 0; i < kConnections; ++i) {
    auto context = std::make_shared<grpc::ClientContext>();
    Claim(kBad, *context);
    threads_.emplace_back([&client = Connect(kBad), context, i] {
      v1::RewriteRequest request;
      request.set_graph_def(std::string(1000 + i, 'g'));
      request.mutable_options()->mutable_scope();
      v1::RewriteResponse response;
      EXPECT_TRUE(client.stub().Rewrite(context.get(), request, &response).ok());
    });
  }
  ASSERT_TRUE(Eventually([&] {
    return gate_.running() == kWorkers &&
           Metric("spillway_queued_requests") == kConnections - kWorkers;
  }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Rewrite(kGood, 10).ok());
  EXPECT_EQ(gate_.running(), kWorkers);
}

// One that announces all there is, and is slow.
TEST_P(CallersTest, AnUploadHoldsWhatHasArrived) {
  StartFor(BytesOptions(16 * kPiece, 8 * kPiece));
  const auto slow = Announce(kBad, 16 * kPiece);
  ASSERT_TRUE(Holds(kPiece));
  const auto other = Announce(kGood, 8 * kPiece);
  other->Send(8 * kPiece);
  EXPECT_TRUE(other->End().ok());
  ASSERT_TRUE(Holds(kPiece));  // The answer comes before the bytes are free.
  slow->Send(16 * kPiece);
  EXPECT_TRUE(slow->End().ok()) << "alone it may have all";
}

TEST_P(CallersTest, SmallRequestsHaveRoomWhateverLargeOnesHold) {
  const int64_t small = 8 * kPiece / CallerShares::kPartOfShare;
  StartFor(BytesOptions(16 * kPiece, 8 * kPiece));
  const auto slow = Announce(kBad, 16 * kPiece);
  slow->Send(16 * kPiece - 1);
  ASSERT_TRUE(Holds(16 * kPiece));
  EXPECT_TRUE(Rewrite(kGood, small).ok());
  EXPECT_TRUE(Rewrite(kBad, small).ok()) << "the caller's own, too";
  ExpectOverloaded(Rewrite(kBad, small + 1), "--max-caller-bytes");
  EXPECT_TRUE(Holds(16 * kPiece)) << "it need not yield to its own caller";
  ExpectOverloaded(Rewrite(kGood, small + 1), "the server is full");
  // Now another waits for the bytes above the caller's share.
  slow->Send(1);
  ExpectOverloaded(slow->End(), "8.00 MiB that one caller may have (--max-caller-bytes)");
  ASSERT_TRUE(Holds(0));
  EXPECT_TRUE(Rewrite(kGood, small + 1).ok());
}

// Each holds half of all and needs more.
TEST_P(CallersTest, UploadsDoNotStopEachOther) {
  StartFor(BytesOptions(4 * kPiece, 4 * kPiece));
  for (const Who first : {kBad, kGood}) {
    const Who second = first == kBad ? kGood : kBad;
    ASSERT_TRUE(Holds(0));
    const auto a = Announce(first, 3 * kPiece), b = Announce(second, 3 * kPiece);
    ASSERT_TRUE(Holds(2 * kPiece));  // Both are let in: a header that comes later is refused.
    a->Send(2 * kPiece);
    b->Send(2 * kPiece);
    ASSERT_TRUE(Holds(4 * kPiece));
    a->Send(kPiece);
    ExpectOverloaded(a->End(), "try again later");
    b->Send(kPiece);
    EXPECT_TRUE(b->End().ok());
    ASSERT_TRUE(Holds(0));  // The answer comes before the bytes are free.
    const auto again = Announce(first, 3 * kPiece);
    again->Send(3 * kPiece);
    EXPECT_TRUE(again->End().ok());
  }
}

std::string NameOfKind(const testing::TestParamInfo<By>& kind) {
  static constexpr const char* kNames[] = {"Names", "Addresses", "Proxy", "ProxyIpv6",
                                           "UnixSocket"};
  return kNames[static_cast<int>(kind.param)];
}

INSTANTIATE_TEST_SUITE_P(By, CallersTest,
                         testing::Values(By::kNames, By::kAddresses, By::kProxy, By::kProxyIpv6,
                                         By::kUnixSocket),
                         &NameOfKind);

}  // namespace
}  // namespace spillway::server
