// A clock that stands still until a test lets time pass.
//
// In a test of a whole server, other threads request callbacks at any time. A test that needs time
// to pass advances the clock until the expected event has happened:
//
//   EXPECT_TRUE(Eventually([&] { clock.Advance(timeout); return ended(); }));
//
// Thread-safe.
#ifndef SPILLWAY_TESTS_SERVER_MANUAL_CLOCK_H_
#define SPILLWAY_TESTS_SERVER_MANUAL_CLOCK_H_

#include <map>
#include <memory>
#include <mutex>

#include "absl/time/time.h"
#include "server/base/clock.h"

namespace spillway::server {

class ManualClock final : public Clock {
 public:
  absl::Time Now() const override;

  // The callback runs in the Advance that reaches `when`, or in the next one if it has passed.
  std::unique_ptr<Timer> CallAt(absl::Time when, Callback callback) override;

  // Lets `duration` pass. Runs the callbacks that are due by then before it returns, in the order
  // of their times, each while the clock shows its time.
  void Advance(absl::Duration duration);

 private:
  struct Entry;
  class EntryTimer;

  mutable std::mutex mu_;  // Guards the rest.
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  std::multimap<absl::Time, std::shared_ptr<Entry>> due_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_MANUAL_CLOCK_H_
