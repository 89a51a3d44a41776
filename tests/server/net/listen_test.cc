// Where a server listens: several addresses, Unix sockets, and their access rights.
#include <dlfcn.h>
#include <netdb.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/server/server_fixture.h"
#include "tests/testing/test_certs.h"

namespace {
// The next this many lookups of this thread fail, as while a name server restarts.
thread_local int failing_lookups = 0;
}  // namespace

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* host,
                                                                  const char* port,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  if (failing_lookups > 0) {
    --failing_lookups;
    return EAI_AGAIN;
  }
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, port, hints, found);
}

namespace spillway::server {
namespace {

using test_certs::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool Answers(const std::string& target) {
  TestClient client(target);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  return client.stub().GetCapabilities(&context, {}, &response).ok();
}

class ListenTest : public ServerFixture {
 protected:
  void SetUp() override {}
  const TempFolder folder_;
  const std::string path_ = folder_.path("spillwayd.sock");
  const std::string socket_ = "unix:" + path_;
};

TEST_F(ListenTest, TcpAndUnixAtOnce) {
  Options options = TestOptions();
  options.listen = {socket_, "127.0.0.1:0"};
  Start(options);
  EXPECT_THAT(server_->addresses(), ElementsAre(socket_, address()));
  EXPECT_GT(server_->port(), 1);
  EXPECT_TRUE(Answers(socket_));
  EXPECT_TRUE(Answers(address()));
}

TEST_F(ListenTest, SocketIsItsUsersAloneAndGoneAfterwards) {
  Options options = TestOptions();
  options.listen = {socket_};
  const mode_t before = umask(0);  // The most permissive umask.
  Start(options);
  EXPECT_EQ(umask(before), 0) << "what the process had";
  EXPECT_EQ(server_->port(), 0);
  struct stat info = {};
  ASSERT_EQ(lstat(path_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(Answers(socket_));
  EXPECT_TRUE(server_->Drain());
  EXPECT_NE(lstat(path_.c_str(), &info), 0);
}

TEST_F(ListenTest, SecondServerOnASocketIsRefusedAndTheFirstGoesOn) {
  Options options = TestOptions();
  options.listen = {socket_};
  Start(options);
  const absl::Status second = Server::BuildAndStart(options).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.message()), AllOf(HasSubstr(path_), HasSubstr("already in use")));
  EXPECT_TRUE(Answers(socket_));
}

TEST_F(ListenTest, SameAddressTwiceIsAnError) {
  Options options = TestOptions();
  Start(options);
  const std::string taken = address();
  server_.reset();
  options.listen = {taken, taken};
  const absl::Status status = Server::BuildAndStart(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(taken), HasSubstr("--listen")));
}

TEST_F(ListenTest, PlainTextForOthersIsRefusedUnlessAskedFor) {
  Options options = TestOptions();
  for (const char* everywhere : {"0.0.0.0:0", "[::]:0"}) {
    options.listen = {"127.0.0.1:0", everywhere};
    options.insecure = false;
    const absl::Status refused = Server::BuildAndStart(options).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("--listen"), HasSubstr(everywhere), HasSubstr("--tls-cert"),
                      HasSubstr("--insecure")));
    options.insecure = true;
    EXPECT_TRUE(Server::BuildAndStart(options).ok());
  }
  const test_certs::TestCa ca("CA");
  const test_certs::CertAndKey pair = ca.Issue();
  options.insecure = false;
  options.tls = {folder_.Write("cert", pair.cert), folder_.Write("key", pair.key), ""};
  EXPECT_TRUE(Server::BuildAndStart(options).ok()) << "with TLS it may";
}

TEST_F(ListenTest, PlainTextIsRefusedWhereTheResolverFailsOnce) {
  Options options = TestOptions();
  options.listen = {"0.0.0.0:0"};
  failing_lookups = 1;
  const absl::Status refused = Server::BuildAndStart(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("cannot be resolved")));
  EXPECT_EQ(failing_lookups, 0) << "it was looked up";
}

TEST_F(ListenTest, TheSameSocketTwiceIsRefused) {
  Options options = TestOptions();
  const std::string link = folder_.path("link");
  std::filesystem::create_directory_symlink(folder_.path("."), link);
  for (const std::string& again :
       {socket_, "unix:" + folder_.path("/spillwayd.sock"), "unix:" + link + "/spillwayd.sock"}) {
    options.listen = {socket_, "127.0.0.1:0", again};
    const absl::Status status = Server::BuildAndStart(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << again << " " << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(socket_), HasSubstr(again), HasSubstr("same socket")));
  }
}

TEST_F(ListenTest, UnixSocketsHaveNoTls) {
  const test_certs::TestCa ca("CA");
  const test_certs::CertAndKey pair = ca.Issue();
  Options options = TestOptions();
  options.listen = {"127.0.0.1:0", socket_};
  options.tls = {folder_.Write("cert", pair.cert), folder_.Write("key", pair.key), ""};
  Start(options);
  EXPECT_TRUE(Answers(socket_));
  EXPECT_FALSE(Answers(address()));
}

}  // namespace
}  // namespace spillway::server
