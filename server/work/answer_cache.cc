#include "server/work/answer_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/hash/hash.h"
#include "server/memory/memory_account.h"

namespace spillway::server {
namespace {

int64_t BytesOf(const RewriteAnswer& answer) {
  const int64_t found =
      static_cast<int64_t>(answer.graph.capacity() + answer.response.SpaceUsedLong() +
                           answer.figures.SpaceUsedLong()) +
      (answer.plan == nullptr ? 0 : answer.plan->SpaceUsed());
  return std::max(found, answer.memory.work_bytes());  // The latter if allocations are counted.
}

}  // namespace

AnswerCache::AnswerCache(int64_t capacity_bytes, Admission& admission)
    : capacity_bytes_(capacity_bytes), admission_(admission) {
  admission_.ReclaimWith([this](int64_t bytes) { return GiveUp(bytes); });
}

AnswerCache::~AnswerCache() { admission_.ReclaimWith(nullptr); }

std::unordered_multimap<size_t, AnswerCache::Entries::iterator>::iterator AnswerCache::Look(
    size_t hash, absl::string_view graph, absl::string_view options) {
  auto [it, end] = index_.equal_range(hash);
  while (it != end && (it->second->options != options || it->second->graph != graph)) ++it;
  return it == end ? index_.end() : it;
}

std::shared_ptr<RewriteAnswer> AnswerCache::Find(absl::string_view graph,
                                                 absl::string_view options) {
  if (capacity_bytes_ == 0) return nullptr;
  const size_t hash = absl::HashOf(graph, options);
  const std::lock_guard lock(mu_);
  const auto found = Look(hash, graph, options);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

std::shared_ptr<const core::PlannedStep> AnswerCache::FindPlan(const std::string& plan_key) {
  const std::lock_guard lock(mu_);
  const auto found = plan_index_.find(plan_key);
  if (found == plan_index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer->plan;
}

void AnswerCache::Keep(absl::string_view graph, absl::string_view options,
                       const std::string& plan_key, const std::shared_ptr<RewriteAnswer>& answer) {
  const MemoryAccount::Scope nobody(nullptr);
  const int64_t request_bytes =
      static_cast<int64_t>(graph.size() + options.size() + plan_key.size());
  const int64_t bytes = request_bytes + BytesOf(*answer);
  if (bytes > capacity_bytes_) return;
  absl::StatusOr<Admission::Ticket> ticket = admission_.Reserve(0);
  if (!ticket.ok() || !ticket->AddWork(request_bytes)) return;
  answer->is_shared = true;
  const size_t hash = absl::HashOf(graph, options);
  Entries made, gone;  // Made and freed without the lock.
  made.push_back({std::string(graph), std::string(options), plan_key, answer, hash, bytes,
                  *std::move(ticket)});
  const std::lock_guard lock(mu_);
  if (Look(hash, graph, options) != index_.end()) return;
  entries_.splice(entries_.begin(), made);
  bytes_ += bytes;
  while (bytes_ > capacity_bytes_) TakeLast(&gone);
  // Last, since these may throw: an entry that is not in an index is evicted like any other.
  index_.emplace(hash, entries_.begin());
  if (answer->plan != nullptr && !plan_key.empty()) plan_index_.emplace(plan_key, entries_.begin());
}

bool AnswerCache::GiveUp(int64_t bytes) {
  const MemoryAccount::Scope nobody(nullptr);
  Entries gone;
  const std::lock_guard lock(mu_);
  if (entries_.empty()) return false;
  for (const int64_t before = bytes_; !entries_.empty() && before - bytes_ < bytes;) {
    TakeLast(&gone);
  }
  return true;
}

void AnswerCache::TakeLast(Entries* gone) {
  const auto last = std::prev(entries_.end());
  const auto [begin, end] = index_.equal_range(last->hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second != last) continue;
    index_.erase(it);
    break;
  }
  const auto plan = plan_index_.find(last->plan_key);
  if (plan != plan_index_.end() && plan->second == last) plan_index_.erase(plan);
  bytes_ -= last->bytes;
  gone->splice(gone->end(), entries_, last);
}

int64_t AnswerCache::bytes() const {
  const std::lock_guard lock(mu_);
  return bytes_;
}

}  // namespace spillway::server
