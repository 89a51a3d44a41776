#include "server/work/flights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/work/rewrite_answer.h"

namespace spillway::server {
namespace {

using Role = Flights::Role;

class FlightsTest : public ::testing::Test {
 protected:
  Role Join(uint64_t member, const std::string& graph = "graph", const std::string& options = "o") {
    // The flight reads them until it has landed.
    const std::string& kept_graph = kept_.emplace_back(graph);
    const std::string& kept_options = kept_.emplace_back(options);
    return flights_.Join(
        member, kept_graph, kept_options,
        graph.size() <= Flights::kMaxGraphBytes ? Flights::Sharing::kShared
                                                : Flights::Sharing::kAlone,
        gone_[member],
        [this, member](const auto&, absl::string_view) { landed_.push_back(member); },
        &abandoned_[member]);
  }
  void Land(uint64_t member) {
    for (const Flights::Landed& landed : flights_.Land(member)) landed(nullptr, "");
  }

  std::list<std::string> kept_;
  Flights flights_;
  std::map<uint64_t, std::atomic<bool>> gone_;
  std::map<uint64_t, std::atomic<bool>*> abandoned_;
  std::vector<uint64_t> landed_;
};

TEST_F(FlightsTest, WhoAsksTheSameMeanwhileWaits) {
  EXPECT_EQ(Join(1), Role::kLeads);
  EXPECT_EQ(Join(2), Role::kWaits);
  EXPECT_EQ(Join(3), Role::kWaits);
  Land(1);
  EXPECT_EQ(landed_, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(Join(4), Role::kLeads) << "it has landed";
  Land(4);
}

TEST_F(FlightsTest, EveryByteCounts) {
  EXPECT_EQ(Join(1), Role::kLeads);
  EXPECT_EQ(Join(2, "grapg"), Role::kLeads);
  EXPECT_EQ(Join(3, "graph", "p"), Role::kLeads);
  EXPECT_EQ(Join(4, "grapho", ""), Role::kLeads);
  Land(2);
  EXPECT_TRUE(landed_.empty());
}

TEST_F(FlightsTest, LargeGraphsAreNotCompared) {
  const std::string large(Flights::kMaxGraphBytes + 1, 'g');
  EXPECT_EQ(Join(1, large), Role::kLeads);
  EXPECT_EQ(Join(2, large), Role::kLeads);
  EXPECT_FALSE(flights_.Leave(1));
  EXPECT_TRUE(*abandoned_[1]);
}

TEST_F(FlightsTest, ItEndsWhenTheLastHasGone) {
  ASSERT_EQ(Join(1), Role::kLeads);
  ASSERT_EQ(Join(2), Role::kWaits);
  ASSERT_EQ(Join(3), Role::kWaits);
  EXPECT_TRUE(flights_.Leave(2));
  EXPECT_FALSE(flights_.Leave(2)) << "only once";
  EXPECT_FALSE(flights_.Leave(1)) << "a leader works on";
  EXPECT_FALSE(*abandoned_[1]);
  EXPECT_TRUE(flights_.Leave(3));
  EXPECT_TRUE(*abandoned_[1]);
  EXPECT_EQ(Join(4), Role::kLeads) << "nobody joins what was given up";
  EXPECT_FALSE(*abandoned_[4]);
  Land(1);
  EXPECT_EQ(Join(5), Role::kWaits) << "the other one flies on";
  Land(4);
  EXPECT_EQ(landed_, (std::vector<uint64_t>{5}));
  EXPECT_FALSE(flights_.Leave(4));
}

TEST_F(FlightsTest, WhoHasGoneDoesNotJoin) {
  gone_[1] = true;
  EXPECT_EQ(Join(1), Role::kGone);
  EXPECT_EQ(Join(2), Role::kLeads);
  gone_[3] = true;
  EXPECT_EQ(Join(3), Role::kGone);
  Land(2);
  EXPECT_TRUE(landed_.empty());
}

// Each member either is called or is reported as not called: never both, never neither.
TEST_F(FlightsTest, ManyThreads) {
  constexpr int kThreads = 8, kRounds = 500;
  std::atomic<uint64_t> next{1};
  std::atomic<int> landed{0}, waited{0}, left{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const uint64_t member = next++;
        const std::atomic<bool> here{false};
        std::atomic<bool>* abandoned = nullptr;
        const std::string options(1, static_cast<char>('a' + round % 3));
        const Role role = flights_.Join(
            member, "graph", options, Flights::Sharing::kShared, here,
            [&landed](const auto&, absl::string_view) { ++landed; }, &abandoned);
        if (role == Role::kLeads) {
          std::this_thread::yield();
          for (const Flights::Landed& call : flights_.Land(member)) call(nullptr, "");
        } else {
          ++waited;
          if (t % 2 == 0) left += flights_.Leave(member);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(landed + left, waited);
}

}  // namespace
}  // namespace spillway::server
