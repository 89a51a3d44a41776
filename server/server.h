// The composition root: builds everything from an Options, listens, and drains. The only file that
// depends on all the parts.
//
//   absl::StatusOr<std::unique_ptr<Server>> server = Server::BuildAndStart(options);
//   ...
//   (*server)->Drain();   // Health says NOT_SERVING, running requests end, then the server does.
//
// Several servers may exist in one process; nothing here is global except gRPC's switches for
// health and reflection.
#ifndef SPILLWAY_SERVER_SERVER_H_
#define SPILLWAY_SERVER_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/options.h"

namespace spillway::server {

class Server {
 public:
  // Starts to listen and serve. Errors, one sentence that names the flag and its value: UNAVAILABLE
  // if an address cannot be listened on or the journal cannot be written, FAILED_PRECONDITION if a
  // TLS file or the file of --access-file cannot be used, INVALID_ARGUMENT if other machines could
  // connect without TLS and options.insecure does not allow it, or if a Unix socket is given twice.
  // REQUIRES: valid options, as ParseFlags checks.
  static absl::StatusOr<std::unique_ptr<Server>> BuildAndStart(Options options);

  // Checks whether a server could start, except for addresses in use. The same errors.
  static absl::Status Check(Options options);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Drains without delay and cancels running requests.
  ~Server();

  // The addresses that it listens on, as given but with the actual ports.
  std::vector<std::string> addresses() const;
  // The ports in use: of the first HOST:PORT, and of the metrics endpoint. 0 if none.
  int port() const;
  int metrics_port() const;

  // Returns the answer to a scrape, in Prometheus' text format, even if metrics_listen is none.
  std::string Scrape() const;

  // Currently in flight: bytes of graphs, bytes of memory that requests hold, number of requests.
  int64_t inflight_bytes() const;
  int64_t memory_bytes() const;
  int inflight_requests() const;
  // Requests that wait for another one's rewrite.
  int shared_requests() const;

  // Stops, in this order: health says NOT_SERVING, options.drain_delay passes with requests still
  // accepted, new requests are rejected, running ones continue for up to options.drain_timeout,
  // remaining ones are cancelled, the listeners close. Blocks until then; returns true if nothing
  // had to be cancelled. Thread-safe; a second call waits for the first.
  bool Drain();

  // Drains on a separate thread, and waits for at most `grace` for work that does not stop when it
  // is cancelled. Returns false if some is still running; only the end of the process ends it, and
  // the destructor waits for it.
  bool DrainOrLeave(absl::Duration grace);

 private:
  struct Parts;

  explicit Server(std::unique_ptr<Parts> parts);
  bool DrainWithin(absl::Duration delay, absl::Duration timeout);

  std::unique_ptr<Parts> parts_;
};

// Returns the number of worker threads, at least 1.
int WorkerCount(const Options& options);

// Returns the maximum number of open connections, at least 1.
int MaxConnections(const Options& options);

// Returns the maximum number of open connections of one address, at least 1.
int MaxHostConnections(const Options& options);

// Returns one caller's maximum bytes in flight.
int64_t MaxCallerBytes(const Options& options);

// Returns the memory budget of all requests, in bytes.
int64_t MemoryBudget(const Options& options);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SERVER_H_
