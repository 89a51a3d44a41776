// A server (spillwayd) over gRPC.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "spillway/connection.h"
#include "spillway/export.h"

namespace spillway {

// A failed attempt that is about to be followed by another.
struct RetryNotice {
  absl::Status error;    // How the attempt failed.
  absl::Duration pause;  // Until the next one.
  int next_attempt = 0;  // Its number, from 2 to max_attempts.
  int max_attempts = 0;
};

// How failed calls are retried. Every call of the service is idempotent.
//
// A call is retried if it failed with UNAVAILABLE (the server cannot be reached or is stopping; not
// if client and server disagree on TLS), or with OVERLOADED if the server says when to retry
// (pushback). Any other error would recur. A retry starts from the beginning, on a new connection.
//
// The backoff before attempt n + 1 is drawn at random between 0 and
// min(initial_backoff * 1.6^(n-1), max_backoff), so that clients that failed together do not retry
// together. The server's pushback, if any, is added, up to max_backoff. A call whose deadline would
// pass during the backoff fails immediately with the error it had; a cancelled call ends
// immediately. The multiplier and the durations are those of gRPC's own connection backoff.
struct RetryOptions {
  // Maximum number of attempts of a call in all. Range: 1 (no retries) and up.
  int max_attempts = 5;
  // Above zero.
  absl::Duration initial_backoff = absl::Seconds(1);
  absl::Duration max_backoff = absl::Seconds(120);
  // Called before each pause, on the calling thread, if set.
  std::function<void(const RetryNotice&)> on_retry = nullptr;
};

// TLS settings for a server. The files are in PEM format. They are read by the first call, and
// again by the next attempt of any call after one that failed with UNAVAILABLE or because a file
// was unusable (INVALID_ARGUMENT): renewed or repaired files take effect without a new client. When
// gRPC itself reopens a connection that was closed in between (by an idle or restarted server), it
// uses the files as last read. The minimum version is TLS 1.2.
struct TlsOptions {
  // The CA certificates that may sign the server's certificate. Empty: those that this machine
  // trusts (GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, or the system's).
  std::string ca_file = {};

  // The client's certificate followed by its intermediate certificates, and its private key without
  // passphrase, for servers that request one. Both or neither.
  std::string cert_file = {};
  std::string key_file = {};

  // The name that the server's certificate must contain. Empty: the host in the target.
  std::string server_name = {};
};

// How to reach a server. Every field has a default, so that `{"host:7070"}` compiles without a
// warning.
struct RemoteOptions {
  // REQUIRED. `host:port`, `unix:/path`, or any other name that gRPC resolves.
  //
  // Several servers: comma-separated addresses (paths must then not contain commas), or
  // `dns:///host:port` for all addresses of a name. Calls go round robin from a random start,
  // skipping servers that cannot be reached or report through grpc.health.v1 that they do not serve
  // spillway.v1.RewriteService. A server without grpc.health.v1 counts as serving. For a plain
  // `host:port`, the first address that answers is used, and its health is not checked.
  std::string target = {};

  // Absent: the connection is not encrypted, for this machine and trusted networks.
  absl::optional<TlsOptions> tls = absl::nullopt;

  // Graphs to rewrite of up to this many bytes go in one message, larger ones in a stream; graphs
  // of Inspect, Simulate, Explore and Diff always go in a stream. A stream costs an additional
  // round trip; for graphs of more than a few MiB it is 3 to 9 times as fast and takes a third of
  // the memory (measured). If the server's limit for one message is lower, the graph is sent again
  // as a stream.
  int64_t unary_max_bytes = 2 << 20;

  // The graph bytes in each message of a stream. Best from 256 KiB to 1 MiB (measured); above the
  // server's limit max_chunk_bytes the call fails.
  int64_t chunk_bytes = 512 << 10;

  // Applies to all calls except CheckHealth, which is never retried, since it reports the present
  // state. With several servers, CheckHealth asks each in turn until one serves.
  RetryOptions retry = {};

  // A file with a token that is sent with each call (`authorization: Bearer TOKEN`), unless the
  // call has its own. Read by every call, so that a token may be renewed; surrounding whitespace is
  // stripped. Empty: none.
  std::string token_file = {};

  // Also sends tokens if others can read them: without TLS, to an address that is neither a Unix
  // socket nor on this machine (`localhost`, 127.0.0.0/8, ::1). Otherwise such a call fails with
  // INVALID_ARGUMENT (BAD_OPTION), and nothing is sent.
  bool token_in_clear = false;

  // A rewrite or strip without an answer after this time is sent a second time, to another server
  // if any, otherwise on a new connection. The first answer wins, and the other attempt is
  // cancelled; there are never more than two. A server computes identical concurrent requests once.
  // Above zero. Infinite, the default: never.
  absl::Duration hedge_after = absl::InfiniteDuration();
};

// Returns a connection to the server in `options`, without connecting or reading files: the channel
// is opened by the first call, shared by all calls and replaced when it breaks. If the server
// cannot be reached, each call fails with UNAVAILABLE once its attempts are used up.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_
