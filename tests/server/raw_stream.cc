#include "tests/server/raw_stream.h"

#include <vector>

#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

RawStream::RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::optional<std::string>& request, bool half_closes)
    : stub_(channel) {
  const grpc::Slice slice(request.value_or(""));
  request_ = grpc::ByteBuffer(&slice, 1);
  stub_.PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(), this);
  if (request.has_value() && half_closes) {
    StartWriteLast(&request_, grpc::WriteOptions());
  } else if (request.has_value()) {
    StartWrite(&request_);
  }
  StartRead(&message_);
  StartCall();
}

RawStream::~RawStream() {
  context_.TryCancel();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&done_));
}

std::optional<std::string> RawStream::Next() {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return done_ || !messages_.empty(); };
  mu_.AwaitWithTimeout(absl::Condition(&ready), kPatience);
  if (messages_.empty()) return std::nullopt;
  std::string message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void RawStream::OnReadDone(bool ok) {
  if (!ok) return;
  {
    absl::MutexLock lock(&mu_);
    messages_.push_back(ToString(message_));
  }
  StartRead(&message_);
}

grpc::Status RawStream::End() {
  absl::MutexLock lock(&mu_);
  const bool done = mu_.AwaitWithTimeout(absl::Condition(&done_), kPatience);
  return done ? status_ : grpc::Status(grpc::StatusCode::UNKNOWN, "it goes on");
}

bool RawStream::ended() {
  absl::MutexLock lock(&mu_);
  return done_;
}

void RawStream::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mu_);
  status_ = status;
  done_ = true;
}

std::string HealthRequest(const std::string& service) {
  if (service.empty()) return "";
  return std::string({0x0a, static_cast<char>(service.size())}) + service;
}

}  // namespace spillway::server
