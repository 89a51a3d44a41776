// The flags of a connection: --server, --timeout, --retries, those of TLS and of what the server is
// told of the caller, and what follows from them.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_

#include <map>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/cli/print/verbosity.h"
#include "client_lib/cli/session.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

// Must live as long as the App. Not thread-safe.
class ConnectionFlags {
 public:
  // Which commands these are: those that may run in this process (no --server); of them, those that
  // rewrite, which may ask twice; and `health`, which asks a server, once.
  enum class Kind { kCall, kRewrite, kProbe };

  ConnectionFlags(CLI::App* command, Kind kind);

  // A client for what was given. Nothing is connected before the first call. Each time a call is
  // tried again, a line on standard error says so, unless quiet.
  Client Connect(Verbosity verbosity = Verbosity::kNormal) const;

  // Whether that is one to a server.
  bool HasServer() const { return !server_.empty(); }

  // The options of one call, with the session's cancellation. For a server also what --job, --user,
  // --queue and --model say (what SPILLWAY_JOB and its like do is the connection's), the token in
  // SPILLWAY_TOKEN, unless there is a file of one, and the span in TRACEPARENT, if it is well
  // formed. BAD_OPTION for a wrong --timeout or --hedge-after.
  absl::StatusOr<CallOptions> MakeCall(const Session& session) const;

 private:
  void AddTlsFlags(CLI::App* command, CLI::Option* server);
  void AddCallerFlags(CLI::App* command, CLI::Option* server);

  std::string server_;
  std::string timeout_;
  bool tls_ = false;
  TlsOptions tls_options_;
  int retries_;
  std::string hedge_after_;
  std::string token_file_;
  bool token_in_clear_ = false;
  std::string request_id_;
  // By the metadata that they are sent as.
  std::map<std::string, std::string> job_names_;
};

// `30s`, `500ms`, `1m30s`; positive, or BAD_OPTION.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text,
                                            const std::string& flag = "--timeout");

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_
