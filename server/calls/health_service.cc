#include "server/calls/health_service.h"

#include <memory>
#include <utility>

#include "server/base/caller.h"
#include "server/base/wire.h"
#include "server/calls/one_message_call.h"

namespace spillway::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The methods' places in the generated class.
constexpr int kCheck = 0;
constexpr int kWatch = 1;

bool Parse(const grpc::ByteBuffer& bytes, HealthCheckRequest* request) {
  const grpc::Slice whole = OnePiece(bytes);
  return request->ParseFromArray(whole.begin(), static_cast<int>(whole.size()));
}

grpc::ByteBuffer StatusMessage(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return ToBuffer(response);
}

grpc::Status NoRequest() {
  return {grpc::StatusCode::INVALID_ARGUMENT,
          "these bytes are not a serialized grpc.health.v1.HealthCheckRequest; send one"};
}

}  // namespace

// Sends the status when it changes, one message at a time.
class HealthService::Watcher final : public OneMessageCall {
 public:
  Watcher(grpc::CallbackServerContext& context, HealthService& service)
      : OneMessageCall(context, service.half_open_),
        service_(service),
        caller_(CallerOf(context).peer),
        ended_(is_refused()) {}

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
    if (is_added_) service_.Remove(this);
    delete this;
  }

 private:
  void OnMessage(const grpc::ByteBuffer* message) override {
    HealthCheckRequest request;
    if (message == nullptr) return End(NoMessage());
    if (!Parse(*message, &request)) return End(NoRequest());
    name_ = request.service();
    is_added_ = service_.Add(this);
    if (!is_added_) {
      End({grpc::StatusCode::RESOURCE_EXHAUSTED,
           "this caller watches the server already, and there are too many further watches; use "
           "one watch for each connection"});
    }
  }

  void End(const grpc::Status& status) {
    Act([&] {
      ending_ = true;
      end_ = status;
    });
  }

  // Makes a change, then writes or finishes outside the lock: after Finish this may be destroyed.
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
      } else if (wanted_ != sent_) {
        writing_ = write = true;
        sent_ = wanted_;
        response_ = StatusMessage(sent_);
      }
    }
    if (write) StartWrite(&response_);
    if (finish) Finish(end);
  }

  HealthService& service_;
  const std::string caller_;
  std::string name_;
  bool is_added_ = false;
  std::mutex mu_;              // Guards the rest except timer_.
  grpc::ByteBuffer response_;  // The message with `sent_`, during and after its write.
  Status sent_ = HealthCheckResponse::UNKNOWN;
  Status wanted_ = HealthCheckResponse::UNKNOWN;
  bool writing_ = false, ending_ = false, ended_;
  grpc::Status end_;
  std::unique_ptr<Clock::Timer> timer_;  // Last, so that it stops before the rest is destroyed.
};

HealthService::HealthService(std::string service, Clock& clock, HalfOpenCalls& half_open)
    : service_(std::move(service)), clock_(clock), half_open_(half_open) {
  Serve(kCheck, [this](grpc::CallbackServerContext* context) {
    return new QuestionCall(*context, half_open_,
                            [this](const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
                              return Check(request, response);
                            });
  });
  Serve(kWatch,
        [this](grpc::CallbackServerContext* context) { return new Watcher(*context, *this); });
}

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

grpc::Status HealthService::Check(const grpc::ByteBuffer& bytes, grpc::ByteBuffer* response) {
  HealthCheckRequest request;
  if (!Parse(bytes, &request)) return NoRequest();
  if (!Knows(request.service())) return {grpc::StatusCode::NOT_FOUND, "service name unknown"};
  const std::lock_guard lock(mu_);
  *response = StatusMessage(StatusOf(request.service()));
  return grpc::Status::OK;
}

bool HealthService::Add(Watcher* watcher) {
  const std::lock_guard lock(mu_);
  const auto [watches, is_first] = watches_of_.try_emplace(watcher->caller(), 0);
  const size_t more = watchers_.size() + (is_first ? 1 : 0) - watches_of_.size();
  if (!is_first && more >= kMaxMoreWatches) return false;
  ++watches->second;
  watchers_.insert(watcher);
  watcher->Start(StatusOf(watcher->name()));
  return true;
}

}  // namespace spillway::server
