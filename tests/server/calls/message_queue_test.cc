#include "server/calls/message_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "rewrite_core/base/steady_time.h"
#include "server/base/wire.h"
#include "tests/server/manual_clock.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

using Message = grpc::ByteBuffer;
using Queue = MessageQueue;

const auto kAlone = [] { return false; };
using Next = Queue::Next;

// A message of `bytes`, identified by its first one.
Message Make(char first, size_t bytes = 10) {
  const grpc::Slice slice(std::string(bytes, first));
  return Message(&slice, 1);
}

// The first byte of the next message; '-': nothing yet, '.': the end.
char TakeFrom(Queue& queue) {
  Message message;
  switch (queue.Take(&message)) {
    case Next::kMessage:
      return View(OnePiece(message))[0];
    case Next::kNothingYet:
      return '-';
    case Next::kEnd:
      break;
  }
  return '.';
}

// True once a push that finds no room has polled `stop` that often: it does so before it waits, and
// regularly while it waits.
bool HasAsked(const core::StopToken& stop, int64_t times) {
  return Eventually([&] { return stop.steps() >= times; });
}

// Expects that a push failed because it, or earlier ones, had to wait for too long.
void ExpectTooSlow(const absl::StatusOr<bool>& pushed) {
  EXPECT_EQ(pushed.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(pushed.status().message()),
              testing::HasSubstr("does not read the answer"));
}

// Seconds of waiting, so that a test whose push is not refused fails instead of hanging.
constexpr int64_t kManySteps = 500;

class MessageQueueTest : public testing::Test {
 protected:
  ManualClock clock_;
};

TEST_F(MessageQueueTest, InOrderAndTheSenderIsWokenOnlyWhenItSleeps) {
  Queue queue(1000, absl::InfiniteDuration(), kAlone, clock_);
  const core::StopToken stop;
  EXPECT_TRUE(*queue.Push(Make('a'), stop)) << "asleep at first";
  EXPECT_FALSE(*queue.Push(Make('b'), stop)) << "who pushed a is to take it";
  EXPECT_EQ(TakeFrom(queue), 'a');
  EXPECT_EQ(TakeFrom(queue), 'b');
  EXPECT_EQ(TakeFrom(queue), '-');
  EXPECT_TRUE(*queue.Push(Make('c'), stop));
  EXPECT_EQ(TakeFrom(queue), 'c');
  EXPECT_FALSE(queue.Close()) << "c is being sent: its sender will find the end";
  EXPECT_EQ(TakeFrom(queue), '.');
}

TEST_F(MessageQueueTest, WhoClosesEndsTheCallWhereTheSenderSleeps) {
  Queue empty(1000, absl::InfiniteDuration(), kAlone, clock_);
  EXPECT_TRUE(empty.Close());
  EXPECT_EQ(TakeFrom(empty), '.');
  Queue queue(1000, absl::InfiniteDuration(), kAlone, clock_);
  EXPECT_TRUE(*queue.Push(Make('a'), core::StopToken()));
  EXPECT_EQ(TakeFrom(queue), 'a');
  EXPECT_EQ(TakeFrom(queue), '-');
  EXPECT_TRUE(queue.Close());
  EXPECT_EQ(TakeFrom(queue), '.');
}

