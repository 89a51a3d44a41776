// A cache of recent rewrites' answers. Lookups compare all bytes of the graph and the options, so a
// hit is never the answer for a different graph. Plans are also found by plan key (plan_key.h), for
// the same graph in a different encoding. Eviction is least recently used first; the whole cache is
// evicted before a request is rejected for lack of memory (admission.h).
//
// Thread-safe. Its memory is not charged to any request.
#ifndef SPILLWAY_SERVER_WORK_ANSWER_CACHE_H_
#define SPILLWAY_SERVER_WORK_ANSWER_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/strings/string_view.h"
#include "server/memory/admission.h"
#include "server/work/rewrite_answer.h"

namespace spillway::server {

class AnswerCache {
 public:
  // Keeps at most `capacity_bytes` of requests and answers in total, within the budget of
  // `admission`, which must outlive it.
  AnswerCache(int64_t capacity_bytes, Admission& admission);
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;
  ~AnswerCache();

  // Returns the answer to this request; null on a miss.
  std::shared_ptr<RewriteAnswer> Find(absl::string_view graph, absl::string_view options);

  // Returns the plan of an answer with this plan key; null if none.
  std::shared_ptr<const core::PlannedStep> FindPlan(const std::string& plan_key);

  // Adds `answer`, whose plan key may be empty, if the capacity and the budget have room. Sets its
  // is_shared. REQUIRES: `answer` is the only reference to it, and it is not an error.
  void Keep(absl::string_view graph, absl::string_view options, const std::string& plan_key,
            const std::shared_ptr<RewriteAnswer>& answer);

  // Evicts answers of at least this many bytes in total, or all. Returns false if there were none.
  bool GiveUp(int64_t bytes);

  int64_t bytes() const;

 private:
  struct Entry {
    std::string graph, options, plan_key;
    std::shared_ptr<RewriteAnswer> answer;
    size_t hash;
    int64_t bytes;
    Admission::Ticket request;  // Memory of graph, options and plan_key.
  };
  using Entries = std::list<Entry>;  // Most recently used first.

  std::unordered_multimap<size_t, Entries::iterator>::iterator Look(size_t hash,
                                                                    absl::string_view graph,
                                                                    absl::string_view options);
  // Moves the least recently used entry to `gone`.
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

#endif  // SPILLWAY_SERVER_WORK_ANSWER_CACHE_H_
