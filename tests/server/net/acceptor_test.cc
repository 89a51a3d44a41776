#include "server/net/acceptor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/net/listener.h"
#include "tests/server/http_get.h"
#include "tests/server/manual_clock.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

// A client's connection to 127.0.0.1.
class Client {
 public:
  // From the address 127.0.0.`host`.
  explicit Client(int port, int host = 1) : fd_(ConnectFrom(host, port)) {}
  ~Client() { close(fd_); }
  Client(const Client&) = delete;

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  int own_port() const {
    sockaddr_in name = {};
    socklen_t size = sizeof(name);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    return ntohs(name.sin_port);
  }

  // The first thing that the other side sends: a byte, or (false) the end of the connection. Waits
  // for it.
  bool Greeted() const {
    char byte;
    return recv(fd_, &byte, 1, 0) == 1;
  }

 private:
  const int fd_;
};

// An acceptor on a free port; accepted connections are greeted.
class AcceptorTest : public testing::Test {
 protected:
  void Start(int max_connections, int max_of_one_host = 1000) {
    auto listener = Listener::Listen(*ParseListenAddress("127.0.0.1:0"), "--listen");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    acceptor_ = std::make_unique<Acceptor>(max_connections, max_of_one_host, metrics_, clock_);
    const absl::Status status =
        acceptor_->Start({{listener_->sockets().at(0), [this](int connection) {
                             const std::lock_guard lock(mu_);
                             taken_.push_back(connection);
                             send(connection, "!", 1, 0);
                           }}});
    ASSERT_TRUE(status.ok()) << status;
  }

  ~AcceptorTest() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
    CloseTaken();
    for (const int descriptor : replaced_) close(descriptor);
  }

  // As gRPC does when connections end.
  void CloseTaken() {
    const std::lock_guard lock(mu_);
    for (const int connection : taken_) close(connection);
    taken_.clear();
  }

  // The same, but their descriptors stay in use as another socket.
  void ReplaceTaken() {
    const std::lock_guard lock(mu_);
    const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (const int connection : taken_) {
      EXPECT_EQ(dup2(other, connection), connection);
      replaced_.push_back(connection);
    }
    close(other);
    taken_.clear();
  }

  double Count(const std::string& metric) const {
    return Sample(prometheus::TextSerializer().Serialize(registry_.Collect()), metric);
  }

  std::unique_ptr<Client> Connect(int host = 1) {
    return std::make_unique<Client>(listener_->port(), host);
  }

  prometheus::Registry registry_;
  Metrics metrics_{registry_, "1.2.3"};
  ManualClock clock_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::mutex mu_;
  std::vector<int> taken_;     // Guarded by mu_.
  std::vector<int> replaced_;  // The same.
};

TEST_F(AcceptorTest, ThoseAboveTheLimitAreClosedUntilOthersHaveGone) {
  Start(/*max_connections=*/2);
  const auto first = Connect(), second = Connect();
  EXPECT_TRUE(first->Greeted());
  EXPECT_TRUE(second->Greeted());
  EXPECT_EQ(acceptor_->open(), 2);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Connect()->Greeted());
  EXPECT_EQ(Count("spillway_refused_connections_total"), 5);
  EXPECT_EQ(acceptor_->open(), 2);
  CloseTaken();
  EXPECT_EQ(acceptor_->open(), 0);
  EXPECT_TRUE(Connect()->Greeted());
  EXPECT_EQ(Count("spillway_refused_connections_total"), 5);
}

TEST_F(AcceptorTest, OneHostLeavesRoomForOthers) {
  Start(/*max_connections=*/4, /*max_of_one_host=*/2);
  const auto first = Connect(1), second = Connect(1);
  EXPECT_TRUE(first->Greeted());
  EXPECT_TRUE(second->Greeted());
  EXPECT_FALSE(Connect(1)->Greeted());
  const auto other = Connect(2), third = Connect(3);
  EXPECT_TRUE(other->Greeted());
  EXPECT_TRUE(third->Greeted());
  EXPECT_FALSE(Connect(4)->Greeted()) << "four in all";
  CloseTaken();
  EXPECT_EQ(acceptor_->open(), 0);
  const auto again = Connect(1), once_more = Connect(1);
  EXPECT_TRUE(again->Greeted());
  EXPECT_TRUE(once_more->Greeted());
}

// Even if nothing queries the number of open connections, and not through descriptors that new
// connections reuse.
TEST_F(AcceptorTest, ClosedOnesAreFoundWhenRoomIsNeeded) {
  Start(/*max_connections=*/3);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(Connect());
      EXPECT_TRUE(clients.back()->Greeted());
    }
    EXPECT_FALSE(Connect()->Greeted());
    ReplaceTaken();
    clock_.Advance(absl::Milliseconds(99));
    EXPECT_FALSE(Connect()->Greeted()) << "it looks ten times a second";
    clock_.Advance(absl::Milliseconds(1));
  }
}

TEST_F(AcceptorTest, DescriptorsThatAreNowSomethingElseDoNotCount) {
  Start(/*max_connections=*/1);
  EXPECT_TRUE(Connect()->Greeted());
  ReplaceTaken();
  EXPECT_EQ(acceptor_->open(), 0);
}

TEST_F(AcceptorTest, ConnectionsWaitWhileThereAreNoDescriptors) {
  Start(/*max_connections=*/100);
  const auto first = Connect();
  EXPECT_TRUE(first->Greeted());
  // A client whose connection is not accepted yet, for lack of a descriptor.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name = {};
  socklen_t size = sizeof(name);
  ASSERT_EQ(getsockname(listener_->sockets().at(0), reinterpret_cast<sockaddr*>(&name), &size), 0);
  rlimit none = before;
  none.rlim_cur = client + 1;  // All lower ones are in use: it got the lowest free one.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&name), size), 0) << "it waits";
  EXPECT_TRUE(Eventually([&] { return Count("spillway_accept_failures_total") >= 2; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  char byte;
  EXPECT_EQ(recv(client, &byte, 1, 0), 1) << "and is let in when there are some again";
  close(client);
  EXPECT_EQ(Count("spillway_refused_connections_total"), 0);
}

TEST_F(AcceptorTest, AfterStopNobodyIsTaken) {
  Start(/*max_connections=*/100);
  EXPECT_TRUE(Connect()->Greeted());
  acceptor_->Stop();
  const auto late = Connect();  // The socket still listens.
  listener_->Close();
  EXPECT_FALSE(late->Greeted());
}

TEST_F(AcceptorTest, WithoutADescriptorForItselfItDoesNotStart) {
  Acceptor acceptor(1, 1, metrics_, clock_);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = acceptor.Start({});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  acceptor.Stop();  // Returns.
}

TEST_F(AcceptorTest, KnowsWhatAConnectionHasReceived) {
  Start(4);
  const auto first = Connect(), second = Connect();
  ASSERT_TRUE(first->Greeted() && second->Greeted());
  EXPECT_EQ(acceptor_->ReceivedBytes(first->own_port()), 0);
  first->Send("12345");
  EXPECT_TRUE(Eventually([&] { return acceptor_->ReceivedBytes(first->own_port()) == 5; }));
  EXPECT_EQ(acceptor_->ReceivedBytes(second->own_port()), 0);
  EXPECT_EQ(acceptor_->ReceivedBytes(0), -1) << "as of a Unix socket";
  const int port = second->own_port();
  CloseTaken();
  EXPECT_EQ(acceptor_->open(), 0);
  EXPECT_EQ(acceptor_->ReceivedBytes(port), -1) << "closed";
}

}  // namespace
}  // namespace spillway::server
