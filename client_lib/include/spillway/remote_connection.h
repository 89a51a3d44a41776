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

// How a call that failed is tried again. Every call of the service may be repeated safely.
//
// Tried again are UNAVAILABLE (the server cannot be reached, or is stopping; not where the two do
// not agree on TLS), and OVERLOADED if the server says when to come back. Everything else fails the
// same way the next time. Another attempt starts from the beginning, on a new connection.
//
// The pause before attempt n + 1 is chosen at random between 0 and min(initial_backoff * 1.6^(n-1),
// max_backoff), so that clients that failed together do not come back together; a server that says
// how long to stay away gets that on top, up to max_backoff. A call whose deadline would pass in
// the pause fails at once, with the error that it had; one that is cancelled ends at once. The
// multiplier and the durations are those with which gRPC itself opens a broken connection again.
struct RetryOptions {
  // Attempts of one call in all. Range: 1 (never tried again) and up.
  int max_attempts = 5;
  // Above zero.
  absl::Duration initial_backoff = absl::Seconds(1);
  absl::Duration max_backoff = absl::Seconds(120);
  // Called before each pause, on the calling thread, if set.
  std::function<void(const RetryNotice&)> on_retry = nullptr;
};

// TLS with a server. The files are in PEM format. They are read by the first call, and again by the
// next attempt of any call after one that was UNAVAILABLE or found a file that cannot be used
// (INVALID_ARGUMENT): files that were renewed or repaired are taken without a new client. Where
// gRPC itself opens a connection again that was closed in between (by an idle or restarted server)
// it goes on with those that were read last. TLS 1.2 is the oldest version spoken.
struct TlsOptions {
  // The authorities that the server's certificate may come from. Empty: those that this machine
  // trusts (GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, or the system's).
  std::string ca_file = {};

  // The client's certificate, followed by those between it and its authority, and its private key
  // without passphrase: for servers that ask for one. Both or none.
  std::string cert_file = {};
  std::string key_file = {};

  // The name that the server's certificate must hold. Empty: the host in the target.
  std::string server_name = {};
};

// How to reach a server. Every field has a default, so that `{"host:7070"}` is one, without a
// warning of any compiler.
struct RemoteOptions {
  // REQUIRED. `host:port`, `unix:/path`, or any other name that gRPC resolves.
  //
  // Several servers: their addresses with commas between (so that no path may have one), or
  // `dns:///host:port` for all that the name stands for. Calls go to one after the other, first to
  // any, but not to those that cannot be reached or say by grpc.health.v1 that they do not serve
  // spillway.v1.RewriteService. A server without grpc.health.v1 counts as one that serves. Of a
  // plain `host:port` the first address that answers is taken, and its health is not asked for.
  std::string target = {};

  // Absent: the connection is not encrypted, for this machine and trusted networks.
  absl::optional<TlsOptions> tls = absl::nullopt;

  // Graphs to rewrite, up to this many bytes, go in one message, larger ones in a stream; those of
  // Inspect, Simulate, Explore and Diff always do. A stream costs a round trip more and is 3 to 9
  // times as fast, with a third of the memory, from some MiB on (measured). A server that takes
  // less in one message gets the graph as a stream after all.
  int64_t unary_max_bytes = 2 << 20;

  // The graph bytes in each message of a stream. Best from 256 KiB to 1 MiB (measured); above the
  // server's limit max_chunk_bytes the call fails.
  int64_t chunk_bytes = 512 << 10;

  // Holds for all calls but CheckHealth, which is never tried again: who asks wants to know how it
  // is now. Of several servers it asks each in turn until one serves.
  RetryOptions retry = {};

  // A file with a token that each call shows (`authorization: Bearer TOKEN`), unless it has one of
  // its own. Read by every call, so that a token may be renewed; space around it is left out.
  // Empty: none.
  std::string token_file = {};

  // Also sends tokens where others can read them: without TLS, to an address that is neither a Unix
  // socket nor this machine's own (`localhost`, 127.0.0.0/8, ::1). Otherwise such a call is
  // INVALID_ARGUMENT (BAD_OPTION), and nothing is sent.
  bool token_in_clear = false;

  // A rewrite, or strip, that has no answer after this long is asked for a second time, of another
  // server if there is one, otherwise on a new connection. The first answer counts, and the other
  // attempt is cancelled: there are never more than two. Servers compute identical requests that
  // they have at one time once. Above zero. Infinite, the default: never.
  absl::Duration hedge_after = absl::InfiniteDuration();
};

// A connection to the server of `options`. Returns at once and reads no file: the channel is opened
// by the first call, shared by all and replaced when it breaks. A server that cannot be reached is
// UNAVAILABLE at each call, once its attempts are used up.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_
