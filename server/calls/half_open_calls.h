// Calls whose first message has not arrived. They cost a client a few bytes each, and are outside
// the memory budget: so an address has few of them, and none lasts. (gRPC would read a unary
// method's message before it reports the call, and wait for ever: raw_service.h.)
//
// gRPC 1.51 shows a message only when it is complete. So a call whose message may be large
// continues while its connection receives bytes as fast as an upload must, for as long as the
// largest message may take.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_CALLS_HALF_OPEN_CALLS_H_
#define SPILLWAY_SERVER_CALLS_HALF_OPEN_CALLS_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/observe/metrics.h"

namespace spillway::server {

class HalfOpenCalls {
 public:
  // As for a silent connection: the handshake timeout of server.cc.
  static constexpr absl::Duration kTimeout = absl::Seconds(10);
  // Of one address; each takes some 12 KiB of gRPC's memory (measured).
  static constexpr int kMostOfHost = 4000;

  enum class Message { kSmall, kMayBeLarge };

  // How many bytes the connection of a peer (as gRPC spells it) has received; -1: unknown.
  using ReceivedBytes = std::function<int64_t(const std::string& peer)>;

 private:
  struct Entry {
    std::string peer, host;
    std::function<void()> cancel;
    absl::Time due;
    absl::Time last_due;  // Regardless of received bytes.
    int64_t received;     // At the last check.
    bool is_late;         // Cancelled.
  };

 public:
  // The wait of one call, cancelled by timeout. Not thread-safe.
  class Wait {
   public:
    // `context` must outlive it.
    Wait(HalfOpenCalls& calls, grpc::CallbackServerContext& context, Message message)
        : Wait(calls, context.peer(), CallerOf(context).host(), message,
               [&context] { context.TryCancel(); }) {}
    // `cancel` must not end the wait.
    Wait(HalfOpenCalls& calls, std::string peer, std::string host, Message message,
         std::function<void()> cancel);
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() { End(); }

    // RESOURCE_EXHAUSTED (OVERLOADED), counted as a rejection, if this address has too many: the
    // call must end.
    const absl::Status& status() const { return status_; }

    // The message has arrived. Idempotent.
    void End();

   private:
    HalfOpenCalls& calls_;
    absl::Status status_;
    bool waits_ = false;
    std::list<Entry>::iterator entry_;
  };

  // Large messages have `max_message_bytes`, which arrive with `min_rate` per second, or faster.
  // Both references must outlive it.
  HalfOpenCalls(Clock& clock, Metrics& metrics, int64_t max_message_bytes, int64_t min_rate);

  // The status of a wait that would begin now: for calls whose reactors are costly to make.
  absl::Status Check(const grpc::CallbackServerContext& context);

  // Called at most once, before there are calls.
  void SeeReceived(ReceivedBytes received_bytes) { received_bytes_ = std::move(received_bytes); }

 private:
  // Cancels calls that are late; returns when to look again.
  absl::Time CancelLate();
  // These REQUIRE that mu_ is held.
  absl::Status CheckRoom(const std::string& host) const;
  bool Arrives(Entry& entry, absl::Time now) const;

  Clock& clock_;
  Metrics& metrics_;
  const absl::Duration longest_;  // Of a large message.
  const int64_t due_bytes_;       // Of one, in kTimeout.
  ReceivedBytes received_bytes_;
  std::mutex mu_;           // Guards the next three.
  std::list<Entry> waits_;  // By `due`.
  std::list<Entry> late_;   // Until their ends.
  absl::flat_hash_map<std::string, int> of_host_;
  std::unique_ptr<Clock::Timer> timer_;  // Last, so that it stops before the rest is destroyed.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_HALF_OPEN_CALLS_H_
