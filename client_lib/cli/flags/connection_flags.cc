#include "client_lib/cli/flags/connection_flags.h"

#include <grpc/support/log.h>

#include <cstdlib>

#include "CLI/Validators.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/cli/flags/file_flags.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/plain_text.h"
#include "rewrite_core/base/request_names.h"
#include "rewrite_core/base/steady_time.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

namespace {

constexpr int kMaxRetries = 1000;
// Not a flag: command lines are visible to all users of a machine.
constexpr char kTokenVariable[] = "SPILLWAY_TOKEN";
// The variable in which OpenTelemetry's tools pass it to the programs they start.
constexpr char kTraceparentVariable[] = "TRACEPARENT";

std::string EnvironmentText(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// For CLI::Option::check, as NotEmpty.
std::string ValidJobName(const std::string& text) {
  if (core::IsRequestId(text)) return "";
  return absl::StrCat(core::Quoted(text), " is not a name of 1 to ", core::kMaxRequestNameBytes,
                      " printable ASCII characters without space, quote and backslash");
}

// One line on a failed attempt and the next one.
void PrintRetry(const std::string& server, const RetryNotice& notice) {
  PrintAboveProgress(absl::StrFormat(
      "spillway: %s%s; trying again in %.1f s (%d of %d)\n", core::PlainText(server),
      absl::IsUnavailable(notice.error) ? " cannot be reached" : " is overloaded",
      absl::ToDoubleSeconds(notice.pause), notice.next_attempt, notice.max_attempts));
}

// gRPC itself logs failed handshakes. Users get one sentence instead, unless they request gRPC's
// log with its variable.
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
      probe
          ? "The server to ask; of several, the first that serves."
          : "The server to use. Of several servers, or all addresses of a name (dns:///HOST:PORT), "
            "those that can be reached and serve take calls in turn. [default: none, in this "
            "process]");
  server->type_name("HOST:PORT[,...]")->check(NotEmpty)->group("Connection")->required(probe);
  command
      ->add_option("--timeout", timeout_,
                   "Gives up after this time: 30s, 500ms, 2m. [default: no limit]")
      ->type_name("DURATION")
      ->check(NotEmpty)
      ->group("Connection");
  AddTlsFlags(command, server);
  AddCallerFlags(command, server);
  if (probe) return;
  command
      ->add_option("--retries", retries_,
                   absl::StrCat("Number of further attempts if the server cannot be reached, or is "
                                "overloaded and says when to retry. Each follows a random pause "
                                "of at most 1 s, then 1.6 s, 2.6 s and so on, within the timeout. "
                                "Range: 0 to ",
                                kMaxRetries, ". [default: ", retries_, "]"))
      ->type_name("N")
      ->check(CLI::Range(0, kMaxRetries))
      ->needs(server)
      ->group("Connection");
  if (kind != Kind::kRewrite) return;
  command
      ->add_option(
          "--hedge-after", hedge_after_,
          "Sends the request a second time if there is no answer after this time, to another "
          "server if possible; the first answer counts. [default: never]")
      ->type_name("DURATION")
      ->check(NotEmpty)
      ->needs(server)
      ->group("Connection");
}

void ConnectionFlags::AddCallerFlags(CLI::App* command, CLI::Option* server) {
  constexpr char kGroup[] = "Caller";
  command
      ->add_option(
          "--token-file", token_file_,
          absl::StrCat("The file with the token to send to the server. [default: the value "
                       "of ",
                       kTokenVariable, "]"))
      ->type_name("FILE")
      ->check(NotEmpty)
      ->needs(server)
      ->group(kGroup);
  command
      ->add_flag("--token-in-clear", token_in_clear_,
                 "Sends the token to another machine even without TLS. Anyone who can read the "
                 "traffic can then use it.")
      ->needs(server)
      ->group(kGroup);
  command
      ->add_option("--request-id", request_id_,
                   "The name of the call in the server's log. [default: the server chooses one]")
      ->type_name("ID")
      ->check(NotEmpty)
      ->needs(server)
      ->group(kGroup);
  const auto add_name = [&](const char* flag, const char* key, const char* variable,
                            const char* what) {
    command
        ->add_option(flag, job_names_[key],
                     absl::StrCat(what, " [default: the value of ", variable, "]"))
        ->type_name("NAME")
        ->check(ValidJobName)
        ->needs(server)
        ->group(kGroup);
  };
  add_name("--job", core::kJobKey, "SPILLWAY_JOB",
           "The name of the job, for the server's log and its journal, which spillway stats "
           "summarizes.");
  add_name("--user", core::kUserKey, "SPILLWAY_USER", "The user whose job it is.");
  add_name("--queue", core::kQueueKey, "SPILLWAY_QUEUE",
           "The queue, partition or namespace of the job.");
  add_name("--model", core::kModelKey, "SPILLWAY_MODEL", "The model that the job trains.");
}

