// Recent answers of rewrites, for who asks the same again: found by all bytes of the graph and of
// the options, so that nobody gets what another one's graph has made. Their plans are also found by
// plan_key.h, for who asks for the same graph in other bytes. The least recently asked for goes
// first; all of it goes before a request is refused for want of memory (admission.h).
//
// Thread-safe. Charges nobody's request for what it keeps.
#ifndef SPILLWAY_SERVER_ANSWER_CACHE_H_
#define SPILLWAY_SERVER_ANSWER_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/strings/string_view.h"
#include "server/admission.h"
#include "server/rewrite_task.h"

namespace spillway::server {

class AnswerCache {
 public:
  // Keeps at most `capacity_bytes`, of requests and answers together, in the budget of `admission`.
  // Both must live until it is gone.
  AnswerCache(int64_t capacity_bytes, Admission& admission);
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;
  ~AnswerCache();

  // The answer to this request; null if it is not here.
  std::shared_ptr<RewriteAnswer> Find(absl::string_view graph, absl::string_view options);

  // The plan of an answer with this plan key; null if there is none.
  std::shared_ptr<const core::PlannedStep> FindPlan(const std::string& plan_key);

  // Keeps `answer`, whose plan key may be empty, if there is room for it in the capacity and in the
  // budget. Sets its is_shared. REQUIRES: nobody else has it, and it is no error.
  void Keep(absl::string_view graph, absl::string_view options, const std::string& plan_key,
            const std::shared_ptr<RewriteAnswer>& answer);

  // Lets answers go that take at least so many bytes, or all. False: there were none.
  bool GiveUp(int64_t bytes);

  int64_t bytes() const;

 private:
  struct Entry {
    std::string graph, options, plan_key;
    std::shared_ptr<RewriteAnswer> answer;
    size_t hash;
    int64_t bytes;
    Admission::Ticket request;  // The memory of the first three.
  };
  using Entries = std::list<Entry>;  // The most recently asked for is first.

  std::unordered_multimap<size_t, Entries::iterator>::iterator Look(size_t hash,
                                                                    absl::string_view graph,
                                                                    absl::string_view options);
  // Moves the last entry to `gone`.
  void TakeLast(Entries* gone);

  const int64_t capacity_bytes_;
  Admission& admission_;
  mutable std::mutex mu_;  // Guards the rest.
  Entries entries_;
  std::unordered_multimap<size_t, Entries::iterator> index_;       // By hash.
  std::unordered_map<std::string, Entries::iterator> plan_index_;  // By plan key.
  int64_t bytes_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ANSWER_CACHE_H_
