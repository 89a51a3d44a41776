// Rewrites in progress. Identical concurrent requests, such as those of the ranks of a job or of
// retrying clients, are computed once: the first one leads and does the work, the others wait for
// it without a worker. Requests are compared by all their bytes.
//
//   switch (flights.Join(member, ...)) {
//     case kLeads: ...the work, until *abandoned...; calls all of flights.Land(member)
//     case kWaits: ...`landed` is called with the answer, unless Leave says otherwise...
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_WORK_FLIGHTS_H_
#define SPILLWAY_SERVER_WORK_FLIGHTS_H_

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
    kGone,  // The caller had already disconnected.
  };
  // Whether others may wait for a member, and it for others.
  enum class Sharing { kAlone, kShared };
  // Called with the answer and the leader's graph, which is only valid during the call.
  using Landed =
      std::function<void(const std::shared_ptr<RewriteAnswer>&, absl::string_view graph)>;

  // Maximum graph size of requests that wait for each other: larger ones take too long to compare,
  // or too much memory to keep.
  static constexpr size_t kMaxGraphBytes = size_t{64} << 20;
  static constexpr size_t kMaxOptionBytes = size_t{64} << 10;

  // `member`: a unique id, not 0. `graph` and `options` are the request; `graph` must stay
  // unchanged until the member lands, leaves or is called. `gone`: whether its caller has
  // disconnected. With kLeads, `*abandoned` becomes true once no caller wants the answer any more;
  // it lives until Land, and the leader may set it to give up.
  Role Join(uint64_t member, absl::string_view graph, absl::string_view options, Sharing sharing,
            const std::atomic<bool>& gone, Landed landed, std::atomic<bool>** abandoned);

  // Called by the leader when the answer is ready. Returns the callbacks of the waiting members,
  // which the leader must call.
  std::vector<Landed> Land(uint64_t member);

  // Called when the member's caller has disconnected. Returns true if the member was waiting; it
  // will then not be called. A leader continues for the waiting members.
  bool Leave(uint64_t member);

  // Number of waiting members.
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
  // Prevents others from joining it.
  void Close(const Flight& flight);

  mutable std::mutex mu_;                                          // Guards the rest.
  Index index_;                                                    // By hash.
  std::unordered_map<uint64_t, std::shared_ptr<Flight>> flights_;  // By member.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_FLIGHTS_H_