TEST_F(MessageQueueTest, AbandonedItTakesNothingAndOneOfTheTwoEndsTheCall) {
  Queue queue(1000, absl::InfiniteDuration(), kAlone, clock_);
  EXPECT_TRUE(*queue.Push(Make('a'), core::StopToken()));
  EXPECT_FALSE(*queue.Push(Make('b'), core::StopToken()));
  EXPECT_EQ(TakeFrom(queue), 'a');
  EXPECT_FALSE(queue.Abandon()) << "the pusher still works";
  EXPECT_EQ(queue.Push(Make('c'), core::StopToken()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(queue.Close());
  EXPECT_EQ(TakeFrom(queue), '.') << "b is dropped";

  Queue closed(1000, absl::InfiniteDuration(), kAlone, clock_);
  EXPECT_TRUE(*closed.Push(Make('a'), core::StopToken()));
  EXPECT_EQ(TakeFrom(closed), 'a');
  EXPECT_FALSE(closed.Close());
  EXPECT_TRUE(closed.Abandon());
  EXPECT_EQ(TakeFrom(closed), '.');
}

TEST_F(MessageQueueTest, APushThatFindsNoRoomWaitsForOne) {
  const int64_t bytes = static_cast<int64_t>(Make('a').Length());
  Queue queue(2 * bytes, absl::InfiniteDuration(), kAlone, clock_);
  const core::StopToken stop;
  for (char name : {'a', 'b'}) EXPECT_TRUE(queue.Push(Make(name), stop).ok());
  std::atomic<bool> pushed{false};
  std::thread worker([&] {
    EXPECT_TRUE(queue.Push(Make('c'), stop).ok());
    pushed = true;
  });
  EXPECT_TRUE(HasAsked(stop, 3));
  EXPECT_FALSE(pushed);
  EXPECT_EQ(TakeFrom(queue), 'a');
  worker.join();
  EXPECT_EQ(TakeFrom(queue), 'b');
  EXPECT_EQ(TakeFrom(queue), 'c');
}

TEST_F(MessageQueueTest, OneMessageAlwaysFits) {
  Queue queue(1, absl::ZeroDuration(), kAlone, clock_);
  EXPECT_TRUE(queue.Push(Make('a', 1000), core::StopToken()).ok());
  const absl::Status status = queue.Push(Make('b', 1), core::StopToken()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(core::GetErrorReason(status), v1::ERROR_REASON_STOPPED);
  EXPECT_EQ(TakeFrom(queue), 'a');
  EXPECT_TRUE(queue.Push(Make('b', 1000), core::StopToken()).ok());
}

TEST_F(MessageQueueTest, WaitsAreCountedTogether) {
  Queue queue(1, absl::Milliseconds(100), kAlone, clock_);
  EXPECT_TRUE(queue.Push(Make('a'), core::StopToken()).ok());
  // A reader takes one every 30 ms: no single wait is too long.
  for (int i = 0; i < 4; ++i) {
    const core::StopToken stop;
    std::thread worker([&] { EXPECT_TRUE(queue.Push(Make('b'), stop).ok()) << i; });
    EXPECT_TRUE(HasAsked(stop, 1));
    clock_.Advance(absl::Milliseconds(30));
    EXPECT_EQ(TakeFrom(queue), i == 0 ? 'a' : 'b');
    worker.join();
  }
  ExpectTooSlow(queue.Push(Make('b'), core::StopToken::AfterStepsForTest(kManySteps)));
  EXPECT_EQ(TakeFrom(queue), 'b');
  EXPECT_TRUE(queue.Push(Make('c'), core::StopToken()).ok()) << "it does not have to wait";
}

TEST_F(MessageQueueTest, AWaitThatIsTooLongEnds) {
  Queue queue(1, absl::Milliseconds(100), kAlone, clock_);
  EXPECT_TRUE(queue.Push(Make('a'), core::StopToken()).ok());
  const core::StopToken stop = core::StopToken::AfterStepsForTest(kManySteps);
  std::thread worker([&] { ExpectTooSlow(queue.Push(Make('b'), stop)); });
  EXPECT_TRUE(HasAsked(stop, 1));
  clock_.Advance(absl::Milliseconds(99));
  EXPECT_TRUE(HasAsked(stop, stop.steps() + 3)) << "it goes on";
  clock_.Advance(absl::Milliseconds(1));
  worker.join();
}

TEST_F(MessageQueueTest, AWaitIsShortWhileOthersWait) {
  std::atomic<bool> others{false};
  Queue queue(
      1, absl::InfiniteDuration(), [&] { return others.load(); }, clock_);
  EXPECT_TRUE(queue.Push(Make('a'), core::StopToken()).ok());
  const core::StopToken stop = core::StopToken::AfterStepsForTest(kManySteps);
  std::thread worker([&] { ExpectTooSlow(queue.Push(Make('b'), stop)); });
  EXPECT_TRUE(HasAsked(stop, 1));
  clock_.Advance(10 * Queue::kWaitWhileOthersDo);
  EXPECT_TRUE(HasAsked(stop, stop.steps() + 3)) << "it goes on";
  others = true;
  worker.join();
}

TEST_F(MessageQueueTest, AWaitEndsWithTheStopToken) {
  Queue queue(1, absl::InfiniteDuration(), kAlone, clock_);
  EXPECT_TRUE(queue.Push(Make('a'), core::StopToken()).ok());
  const core::StopToken late(core::SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(queue.Push(Make('b'), late).status().code(), absl::StatusCode::kDeadlineExceeded);
  std::atomic<bool> gone{false};
  const core::StopToken cancelled(absl::InfiniteFuture(), &gone);
  std::thread canceller([&] {
    EXPECT_TRUE(HasAsked(cancelled, 2));
    gone = true;
  });
  EXPECT_EQ(queue.Push(Make('b'), cancelled).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

// All messages arrive in order, and the call ends exactly once, whichever side is faster.
TEST_F(MessageQueueTest, TwoThreadsAgreeOnTheEnd) {
  constexpr int kRounds = 300;
  constexpr int kMessages = 20;
  for (int round = 0; round < kRounds; ++round) {
    Queue queue(50, absl::InfiniteDuration(), kAlone, clock_);
    std::atomic<int> ends{0}, next{0};
    std::atomic<bool> in_flight{false};
    const auto send = [&] {
      Message message;
      switch (queue.Take(&message)) {
        case Next::kMessage:
          EXPECT_EQ(message.Length(), static_cast<size_t>(++next));
          in_flight = true;
          return;
        case Next::kNothingYet:
          return;
        case Next::kEnd:
          ++ends;
      }
    };
    std::thread transport([&] {  // Reports that each message has been sent.
      while (ends == 0) {
        if (in_flight.exchange(false)) send();
      }
    });
    for (int i = 1; i <= kMessages; ++i) {
      const auto asleep = queue.Push(Make('m', i), core::StopToken());
      ASSERT_TRUE(asleep.ok());
      if (*asleep) send();
    }
    if (queue.Close()) send();
    transport.join();
    EXPECT_EQ(next, kMessages);
    EXPECT_EQ(ends, 1);
  }
}

}  // namespace
}  // namespace spillway::server
