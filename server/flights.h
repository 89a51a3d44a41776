// Rewrites that are being made, so that one that is asked for twice at one time is made once: the
// ranks of a job, and clients that try again. The first to ask leads and does the work; whoever
// asks the same meanwhile waits for it, without a worker. Who asks the same is found by comparing
// all bytes.
//
//   switch (flights.Join(member, ...)) {
//     case kLeads: ...the work, until *abandoned...; calls what flights.Land(member) gives
//     case kWaits: ...`landed` is called with the answer, unless Leave says otherwise...
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_FLIGHTS_H_
#define SPILLWAY_SERVER_FLIGHTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::server {

struct RewriteAnswer;

class Flights {
 public:
  enum class Role {
    kLeads,
    kWaits,
    kGone,  // The caller had gone before it came here.
  };
  // Whether others may wait for a member, and it for others.
  enum class Sharing { kAlone, kShared };
  // Called with the answer and the leader's graph, which is gone when it returns.
  using Landed =
      std::function<void(const std::shared_ptr<RewriteAnswer>&, absl::string_view graph)>;

  // Of requests that should wait for each other: what is larger takes long to compare, or to keep.
  static constexpr size_t kMaxGraphBytes = size_t{64} << 20;
  static constexpr size_t kMaxOptionBytes = size_t{64} << 10;

  // `member`: unlike any other that is here, not 0. `graph` and `options` name what is asked for;
  // `graph` must stay as it is until the member lands, leaves or is called. kAlone: nobody
  // waits for it, nor it for others. `gone`: whether its caller has gone. kLeads:
  // `*abandoned` becomes true once nobody wants the answer any more; it lives until Land, and the
  // leader may set it to give up.
  Role Join(uint64_t member, absl::string_view graph, absl::string_view options, Sharing sharing,
            const std::atomic<bool>& gone, Landed landed, std::atomic<bool>** abandoned);

  // The leader has made the answer: those who wait for it, to be called.
  std::vector<Landed> Land(uint64_t member);

  // The member's caller has gone. True: it waited, and will not be called. A leader works on for
  // those who wait.
  bool Leave(uint64_t member);

  // How many wait.
  size_t waiting() const;

 private:
  struct Flight {
    uint64_t leader;
    absl::string_view graph;
    std::string options;
    size_t hash;
    bool leader_is_gone = false;
    std::atomic<bool> abandoned{false};
    std::map<uint64_t, Landed> waiting;
  };
  using Index = std::unordered_multimap<size_t, Flight*>;

  Flight* Find(size_t hash, absl::string_view graph, absl::string_view options);
  // Nobody else joins it.
  void Close(const Flight& flight);

  mutable std::mutex mu_;                                          // Guards the rest.
  Index index_;                                                    // By hash.
  std::unordered_map<uint64_t, std::shared_ptr<Flight>> flights_;  // By member.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_FLIGHTS_H_
