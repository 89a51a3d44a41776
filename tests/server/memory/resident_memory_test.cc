#include "server/memory/resident_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "rewrite_core/base/error.h"
#include "server/memory/admission.h"

namespace spillway::server {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kAtFirst = 20 * kMib;

// A process that can release `kept`.
class ResidentMemoryTest : public ::testing::Test {
 protected:
  ResidentMemory::Process Process() {
    return {[this] { return resident_; },
            [this] {
              ++trims_;
              resident_ -= kept_;
              kept_ = 0;
            }};
  }
  // Like a request that has ended.
  void Keep(int64_t bytes) {
    resident_ += bytes;
    kept_ += bytes;
  }

  int64_t resident_ = kAtFirst;
  int64_t kept_ = 0;
  int trims_ = 0;
  std::atomic<int64_t> charged_{0};
  ResidentMemory memory_{charged_};
};

TEST_F(ResidentMemoryTest, NothingIsLookedAtUntilWatch) {
  memory_.Look();
  memory_.LookAtRest();
  memory_.LookAfter(1000 * kMib);
  EXPECT_EQ(trims_, 0);
  EXPECT_EQ(memory_.counted_bytes(), 0);
}

TEST_F(ResidentMemoryTest, WhatIsKeptGoesBackWhenItIsMuch) {
  memory_.Watch(Process());
  Keep(ResidentMemory::kMostKept);
  memory_.Look();
  EXPECT_EQ(trims_, 0);
  Keep(1);
  memory_.Look();
  EXPECT_EQ(trims_, 1);
  EXPECT_EQ(resident_, kAtFirst);
}

// Small requests one after the other: as many bytes are kept between two trims as they may.
TEST_F(ResidentMemoryTest, ManySmallRequestsTrimSeldom) {
  memory_.Watch(Process());
  for (int i = 0; i < 10'000; ++i) {
    Keep(kMib / 10);
    memory_.Look();
  }
  EXPECT_LE(trims_, 1000 * kMib / ResidentMemory::kMostKept);
  EXPECT_GE(trims_, 1);
}

// Live blocks between the free ones: each request would try in vain.
TEST_F(ResidentMemoryTest, WhatCannotGoBackIsNotTriedAgainUntilThereIsMore) {
  memory_.Watch(Process());
  resident_ += 2 * ResidentMemory::kMostKept;
  for (int i = 0; i < 100; ++i) memory_.Look();
  EXPECT_EQ(trims_, 1);
  resident_ -= 2 * ResidentMemory::kMostKept;
  memory_.Look();
  Keep(ResidentMemory::kMostKept + 1);
  memory_.Look();
  EXPECT_EQ(trims_, 2) << "the least since then counts";
}

TEST_F(ResidentMemoryTest, WhatIsChargedIsNotKept) {
  memory_.Watch(Process());
  charged_ = resident_ = 1000 * kMib;
  resident_ += kAtFirst;
  memory_.Look();
  memory_.LookAtRest();
  EXPECT_EQ(trims_, 0);
  charged_ = 0;  // Freed, but still resident.
  kept_ = 1000 * kMib;
  memory_.Look();
  EXPECT_EQ(trims_, 1);
}

// A request that ends during a trim, in an arena that was done.
TEST_F(ResidentMemoryTest, WhatIsFreedMeanwhileGoesBackToo) {
  ResidentMemory::Process process = Process();
  process.trim = [this, trim = process.trim] {
    trim();
    if (trims_ > 1) return;
    Keep(ResidentMemory::kMostKept / 2);
    std::thread([this] { memory_.Look(); }).join();
  };
  memory_.Watch(process);
  Keep(ResidentMemory::kMostKept + 1);
  memory_.Look();
  EXPECT_EQ(trims_, 2);
  EXPECT_EQ(resident_, kAtFirst);
}

TEST_F(ResidentMemoryTest, AtRestLessIsKept) {
  memory_.Watch(Process());
  Keep(ResidentMemory::kMostKeptAtRest);
  memory_.LookAtRest();
  EXPECT_EQ(trims_, 0);
  Keep(1);
  memory_.LookAtRest();
  EXPECT_EQ(trims_, 1);
}

TEST_F(ResidentMemoryTest, AWorkingRequestLooksOnceInAWhile) {
  memory_.Watch(Process());
  Keep(ResidentMemory::kMostKept + 1);
  for (int i = 0; i < 15; ++i) memory_.LookAfter(kMib);
  EXPECT_EQ(trims_, 0);
  memory_.LookAfter(kMib);
  EXPECT_EQ(trims_, 1);
}

// The budget is for resident memory, not only for charged memory.
TEST_F(ResidentMemoryTest, WhatStaysCountsAgainstTheBudget) {
  Admission admission(400 * kMib, 400 * kMib);
  admission.resident().Watch(Process());
  resident_ += ResidentMemory::kUncounted + 100 * kMib;  // It cannot go back.
  EXPECT_EQ(admission.resident().counted_bytes(), 0) << "not looked at yet";
  const auto full = admission.Reserve(300 * kMib + 1);
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::GetErrorReason(full.status()), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(admission.resident().counted_bytes(), 100 * kMib);
  auto ticket = admission.Reserve(300 * kMib);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(core::GetErrorReason(admission.OutOfBudget(*ticket, kMib)), v1::ERROR_REASON_OVERLOADED)
      << "it would fit if less were resident";
  EXPECT_EQ(core::GetErrorReason(admission.OutOfBudget(*ticket, 101 * kMib)),
            v1::ERROR_REASON_LIMIT_EXCEEDED);
}

TEST_F(ResidentMemoryTest, MemoryIsHandedBackBeforeARequestIsRefused) {
  Admission admission(400 * kMib, 400 * kMib);
  admission.resident().Watch(Process());
  resident_ += ResidentMemory::kUncounted + 100 * kMib;
  EXPECT_FALSE(admission.Reserve(400 * kMib).ok());
  const int tried = trims_;
  EXPECT_FALSE(admission.Reserve(400 * kMib).ok());
  EXPECT_EQ(trims_, tried) << "not by each that is refused";
  kept_ = 50 * kMib;  // The live memory is free now...
  resident_ += 10 * kMib;
  EXPECT_TRUE(admission.Reserve(340 * kMib).ok());
  EXPECT_GT(trims_, tried);
}

TEST(ThisProcessTest, SeesWhatIsTouched) {
  const ResidentMemory::Process process = ThisProcess();
  const int64_t before = process.resident_bytes();
  EXPECT_GT(before, kMib);
  std::vector<char> block(64 * kMib);
  std::memset(block.data(), 1, block.size());
  EXPECT_GT(process.resident_bytes(), before + 48 * kMib);
}

}  // namespace
}  // namespace spillway::server
