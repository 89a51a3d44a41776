#include "client_lib/cli/connection_flags.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/error.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

ConnectionFlags::ConnectionFlags(CLI::App* command, bool needs_server) {
  CLI::Option* server = command->add_option(
      "--server", server_,
      needs_server ? "The server to ask." : "The server to use. [default: none, in this process]");
  server->type_name("HOST:PORT")->group("Where and how long")->required(needs_server);
  command
      ->add_option("--timeout", timeout_,
                   "Gives up after this time, e.g. 30s, 500ms, 2m. [default: no limit]")
      ->type_name("DURATION")
      ->group("Where and how long");
}

Client ConnectionFlags::Connect() const {
  if (server_.empty()) return Client(MakeLocalConnection());
  RemoteOptions options;
  options.target = server_;
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
