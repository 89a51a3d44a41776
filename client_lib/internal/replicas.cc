#include "client_lib/internal/replicas.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/random/random.h"
#include "client_lib/internal/addresses.h"

namespace spillway::internal {
namespace {

Routing RoutingOf(const std::vector<std::string>& addresses) {
  return addresses.size() > 1 || IsNameOfMany(addresses[0]) ? Routing::kHealthyServers
                                                            : Routing::kOneServer;
}

}  // namespace

Link::Link(const RemoteOptions& options, const std::string& given, Routing routing)
    : address(given) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> made = MakeChannel(options, address, routing);
  status = made.status();
  if (!status.ok()) return;
  channel = *std::move(made);
  stub = v1::RewriteService::NewStub(channel);
}

bool Tour::HasOther() const { return std::find(asked.begin(), asked.end(), false) != asked.end(); }

Replicas::Replicas(const RemoteOptions& options, std::vector<std::string> addresses)
    : options_(options),
      addresses_(std::move(addresses)),
      routing_(RoutingOf(addresses_)),
      links_(addresses_.size()),
      next_(absl::Uniform<size_t>(absl::BitGen(), 0, addresses_.size())) {}

std::shared_ptr<const Link> Replicas::Next(Tour* tour) {
  const size_t count = addresses_.size();
  std::lock_guard<std::mutex> lock(mutex_);
  const bool again = !tour->asked.empty() && !tour->HasOther();
  if (again || tour->asked.empty()) tour->asked.assign(count, false);
  size_t best = 0;
  int best_rank = std::numeric_limits<int>::max();
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (next_ + i) % count;
    if (tour->asked[index] || (again && count > 1 && index == tour->last)) continue;
    const int rank = Rank(index);
    if (rank >= best_rank) continue;
    best = index;
    best_rank = rank;
  }
  next_ = (best + 1) % count;
  tour->asked[best] = true;
  tour->last = best;
  return LinkTo(best);
}

std::shared_ptr<const Link> Replicas::Beside(Tour* tour) {
  if (routing_ == Routing::kHealthyServers) return Next(tour);
  return std::make_shared<Link>(options_, addresses_[0], routing_);
}

std::vector<std::shared_ptr<const Link>> Replicas::Probes() {
  std::vector<std::shared_ptr<const Link>> probes;
  if (routing_ == Routing::kOneServer) {
    Tour tour;
    probes.push_back(Next(&tour));
    return probes;
  }
  for (const std::string& address : addresses_) {
    probes.push_back(std::make_shared<Link>(options_, address, Routing::kOneServer));
  }
  return probes;
}

void Replicas::Drop(const std::shared_ptr<const Link>& failed) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find(links_.begin(), links_.end(), failed);
  if (found == links_.end()) return;
  if (routing_ == Routing::kOneServer) {
    *found = nullptr;
    return;
  }
  // At least one server behind the address is reachable.
  if (failed->channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY) return;
  // Connects immediately, so that the state is known before a call's turn reaches it.
  *found = std::make_shared<Link>(options_, failed->address, routing_);
  if ((*found)->status.ok()) (*found)->channel->GetState(/*try_to_connect=*/true);
}

int Replicas::Rank(size_t index) {
  // An unused link ranks as high as a working one, so that it gets tried in its turn.
  if (addresses_.size() == 1 || links_[index] == nullptr || !links_[index]->status.ok()) return 0;
  switch (links_[index]->channel->GetState(/*try_to_connect=*/false)) {
    case GRPC_CHANNEL_IDLE:
    case GRPC_CHANNEL_READY:
      return 0;
    case GRPC_CHANNEL_CONNECTING:
      return 1;
    case GRPC_CHANNEL_TRANSIENT_FAILURE:
    case GRPC_CHANNEL_SHUTDOWN:
      break;
  }
  return 2;
}

const std::shared_ptr<const Link>& Replicas::LinkTo(size_t index) {
  std::shared_ptr<const Link>& link = links_[index];
  if (link == nullptr || !link->status.ok()) {
    link = std::make_shared<Link>(options_, addresses_[index], routing_);
  }
  return link;
}

}  // namespace spillway::internal
