#include "server/net/acceptor.h"

#include <linux/tcp.h>  // The tcp_info of netinet/tcp.h lacks received bytes.
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/caller.h"
#include "server/base/logging.h"

namespace spillway::server {
namespace {

// Descriptors beside connections: a dozen of gRPC and the log, the listeners, scrapes (32 threads
// and as many waiting), files being read.
constexpr rlim_t kReserved = 128;

// gRPC 1.51 takes some 16 KiB per idle connection (measured with 2,000, plain text): 64 MiB for
// these, which are part of kOverheadBytes of memory_budget.h.
constexpr int kDefaultMaxConnections = 4096;

// Backoff after a failed accept. Connections wait in the listen queue meanwhile.
constexpr int kPauseMs = 100;

// At the maximum number of connections, closed ones are searched for at most once in this interval.
// Checking one takes less than a microsecond.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(100);

// Minimum interval between log lines of one kind.
constexpr absl::Duration kLogInterval = absl::Seconds(10);

// The address of the other end; AF_UNSPEC if it has disconnected.
sockaddr_storage PeerOf(int connection) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

// 0 on a Unix socket.
int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family != AF_INET6) return 0;
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

// Returns the inode number of the socket `fd`, which is unique; 0 if `fd` is not a socket.
ino_t SocketOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

int MaxConnections() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDefaultMaxConnections;
  const rlim_t left = limit.rlim_cur - std::min(kReserved, limit.rlim_cur / 2);
  return static_cast<int>(
      std::clamp<rlim_t>(left, 1, static_cast<rlim_t>(std::numeric_limits<int>::max())));
}

int DefaultMaxConnections() { return std::min(MaxConnections(), kDefaultMaxConnections); }

Acceptor::Acceptor(int max_connections, int max_of_one_host, Metrics& metrics, const Clock& clock)
    : max_connections_(static_cast<size_t>(max_connections)),
      max_of_one_host_(max_of_one_host),
      metrics_(metrics),
      clock_(clock) {}

absl::Status Acceptor::Start(std::vector<Source> sources) {
  sources_ = std::move(sources);
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) {
    return absl::UnavailableError(absl::StrCat("cannot accept connections: ", std::strerror(errno),
                                               "; raise the limit on open files (ulimit -n)"));
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_, 1);
  thread_.join();
  close(stop_);
}

int Acceptor::open() {
  const std::lock_guard lock(mu_);
  ForgetClosed();
  return static_cast<int>(connections_.size());
}

int64_t Acceptor::ReceivedBytes(int port) {
  const std::lock_guard lock(mu_);
  int64_t most = -1;
  for (auto [it, end] = of_port_.equal_range(port); port != 0 && it != end; ++it) {
    tcp_info info = {};
    socklen_t size = sizeof(info);
    if (getsockopt(it->second, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    most = std::max(most, static_cast<int64_t>(info.tcpi_bytes_received));
  }
  return most;
}

void Acceptor::Run() {
  std::vector<pollfd> polled;
  for (const Source& source : sources_) polled.push_back({source.socket, POLLIN, 0});
  polled.push_back({stop_, POLLIN, 0});
  while (true) {
    if (poll(polled.data(), polled.size(), /*timeout=*/-1) < 0) continue;  // A signal.
    if (polled.back().revents != 0) return;
    bool accepts = true;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (polled[i].revents != 0) accepts = AcceptOne(sources_[i]) && accepts;
    }
    if (!accepts) poll(&polled.back(), 1, kPauseMs);
  }
}

bool Acceptor::AcceptOne(const Source& source) {
  const auto log = [this](LoggedEvents& events, const char* message, LogFields fields) {
    ++events.count;
    const absl::Time now = clock_.Now();
    if (now - events.logged_at < kLogInterval) return;
    events.logged_at = now;
    fields["count"] = std::exchange(events.count, 0);
    Log(LogLevel::kWarn, message, fields);
  };
  const int connection = accept4(source.socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    const int error = errno;
    // The client disconnected before the connection was accepted, or a signal arrived.
    if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return true;
    metrics_.CountAcceptFailure();
    log(failed_, "no connection can be accepted: new ones wait", {{"error", std::strerror(error)}});
    return false;
  }
  if (!Admit(connection)) {
    metrics_.CountRefusedConnection();  // Before the client can see it.
    close(connection);
    log(refused_,
        "connections refused: as many are open as --max-connections, or --max-host-connections of "
        "one host, allows",
        {{"max_connections", max_connections_}, {"max_host_connections", max_of_one_host_}});
    return true;
  }
  source.take(connection);
  return true;
}

bool Acceptor::Admit(int connection) {
  const sockaddr_storage peer = PeerOf(connection);
  std::string host = HostOf(peer);
  const std::lock_guard lock(mu_);
  const auto full = [&] {
    const auto others = of_host_.find(host);
    return connections_.size() >= max_connections_ ||
           (!host.empty() && others != of_host_.end() && others->second >= max_of_one_host_);
  };
  if (full() && clock_.Now() - checked_at_ >= kCheckInterval) ForgetClosed();
  // An earlier connection with the same descriptor must have been closed.
  if (const auto earlier = connections_.find(connection); earlier != connections_.end()) {
    Forget(earlier);
  }
  if (full()) return false;
  ++of_host_[host];
  const int port = PortOf(peer);
  of_port_.emplace(port, connection);
  connections_.emplace(connection, Connection{SocketOf(connection), std::move(host), port});
  return true;
}

std::unordered_map<int, Acceptor::Connection>::iterator Acceptor::Forget(
    std::unordered_map<int, Connection>::iterator connection) {
  const auto host = of_host_.find(connection->second.host);
  if (--host->second == 0) of_host_.erase(host);
  const auto [begin, end] = of_port_.equal_range(connection->second.port);
  of_port_.erase(std::find_if(
      begin, end, [&](const auto& other) { return other.second == connection->first; }));
  return connections_.erase(connection);
}

// gRPC does not report that it has closed a connection. Its descriptor is then free, or another
// socket's.
void Acceptor::ForgetClosed() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = SocketOf(it->first) == it->second.socket ? std::next(it) : Forget(it);
  }
  checked_at_ = clock_.Now();
}

}  // namespace spillway::server
