// spillwayd: flags -> Options -> Server, and signals -> Drain. Nothing else.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/base/standard_streams.h"
#include "rewrite_core/rewriter.h"
#include "server/access/access_file.h"
#include "server/base/logging.h"
#include "server/flags.h"
#include "server/net/listen_address.h"
#include "server/server.h"
#include "server/service_notify.h"

namespace {

using spillway::server::Log;
using spillway::server::LogLevel;
using spillway::server::Options;
using spillway::server::Server;

void PrintLine(FILE* stream, const std::string& line) {
  std::fprintf(stream, "%s\n", line.c_str());
  std::fflush(stream);  // Programs wait for these lines.
}

void PrintAddresses(const Options& options, const Server& server) {
  for (const std::string& address : server.addresses()) {
    PrintLine(stdout,
              absl::StrCat("spillwayd ", spillway::core::Version(), " listening on ", address));
  }
  if (server.metrics_port() == 0) return;
  PrintLine(stdout,
            absl::StrCat("metrics on http://",
                         spillway::server::WithPort(options.metrics_listen, server.metrics_port()),
                         "/metrics"));
}

// Blocks the signals that end the server in this thread and all that it starts, so that sigwait
// takes them and nothing runs in a signal handler.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);  // The reader of the log may go away.
  signal(SIGXFSZ, SIG_IGN);  // A journal beyond the file size limit only loses lines.
  return signals;
}

int AwaitSignal(const sigset_t& signals) {
  int number = 0;
  sigwait(&signals, &number);
  return number;
}

// Each connection, file and socket takes a descriptor. Services are started with a soft limit of
// 1,024 for the sake of select(), which nothing here calls.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocks of at least this size are mapped individually, so that they go back to the system as soon
// as a rewrite frees them. glibc's own threshold grows with freed blocks, up to 32 MiB, and smaller
// blocks stay in the worker's arena: as much as the whole graph, for a graph of 50 MB.
constexpr int kMappedBytes = 1 << 20;

// Notifies systemd, if it started this process. The server serves even if that fails.
void NotifyManager(absl::string_view state) {
  const absl::Status notified = spillway::server::NotifyServiceManager(state);
  if (!notified.ok()) PrintLine(stderr, absl::StrCat("spillwayd: ", notified.message()));
}

// Reports why the server cannot start. Returns the exit code.
int Fail(const absl::Status& status) {
  PrintLine(stderr, absl::StrCat("spillwayd: ", status.message()));
  return absl::IsInvalidArgument(status) ? spillway::server::kExitBadFlags
                                         : spillway::server::kExitFailed;
}

// How long cancelled work may continue. It polls every few milliseconds.
constexpr absl::Duration kStopGrace = absl::Seconds(10);

// How long to wait for the last lines of the log if they are not read.
constexpr absl::Duration kLogGrace = absl::Seconds(1);

}  // namespace

int main(int argc, char** argv) {
  RaiseFileLimit();  // Before the flags, because the default of one depends on it.
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  const spillway::server::ParsedFlags flags = spillway::server::ParseFlags(argc, argv);
  if (!flags.options.has_value()) {
    PrintLine(flags.exit_code == spillway::server::kExitOk ? stdout : stderr, flags.text);
    return flags.exit_code;
  }
  if (flags.only_check) {
    const absl::Status status = Server::Check(*flags.options);
    if (!status.ok()) return Fail(status);
    PrintLine(stdout, flags.text);
    if (const std::string& file = flags.options->access_file; !file.empty()) {
      const auto text = spillway::server::ReadAccessFile(file);
      if (!text.ok()) return Fail(text.status());
      const auto access = spillway::server::ParseAccessFile(file, *text);
      if (!access.ok()) return Fail(access.status());
      PrintLine(stdout, spillway::server::DescribeCallers(*access));
    }
    return spillway::server::kExitOk;
  }
  const sigset_t signals = BlockStopSignals();
  spillway::server::InitLogging(flags.options->log_level, flags.options->log_format);
  Options options = *flags.options;
#ifdef SPILLWAY_COUNTED_NEW  // Not with sanitizers, which keep freed memory.
  options.owns_process = true;
#endif
  absl::StatusOr<std::unique_ptr<Server>> server = Server::BuildAndStart(options);
  if (!server.ok()) return Fail(server.status());
  PrintAddresses(options, **server);
  if (options.dry_run) Log(LogLevel::kInfo, "dry run: every graph is returned unchanged");
  NotifyManager(spillway::server::kNotifyReady);

  AwaitSignal(signals);
  NotifyManager(spillway::server::kNotifyStopping);
  std::thread([&signals] {
    AwaitSignal(signals);
    PrintLine(stderr, "spillwayd: ended by a second signal, without draining");
    _exit(spillway::server::kExitForced);
  }).detach();
  const bool drained = (*server)->DrainOrLeave(kStopGrace);
  // Only the scrape listener, which takes two seconds to end, and the thread above are left.
  spillway::server::FlushLog(kLogGrace);
  std::fflush(stdout);
  _exit(drained ? spillway::server::kExitOk : spillway::server::kExitStuck);
}
