#include "server/memory/memory_account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace spillway::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryAccountTest : public ::testing::Test {
 protected:
  Admission admission_{10 * kMiB, 10 * kMiB};
  Admission::Ticket ticket_ = admission_.Reserve(kMiB).value();
  MemoryAccount account_{ticket_};
};

TEST_F(MemoryAccountTest, HoldsWhatIsTakenAndLittleMore) {
  account_.Charge(5 * kMiB);
  EXPECT_EQ(admission_.memory_bytes(), 6 * kMiB);
  account_.Charge(1);
  EXPECT_EQ(admission_.memory_bytes(), 7 * kMiB) << "it grows by a MiB at least";
  account_.Discharge(4 * kMiB);
  EXPECT_EQ(admission_.memory_bytes(), 7 * kMiB);
  account_.Charge(5 * kMiB - 1);
  EXPECT_EQ(admission_.memory_bytes(), 7 * kMiB);
  account_.Discharge(3 * kMiB);
  account_.Settle();
  EXPECT_EQ(admission_.memory_bytes(), 4 * kMiB);
  EXPECT_EQ(account_.TakeRefused(), 0);
}

TEST_F(MemoryAccountTest, WhoTakesWhatIsNotThereIsTold) {
  std::atomic<bool> stopped{false};
  account_.StopWith(&stopped);
  account_.Charge(9 * kMiB);
  EXPECT_FALSE(stopped);
  account_.Charge(100);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(account_.TakeRefused(), 100);
  EXPECT_EQ(account_.TakeRefused(), 0);
  EXPECT_EQ(admission_.memory_bytes(), 10 * kMiB);
  account_.Discharge(9 * kMiB + 100);
  account_.Settle();
  EXPECT_EQ(admission_.memory_bytes(), kMiB);
}

TEST_F(MemoryAccountTest, WhatIsExpectedIsSetAside) {
  EXPECT_FALSE(account_.Expect(9 * kMiB + 1));
  EXPECT_TRUE(account_.Expect(8 * kMiB));
  EXPECT_EQ(admission_.memory_bytes(), 9 * kMiB);
  account_.Charge(8 * kMiB);
  EXPECT_EQ(admission_.memory_bytes(), 9 * kMiB) << "it is part of that";
}

TEST_F(MemoryAccountTest, WhatOthersFreeIsGivenBack) {
  account_.Charge(9 * kMiB);
  std::thread([this] { account_.GiveBack(3 * kMiB); }).join();
  account_.Charge(3 * kMiB);
  EXPECT_EQ(account_.TakeRefused(), 0);
}

// Uses the program's operator new (counted_new.cc).
TEST_F(MemoryAccountTest, NewAndDeleteTellTheAccountOfTheirThread) {
#ifndef SPILLWAY_COUNTED_NEW
  GTEST_SKIP() << "sanitizers have their own operator new";
#endif
  EXPECT_EQ(MemoryAccount::Current(), nullptr);
  {
    const MemoryAccount::Scope scope(&account_);
    const std::string five(5 * kMiB, 'x');
    EXPECT_GE(admission_.memory_bytes(), 6 * kMiB);
    std::thread([] { EXPECT_EQ(std::string(20 * kMiB, 'y').size(), 20 * kMiB); }).join();
    {
      const MemoryAccount::Scope nobody(nullptr);
      EXPECT_EQ(std::string(20 * kMiB, 'z').size(), 20 * kMiB);
    }
    EXPECT_EQ(account_.TakeRefused(), 0);
    EXPECT_EQ(std::string(5 * kMiB, 'w').size(), 5 * kMiB);
    EXPECT_GT(account_.TakeRefused(), 0);
  }
  EXPECT_EQ(MemoryAccount::Current(), nullptr);
  account_.Settle();
  EXPECT_LT(admission_.memory_bytes(), kMiB + 100'000);
}

}  // namespace
}  // namespace spillway::server
