// The flags of a connection: --server, --timeout, --retries, TLS and the identity of the caller;
// and the client and call options made from them.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_

#include <map>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/cli/base/session.h"
#include "client_lib/cli/print/progress_line.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"

namespace spillway::cli {

// Must live as long as the App. Not thread-safe.
class ConnectionFlags {
 public:
  // The kind of command: one that may run in this process (no --server); such a command that
  // rewrites, and may hedge; or `health`, which queries a server once, without retries.
  enum class Kind { kCall, kRewrite, kProbe };

  ConnectionFlags(CLI::App* command, Kind kind);

  // Returns a client as the flags specify. It connects at the first call. Each retry is reported in
  // a line on standard error, unless quiet.
  Client Connect(Verbosity verbosity = Verbosity::kNormal) const;

  // Whether --server was given.
  bool HasServer() const { return !server_.empty(); }

  // Returns the options of one call, with the session's cancellation. For a server, also sets the
  // names from --job, --user, --queue and --model (the connection handles SPILLWAY_JOB and the
  // like), the token in SPILLWAY_TOKEN, unless there is a token file, and the span in TRACEPARENT,
  // if it is well formed. BAD_OPTION for an invalid --timeout or --hedge-after.
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
  // By metadata key.
  std::map<std::string, std::string> job_names_;
};

// Returns `call` with the time left until `deadline` as its timeout, for files of several graphs.
CallOptions Until(absl::Time deadline, const CallOptions& call);

// Parses `30s`, `500ms`, `1m30s`. BAD_OPTION unless it is positive.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text,
                                            const std::string& flag = "--timeout");

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_CONNECTION_FLAGS_H_