void ConnectionFlags::AddTlsFlags(CLI::App* command, CLI::Option* server) {
  command
      ->add_flag(
          "--tls", tls_,
          "Encrypts the connection. The server's certificate must come from an authority that this "
          "machine trusts. The flags below imply this one.")
      ->needs(server)
      ->group("TLS");
  const auto add_file = [&](const char* name, std::string* file, const char* help) {
    return command->add_option(name, *file, help)
        ->type_name("FILE")
        ->check(NotEmpty)
        ->needs(server)
        ->group("TLS");
  };
  add_file(
      "--tls-ca", &tls_options_.ca_file,
      "The authorities from which the server's certificate may come, instead of those that this "
      "machine trusts (PEM).");
  CLI::Option* const cert =
      add_file("--tls-cert", &tls_options_.cert_file,
               "The certificate to send to a server that requires one (PEM).");
  CLI::Option* const key =
      add_file("--tls-key", &tls_options_.key_file,
               "The private key of that certificate, without a passphrase (PEM).");
  cert->needs(key);
  key->needs(cert);
  command
      ->add_option("--tls-server-name", tls_options_.server_name,
                   "The name that the server's certificate must have. [default: the host of "
                   "--server]")
      ->type_name("NAME")
      ->check(NotEmpty)
      ->needs(server)
      ->group("TLS");
}

Client ConnectionFlags::Connect(Verbosity verbosity) const {
  if (server_.empty()) return Client(MakeLocalConnection());
  SilenceGrpc();
  RemoteOptions options;
  options.target = server_;
  options.retry.max_attempts = retries_ + 1;
  options.token_file = token_file_;
  options.token_in_clear = token_in_clear_;
  if (!hedge_after_.empty()) {
    // MakeCall has already reported an invalid value.
    options.hedge_after = ParseTimeout(hedge_after_).value_or(absl::InfiniteDuration());
  }
  const TlsOptions& tls = tls_options_;
  if (tls_ || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.server_name.empty()) {
    options.tls = tls;
  }
  if (verbosity == Verbosity::kNormal) {
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
  if (!hedge_after_.empty()) {
    const auto after = ParseTimeout(hedge_after_, "--hedge-after");
    if (!after.ok()) return after.status();
  }
  if (server_.empty()) return call;
  call.request_id = request_id_;
  for (const auto& [key, value] : job_names_) {
    if (!value.empty()) call.metadata.emplace_back(key, value);
  }
  if (token_file_.empty()) call.token = EnvironmentText(kTokenVariable);
  // Not the user's option: an invalid value starts no trace, as W3C specifies.
  const std::string traceparent = EnvironmentText(kTraceparentVariable);
  if (core::IsTraceparent(traceparent)) call.traceparent = traceparent;
  return call;
}

CallOptions Until(absl::Time deadline, const CallOptions& call) {
  CallOptions rest = call;
  if (deadline != absl::InfiniteFuture()) rest.timeout = deadline - core::SteadyNow();
  return rest;
}

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text, const std::string& flag) {
  absl::Duration timeout;
  if (!absl::ParseDuration(text, &timeout) || timeout <= absl::ZeroDuration()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat(flag, ": ", core::Quoted(text),
                     " is not a time above zero with a unit, e.g. 30s, 500ms, 2m"),
        {{"flag", flag}, {"value", text}});
  }
  return timeout;
}

}  // namespace spillway::cli
