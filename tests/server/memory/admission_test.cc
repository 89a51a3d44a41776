#include "server/memory/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

TEST(AdmissionTest, ReservesUpToTheBudgetAndNotBeyond) {
  Admission admission(100, 100);
  absl::StatusOr<Admission::Ticket> first = admission.Reserve(60);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(admission.inflight_bytes(), 60);
  absl::StatusOr<Admission::Ticket> rest = admission.Reserve(40);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(admission.inflight_bytes(), 100);

  const absl::Status refused = admission.Reserve(1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::GetErrorReason(refused), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(core::GetErrorInfo(refused).metadata().at("inflight"), "100");
  EXPECT_EQ(admission.inflight_bytes(), 100) << "a refusal holds nothing";

  rest->Release();
  EXPECT_TRUE(admission.Reserve(40).ok()) << "what is given back can be had again";
}

TEST(AdmissionTest, SaysWhatWillNeverFit) {
  Admission admission(100, 100);
  const absl::Status refused = admission.Reserve(101).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::GetErrorReason(refused), v1::ERROR_REASON_LIMIT_EXCEEDED);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("--max-inflight-bytes"));
  EXPECT_EQ(core::GetErrorReason(admission.Reserve(INT64_MAX).status()),
            v1::ERROR_REASON_LIMIT_EXCEEDED);
}

TEST(AdmissionTest, TicketGivesBackOnceHoweverItMoves) {
  Admission admission(100, 100);
  {
    Admission::Ticket a = admission.Reserve(30).value();
    Admission::Ticket b = std::move(a);
    EXPECT_EQ(a.bytes(), 0);
    EXPECT_EQ(b.bytes(), 30);
    Admission::Ticket c = admission.Reserve(20).value();
    EXPECT_EQ(admission.inflight_bytes(), 50);
    c = std::move(b);  // Releases its own 20.
    EXPECT_EQ(admission.inflight_bytes(), 30);
    c.Release();
    c.Release();
    EXPECT_EQ(admission.inflight_bytes(), 0);
  }
  EXPECT_EQ(admission.inflight_bytes(), 0);
}

TEST(AdmissionTest, NeverAboveBudgetFromManyThreads) {
  Admission admission(10, 10);
  std::atomic<int> granted{0};
  std::atomic<bool> above{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        absl::StatusOr<Admission::Ticket> ticket = admission.Reserve(3);
        if (admission.inflight_bytes() > 10) above = true;
        if (ticket.ok()) ++granted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(above);
  EXPECT_GT(granted, 0);
  EXPECT_EQ(admission.inflight_bytes(), 0);
}

TEST(AdmissionTest, WorkTakesWhatGraphsLeave) {
  Admission admission(/*graph_budget_bytes=*/40, /*memory_budget_bytes=*/100);
  Admission::Ticket first = admission.Reserve(30).value();
  EXPECT_TRUE(first.AddWork(60));
  EXPECT_FALSE(first.AddWork(11));
  EXPECT_EQ(first.work_bytes(), 60);
  EXPECT_EQ(admission.inflight_bytes(), 30);
  EXPECT_EQ(admission.memory_bytes(), 90);
  EXPECT_TRUE(admission.Reserve(10).ok());
  // There is room for its graph, not for its memory.
  ASSERT_TRUE(first.AddWork(10));
  const absl::Status refused = admission.Reserve(10).status();
  EXPECT_EQ(core::GetErrorReason(refused), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(admission.inflight_bytes(), 30);

  first.ShrinkWork(20);
  EXPECT_EQ(admission.memory_bytes(), 50);
  first.ShrinkWork(25);  // Does not grow.
  EXPECT_EQ(admission.memory_bytes(), 50);
  first.ShrinkWork(-1);
  EXPECT_EQ(admission.memory_bytes(), 30);
  first.Release();
  EXPECT_EQ(admission.memory_bytes(), 0);
}

TEST(AdmissionTest, WhoIsAloneIsToldThatItIsTooMuch) {
  Admission admission(40, 100);
  Admission::Ticket first = admission.Reserve(30).value();
  EXPECT_EQ(core::GetErrorReason(admission.OutOfBudget(first, 71)),
            v1::ERROR_REASON_LIMIT_EXCEEDED);
  const Admission::Ticket second = admission.Reserve(10).value();
  EXPECT_EQ(core::GetErrorReason(admission.OutOfBudget(first, 70)), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(core::GetErrorReason(admission.OutOfBudget(first, 71)), v1::ERROR_REASON_LIMIT_EXCEEDED)
      << "it would not fit without the others";
}

TEST(AdmissionTest, AnUploadHoldsWhatHasArrived) {
  Admission admission(100, 100);
  Admission::Ticket first = admission.Reserve(100, 10, Admission::Room::kShared).value();
  EXPECT_EQ(admission.inflight_bytes(), 10);
  EXPECT_TRUE(first.GrowTo(40).ok());
  EXPECT_TRUE(first.GrowTo(30).ok()) << "less is held already";
  EXPECT_EQ(first.bytes(), 40);
  EXPECT_EQ(admission.memory_bytes(), 40);
  EXPECT_FALSE(admission.Reserve(61, 1, Admission::Room::kShared).ok())
      << "what cannot be received is refused before it is sent";
  // Each lacks the other's bytes: the first to request more is refused, the other continues.
  Admission::Ticket second = admission.Reserve(60, 60, Admission::Room::kShared).value();
  const absl::Status refused = first.GrowTo(41);
  EXPECT_EQ(core::GetErrorReason(refused), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(first.bytes(), 40);
  first.Release();
  EXPECT_TRUE(second.GrowTo(100).ok());
  EXPECT_EQ(admission.memory_bytes(), 100);
}

TEST(AdmissionTest, SmallRequestsHaveAnEighthMore) {
  Admission admission(80, 100);
  const Admission::Ticket all = admission.Reserve(80).value();
  EXPECT_FALSE(admission.Reserve(1).ok());
  EXPECT_FALSE(admission.Reserve(11, 11, Admission::Room::kForSmall).ok());
  EXPECT_TRUE(admission.Reserve(10, 10, Admission::Room::kForSmall).ok());
  // But no more than exists.
  Admission full(80, 80);
  const Admission::Ticket whole = full.Reserve(80).value();
  EXPECT_FALSE(full.Reserve(1, 1, Admission::Room::kForSmall).ok());
}

}  // namespace
}  // namespace spillway::server
