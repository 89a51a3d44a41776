#include "server/calls/health_service.h"

#include <memory>
#include <utility>

#include "server/base/caller.h"

namespace spillway::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The call of one that is refused.
class Refused final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Refused() {
    Finish(
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         "this caller watches the server already, and there are too many further watches; use one "
         "watch for each connection"});
  }
  void OnDone() override { delete this; }
};

}  // namespace

// Sends the status when it changes, one message at a time.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService& service, std::string name, std::string caller)
      : service_(service), name_(std::move(name)), caller_(std::move(caller)) {}

  const std::string& name() const { return name_; }
  const std::string& caller() const { return caller_; }

  void Start(Status status) {
    timer_ = service_.clock_.CallAt(service_.clock_.Now() + kMaxWatchAge, [this] {
      End(grpc::Status::OK);
      return absl::InfiniteFuture();
    });
    Set(status);
  }
  void Set(Status status) {
    Act([&] { wanted_ = status; });
  }

  void OnWriteDone(bool ok) override {
    Act([&] {
      writing_ = false;
      if (!ok) ending_ = true;
    });
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    service_.Remove(this);
    delete this;
  }

 private:
  void End(const grpc::Status& status) {
    Act([&] {
      ending_ = true;
      end_ = status;
    });
  }

  // Makes a change, and what follows from it, outside the lock: after Finish this may be gone.
  template <typename Change>
  void Act(const Change& change) {
    bool write = false, finish = false;
    grpc::Status end;
    {
      const std::lock_guard lock(mu_);
      change();
      if (writing_ || ended_) return;
      if (ending_) {
        ended_ = finish = true;
        end = end_;
      } else if (wanted_ != response_.status()) {
        writing_ = write = true;
        response_.set_status(wanted_);
      }
    }
    if (write) StartWrite(&response_);
    if (finish) Finish(end);
  }

  HealthService& service_;
  const std::string name_, caller_;
  std::mutex mu_;                 // Guards the rest but timer_.
  HealthCheckResponse response_;  // What is, or was last, sent; UNKNOWN at first.
  Status wanted_ = HealthCheckResponse::UNKNOWN;
  bool writing_ = false, ending_ = false, ended_ = false;
  grpc::Status end_;
  std::unique_ptr<Clock::Timer> timer_;  // Last, so that it stops before the rest is destroyed.
};

HealthService::Status HealthService::StatusOf(const std::string& service) const {
  if (!Knows(service)) return HealthCheckResponse::SERVICE_UNKNOWN;
  return serving_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void HealthService::SetServing(bool serving) {
  const std::lock_guard lock(mu_);
  serving_ = serving;
  for (Watcher* watcher : watchers_) watcher->Set(StatusOf(watcher->name()));
}

void HealthService::Remove(Watcher* watcher) {
  const std::lock_guard lock(mu_);
  watchers_.erase(watcher);
  const auto watches = watches_of_.find(watcher->caller());
  if (--watches->second == 0) watches_of_.erase(watches);
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (!Knows(request->service())) {
    reactor->Finish({grpc::StatusCode::NOT_FOUND, "service name unknown"});
    return reactor;
  }
  {
    const std::lock_guard lock(mu_);
    response->set_status(StatusOf(request->service()));
  }
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  const std::string caller = CallerOf(*context).peer;
  const std::lock_guard lock(mu_);
  const auto [watches, is_first] = watches_of_.try_emplace(caller, 0);
  const size_t more = watchers_.size() + (is_first ? 1 : 0) - watches_of_.size();
  if (!is_first && more >= kMaxMoreWatches) return new Refused;
  ++watches->second;
  auto* const watcher = new Watcher(*this, request->service(), caller);
  watchers_.insert(watcher);
  watcher->Start(StatusOf(request->service()));
  return watcher;
}

}  // namespace spillway::server
