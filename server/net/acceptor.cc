#include "server/net/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "server/base/logging.h"

namespace spillway::server {
namespace {

// Backoff after a failed accept. Connections wait in the listen queue meanwhile.
constexpr int kPauseMs = 100;

// At the maximum number of connections, closed ones are looked for at most once in this interval.
// Checking one takes less than a microsecond.
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);

// Minimum interval between log lines of one kind: a flood of connections must not flood the log.
constexpr absl::Duration kTellInterval = absl::Seconds(10);

// Returns the inode number of the socket `fd`, which is unique; 0 if `fd` is not a socket.
ino_t SocketOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

Acceptor::Acceptor(int most, Metrics& metrics, const Clock& clock)
    : most_(most), metrics_(metrics), clock_(clock) {}

void Acceptor::Start(std::vector<Source> sources) {
  sources_ = std::move(sources);
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
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
  const auto tell = [this](Trouble& trouble, const char* message, LogFields fields) {
    ++trouble.count;
    const absl::Time now = clock_.Now();
    if (now - trouble.told < kTellInterval) return;
    trouble.told = now;
    fields["count"] = std::exchange(trouble.count, 0);
    Log(LogLevel::kWarn, message, fields);
  };
  const int connection = accept4(source.socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    const int error = errno;
    // The client disconnected before the connection was accepted, or a signal arrived.
    if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return true;
    metrics_.CountAcceptFailure();
    tell(failed_, "no connection can be accepted: those that come wait",
         {{"error", std::strerror(error)}});
    return false;
  }
  if (!Admit(connection)) {
    metrics_.CountRefusedConnection();  // Before the client can see it.
    close(connection);
    tell(refused_, "connections refused: as many stand as --max-connections lets in",
         {{"max_connections", most_}});
    return true;
  }
  source.take(connection);
  return true;
}

bool Acceptor::Admit(int connection) {
  const std::lock_guard lock(mu_);
  if (connections_.size() >= static_cast<size_t>(most_) &&
      clock_.Now() - looked_at_ >= kLookInterval) {
    ForgetClosed();
  }
  // An earlier connection with the same descriptor must have been closed.
  connections_.erase(connection);
  if (connections_.size() >= static_cast<size_t>(most_)) return false;
  connections_.emplace(connection, SocketOf(connection));
  return true;
}

// gRPC does not report that it has closed a connection. Its descriptor is then free, or another
// socket's.
void Acceptor::ForgetClosed() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = SocketOf(it->first) == it->second ? std::next(it) : connections_.erase(it);
  }
  looked_at_ = clock_.Now();
}

}  // namespace spillway::server
