#include "spillway/cancellation.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace spillway {

struct CancellationToken::State {
  std::atomic<bool> cancelled{false};
  // Held while callbacks run, so that a CancellationCallback's destructor waits for them.
  std::mutex mutex;
  std::vector<const std::function<void()>*> callbacks;
};

CancellationToken::CancellationToken() : state_(std::make_shared<State>()) {}

void CancellationToken::Cancel() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cancelled.exchange(true)) return;
  for (const auto* callback : state_->callbacks) (*callback)();
}

bool CancellationToken::cancelled() const { return state_->cancelled.load(); }

const std::atomic<bool>* CancellationToken::flag() const { return &state_->cancelled; }

CancellationCallback::CancellationCallback(const CancellationToken& token,
                                           std::function<void()> callback)
    : state_(token.state_), callback_(std::move(callback)) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cancelled) {
    callback_();
  } else {
    state_->callbacks.push_back(&callback_);
  }
}

CancellationCallback::~CancellationCallback() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  auto& callbacks = state_->callbacks;
  callbacks.erase(std::remove(callbacks.begin(), callbacks.end(), &callback_), callbacks.end());
}

}  // namespace spillway
