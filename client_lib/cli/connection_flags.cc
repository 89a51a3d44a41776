#include "client_lib/cli/connection_flags.h"

#include "CLI/Validators.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/cli/progress_line.h"
#include "rewrite_core/graph/error.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

namespace {

constexpr int kMaxRetries = 1000;

// One line on an attempt that failed and the next.
void PrintRetry(const std::string& server, const RetryNotice& notice) {
  PrintAboveProgress(absl::StrFormat(
      "spillway: %s%s; trying again in %.1f s (%d of %d)\n", server,
      absl::IsUnavailable(notice.error) ? " cannot be reached" : " is overloaded",
      absl::ToDoubleSeconds(notice.pause), notice.next_attempt, notice.max_attempts));
}

}  // namespace

ConnectionFlags::ConnectionFlags(CLI::App* command, Kind kind)
    : retries_(kind == Kind::kProbe ? 0 : RetryOptions().max_attempts - 1) {
  const bool probe = kind == Kind::kProbe;
  command
      ->add_option(
          "--server", server_,
          probe ? "The server to ask." : "The server to use. [default: none, in this process]")
      ->type_name("HOST:PORT")
      ->group("Where and how long")
      ->required(probe);
  command
      ->add_option("--timeout", timeout_,
                   "Gives up after this time, e.g. 30s, 500ms, 2m. [default: no limit]")
      ->type_name("DURATION")
      ->group("Where and how long");
  if (probe) return;
  command
      ->add_option("--retries", retries_,
                   absl::StrCat("How often to try again when the server cannot be reached, or is "
                                "full and says when to come back: after a random pause of at most "
                                "1 s, then 1.6 s, 2.6 s, ..., within the timeout. 0 to ",
                                kMaxRetries, ". [default: ", retries_, "]"))
      ->type_name("N")
      ->check(CLI::Range(0, kMaxRetries))
      ->group("Where and how long");
}

Client ConnectionFlags::Connect(bool quiet) const {
  if (server_.empty()) return Client(MakeLocalConnection());
  RemoteOptions options;
  options.target = server_;
  options.retry.max_attempts = retries_ + 1;
  if (!quiet) {
    options.retry.on_retry = [server = server_](const RetryNotice& notice) {
      PrintRetry(server, notice);
    };
  }
  return Client(MakeRemoteConnection(options));
}

absl::StatusOr<CallOptions> ConnectionFlags::MakeCall(const Session& session) const {
  CallOptions call;
  call.cancellation = session.cancellation;
  if (!timeout_.empty()) {
    absl::StatusOr<absl::Duration> timeout = ParseTimeout(timeout_);
    if (!timeout.ok()) return timeout.status();
    call.timeout = *timeout;
  }
  return call;
}

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if (!absl::ParseDuration(text, &timeout) || timeout <= absl::ZeroDuration()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("--timeout: ", core::Quoted(text),
                     " is not a time above zero with a unit, e.g. 30s, 500ms, 2m"),
        {{"flag", "--timeout"}, {"value", text}});
  }
  return timeout;
}

}  // namespace spillway::cli
