#include "rewrite_core/strategy/budget/room_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rewrite_core/strategy/budget/budget_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;

constexpr int64_t kKib = 1024;

struct RoomWindowTest : ::testing::Test {
  StepResult::Piece Of(const std::string& name, int64_t address_kib) const {
    return {address_kib * kKib, 256 * kKib, {step.graph[name], 0}};
  }
  static StepResult::Piece Free(int64_t address_kib, int64_t kib) {
    return {address_kib * kKib, kib * kKib, {kNoNode, 0}};
  }
  GapId GapOf(const std::string& name) const {
    return step.planner.GapOver({step.graph[name], 0}, step.SlotOf("d"));
  }
  RoomWindow Find(const std::vector<StepResult::Piece>& pieces, int64_t kib,
                  const std::vector<Eviction>& evictions = {}) const {
    return FindRoomWindow(pieces, kib * kKib, step.SlotOf("d"), evictions, step.planner);
  }

  const TestGpuStep step{std::string(testing::kTwoGaps)};
};

TEST_F(RoomWindowTest, TheGapsAreThoseOfTheGraph) {
  EXPECT_GE(GapOf("a"), 0);
  EXPECT_GE(GapOf("b"), 0);
  EXPECT_NE(GapOf("a"), GapOf("b"));
  EXPECT_EQ(GapOf("c"), kNoGap);
}

TEST_F(RoomWindowTest, WhatIsFreeBesideABufferCounts) {
  // Two copies, of a and b, or one of b with the free memory behind it.
  const RoomWindow window = Find({Of("a", 0), Of("b", 256), Free(512, 64)}, 300);
  EXPECT_THAT(window.added, ElementsAre(GapOf("b")));
  EXPECT_THAT(window.early, IsEmpty());
}

TEST_F(RoomWindowTest, ItIsInOnePiece) {
  // A resident buffer lies between a and the free memory.
  const RoomWindow window =
      Find({Of("a", 0), Free(320, 64), Of("c", 384), Of("b", 640), Free(896, 64)}, 300);
  EXPECT_THAT(window.added, ElementsAre(GapOf("b")));
  EXPECT_TRUE(Find({Of("a", 0), Free(320, 64)}, 300).empty());
}

TEST_F(RoomWindowTest, SeveralBuffersMakeRoomTogether) {
  EXPECT_THAT(Find({Of("c", 0), Of("b", 256), Of("a", 512)}, 400).added,
              ElementsAre(GapOf("b"), GapOf("a")));
}

TEST_F(RoomWindowTest, WhatIsUsedThenStays) {
  EXPECT_TRUE(Find({Of("c", 0), Of("d", 256), Of("x", 512)}, 200).empty());
}

TEST_F(RoomWindowTest, WhatIsBackTooEarlyComesBackLater) {
  const Eviction early{GapOf("a"), step.SlotOf("c"), 1};
  const RoomWindow window = Find({Of("a", 0), Of("b", 256)}, 256, {early});
  EXPECT_THAT(window.early, ElementsAre(GapOf("a"))) << "cheaper than b: its copies are paid";
  EXPECT_THAT(window.added, IsEmpty());
  // A buffer that returns behind d cannot be the one that lies there.
  const Eviction late{GapOf("a"), step.SlotOf("e"), 1};
  EXPECT_THAT(Find({Of("a", 0), Of("b", 256)}, 256, {late}).added, ElementsAre(GapOf("b")));
}

// It is being copied from one place, and is back in another.
TEST_F(RoomWindowTest, ABufferWithTwoPiecesLeavesOnce) {
  EXPECT_THAT(Find({Of("a", 0), Of("a", 256)}, 400).added, ElementsAre(GapOf("a")));
}

TEST_F(RoomWindowTest, NothingIsAskedFor) { EXPECT_TRUE(Find({Of("a", 0)}, 0).empty()); }

}  // namespace
}  // namespace spillway::core
