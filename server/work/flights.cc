#include "server/work/flights.h"

#include <utility>

#include "absl/hash/hash.h"

namespace spillway::server {

Flights::Flight* Flights::Find(size_t hash, absl::string_view graph, absl::string_view options) {
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->options == options && it->second->graph == graph) return it->second;
  }
  return nullptr;
}

void Flights::Close(const Flight& flight) {
  const auto [begin, end] = index_.equal_range(flight.hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second != &flight) continue;
    index_.erase(it);
    return;
  }
}

Flights::Role Flights::Join(uint64_t member, absl::string_view graph, absl::string_view options,
                            Sharing sharing, const std::atomic<bool>& gone, Landed landed,
                            std::atomic<bool>** abandoned) {
  const size_t hash = sharing == Sharing::kShared ? absl::HashOf(graph, options) : 0;
  const std::lock_guard lock(mu_);
  // A Leave from now on waits for the lock and finds the member.
  if (gone.load(std::memory_order_relaxed)) return Role::kGone;
  if (Flight* const found = sharing == Sharing::kShared ? Find(hash, graph, options) : nullptr;
      found != nullptr) {
    flights_.emplace(member, flights_.at(found->leader));
    try {
      found->waiting.emplace(member, std::move(landed));
    } catch (...) {  // Out of memory.
      flights_.erase(member);
      throw;
    }
    return Role::kWaits;
  }
  auto flight = std::make_shared<Flight>();
  flight->leader = member;
  flight->graph = graph;
  flight->options = std::string(options);
  flight->hash = hash;
  *abandoned = &flight->abandoned;
  Flight* const made = flight.get();
  flights_.emplace(member, std::move(flight));
  if (sharing == Sharing::kAlone) return Role::kLeads;
  try {
    index_.emplace(hash, made);
  } catch (...) {
    flights_.erase(member);
    throw;
  }
  return Role::kLeads;
}

std::vector<Flights::Landed> Flights::Land(uint64_t member) {
  std::vector<Landed> waiting;
  const std::lock_guard lock(mu_);
  const std::shared_ptr<Flight> flight = flights_.at(member);
  Close(*flight);
  flights_.erase(member);
  for (auto& [id, landed] : flight->waiting) {
    flights_.erase(id);
    waiting.push_back(std::move(landed));
  }
  return waiting;
}

bool Flights::Leave(uint64_t member) {
  Landed landed;  // Destroyed after the lock is released.
  const std::lock_guard lock(mu_);
  const auto found = flights_.find(member);
  if (found == flights_.end()) return false;
  const std::shared_ptr<Flight> flight = found->second;
  const bool leads = flight->leader == member;
  if (leads) {
    flight->leader_is_gone = true;
  } else {
    landed = std::move(flight->waiting.at(member));
    flight->waiting.erase(member);
    flights_.erase(found);
  }
  if (flight->leader_is_gone && flight->waiting.empty()) {
    flight->abandoned = true;
    Close(*flight);
  }
  return !leads;
}

size_t Flights::waiting() const {
  const std::lock_guard lock(mu_);
  size_t count = 0;
  for (const auto& [member, flight] : flights_) count += flight->leader != member;
  return count;
}

}  // namespace spillway::server
