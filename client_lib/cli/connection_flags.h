// The flags of a connection: --server, --timeout, --retries and those of TLS, and what follows from
// them.
#ifndef SPILLWAY_CLIENT_LIB_CLI_CONNECTION_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_CONNECTION_FLAGS_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/cli/session.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

// Must live as long as the App. Not thread-safe.
class ConnectionFlags {
 public:
  // Which commands these are: those that may run in this process (no --server), and `health`, which
  // asks a server, once.
  enum class Kind { kCall, kProbe };

  ConnectionFlags(CLI::App* command, Kind kind);

  // A client for what was given. Nothing is connected before the first call. Each time a call is
  // tried again, a line on standard error says so, unless `quiet`.
  Client Connect(bool quiet) const;

  // The options of one call, with the session's cancellation. BAD_OPTION for a wrong --timeout.
  absl::StatusOr<CallOptions> MakeCall(const Session& session) const;

 private:
  void AddTlsFlags(CLI::App* command, CLI::Option* server);

  std::string server_;
  std::string timeout_;
  bool tls_ = false;
  TlsOptions tls_options_;
  int retries_;
};

// `30s`, `500ms`, `1m30s`; positive, or BAD_OPTION.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_CONNECTION_FLAGS_H_
