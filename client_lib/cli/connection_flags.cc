#include "client_lib/cli/connection_flags.h"

#include <grpc/support/log.h>

#include <cstdlib>

#include "CLI/Validators.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/cli/not_empty.h"
#include "client_lib/cli/progress_line.h"
#include "rewrite_core/base/error.h"
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

// gRPC writes lines of its own on handshakes that fail. Users get one sentence instead, unless they
// ask for gRPC's with its variable.
void SilenceGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
}

}  // namespace

ConnectionFlags::ConnectionFlags(CLI::App* command, Kind kind)
    : retries_(kind == Kind::kProbe ? 0 : RetryOptions().max_attempts - 1) {
  const bool probe = kind == Kind::kProbe;
  CLI::Option* const server = command->add_option(
      "--server", server_,
      probe ? "The server to ask." : "The server to use. [default: none, in this process]");
  server->type_name("HOST:PORT")->check(NotEmpty)->group("Where and how long")->required(probe);
  command
      ->add_option("--timeout", timeout_,
                   "Gives up after this time, e.g. 30s, 500ms, 2m. [default: no limit]")
      ->type_name("DURATION")
      ->check(NotEmpty)
      ->group("Where and how long");
  AddTlsFlags(command, server);
  if (probe) return;
  command
      ->add_option("--retries", retries_,
                   absl::StrCat("How often to try again when the server cannot be reached, or is "
                                "full and says when to come back: after a random pause of at most "
                                "1 s, then 1.6 s, 2.6 s, ..., within the timeout. 0 to ",
                                kMaxRetries, ". [default: ", retries_, "]"))
      ->type_name("N")
      ->check(CLI::Range(0, kMaxRetries))
      ->needs(server)
      ->group("Where and how long");
}

void ConnectionFlags::AddTlsFlags(CLI::App* command, CLI::Option* server) {
  command
      ->add_flag(
          "--tls", tls_,
          "Encrypts the connection; the server's certificate must come from an authority that "
          "this machine trusts. The flags below imply it.")
      ->needs(server)
      ->group("TLS");
  const auto add_file = [&](const char* name, std::string* file, const char* help) {
    return command->add_option(name, *file, help)
        ->type_name("FILE")
        ->check(NotEmpty)
        ->needs(server)
        ->group("TLS");
  };
  add_file("--tls-ca", &tls_options_.ca_file,
           "The authorities that the server's certificate may come from, instead of this machine's "
           "(PEM).");
  CLI::Option* const cert =
      add_file("--tls-cert", &tls_options_.cert_file,
               "The certificate to show to a server that asks for one (PEM).");
  CLI::Option* const key =
      add_file("--tls-key", &tls_options_.key_file, "Its private key, without passphrase (PEM).");
  cert->needs(key);
  key->needs(cert);
  command
      ->add_option("--tls-server-name", tls_options_.server_name,
                   "The name that the server's certificate must hold. [default: the host of "
                   "--server]")
      ->type_name("NAME")
      ->check(NotEmpty)
      ->needs(server)
      ->group("TLS");
}

Client ConnectionFlags::Connect(bool quiet) const {
  if (server_.empty()) return Client(MakeLocalConnection());
  SilenceGrpc();
  RemoteOptions options;
  options.target = server_;
  options.retry.max_attempts = retries_ + 1;
  const TlsOptions& tls = tls_options_;
  if (tls_ || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.server_name.empty()) {
    options.tls = tls;
  }
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
