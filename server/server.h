// The composition root: builds everything from an Options, listens, and drains. The only file that
// knows all the parts.
//
//   absl::StatusOr<std::unique_ptr<Server>> server = Server::BuildAndStart(options);
//   ...
//   (*server)->Drain();   // Health says NOT_SERVING, running requests end, then the server does.
//
// Several servers may live in one process; nothing here is global but gRPC's own switches for
// health and reflection.
#ifndef SPILLWAY_SERVER_SERVER_H_
#define SPILLWAY_SERVER_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options.h"

namespace spillway::server {

class Server {
 public:
  // Starts to listen and to serve. Errors, one sentence that names the flag and its value:
  // UNAVAILABLE if an address cannot be listened on or the journal not be written,
  // FAILED_PRECONDITION if a TLS file or the one of --access-file cannot be used, INVALID_ARGUMENT
  // if other machines could listen in and options.insecure does not allow it. REQUIRES: options as
  // ParseFlags checks them.
  static absl::StatusOr<std::unique_ptr<Server>> BuildAndStart(Options options);

  // Whether a server could start so, but for addresses that are taken: these errors.
  static absl::Status Check(Options options);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Drains without delay and cancels what still runs.
  ~Server();

  // Where it listens, as given but with the real ports.
  std::vector<std::string> addresses() const;
  // The ports in use: of the first HOST:PORT, and of the scrapes. 0 if there is none.
  int port() const;
  int metrics_port() const;

  // What a scrape of /metrics says, in Prometheus' text format; also where metrics_listen is none.
  std::string Scrape() const;

  // In flight now: bytes of graphs, bytes of memory that requests hold, requests.
  int64_t inflight_bytes() const;
  int64_t memory_bytes() const;
  int inflight_requests() const;
  // Of these, those that wait for another's rewrite.
  int shared_requests() const;

  // Stops, in this order: health says NOT_SERVING, options.drain_delay passes with requests still
  // taken, new requests are refused, running ones go on for up to options.drain_timeout, what is
  // left is cancelled, the listeners close. Blocks until then; true if nothing had to be
  // cancelled. Thread-safe; a second call waits for the first.
  bool Drain();

  // Drain, in a thread of its own, which waits for work that does not stop when it is told to no
  // longer than `grace`. False: some goes on; only the end of the process ends it, and the
  // destructor waits for it.
  bool DrainOrLeave(absl::Duration grace);

 private:
  struct Parts;

  explicit Server(std::unique_ptr<Parts> parts);
  bool DrainWithin(absl::Duration delay, absl::Duration timeout);

  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SERVER_H_
