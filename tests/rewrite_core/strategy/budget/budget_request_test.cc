#include "rewrite_core/strategy/budget/budget_request.h"

#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;

struct BudgetRequestTest : ::testing::Test, testing::TestRequest {
  BudgetRequestTest()
      : TestRequest("x = Placeholder() {dtype=float32, shape=(256,256)}\n",
                    "budget {} step { hardware { gpu_memory_bytes: 1000000 "
                    "allocator_reserve: 0.25 } }") {}
};

// Twenty, no two alike, with a half to nine tenths of the reserve: ten other orders of the file,
// five of them with other places of variables, and ten of the rest.
TEST_F(BudgetRequestTest, Variations) {
  std::set<uint32_t> placements, files;
  std::set<int64_t> sizes;
  std::set<int32_t> copies;
  std::set<int64_t> late;
  std::set<int32_t> spreads;
  for (const VariedStep& varied : request.VariedSteps(750'000)) {
    sizes.insert(varied.bytes);
    if (varied.variation.file_seed > 0) {
      StepVariation only = varied.variation;
      if (only.initializer_seed > 0) placements.insert(only.initializer_seed);
      only.file_seed = only.initializer_seed = 0;
      EXPECT_TRUE(only.is_none());
      EXPECT_TRUE(files.insert(varied.variation.file_seed).second);
      continue;
    }
    placements.insert(varied.variation.initializer_seed);
    copies.insert(varied.variation.copy_percent);
    late.insert(varied.variation.late_ns);
    spreads.insert(varied.variation.spread_percent);
  }
  EXPECT_EQ(files.size(), 10u);
  EXPECT_EQ(placements.size(), 15u);
  EXPECT_EQ(placements.count(0), 0u) << "0 is no initializer";
  EXPECT_EQ(sizes, (std::set<int64_t>{875'000, 900'000, 925'000, 950'000, 975'000}));
  EXPECT_EQ(*copies.begin(), 33);
  EXPECT_EQ(*copies.rbegin(), 300);
  EXPECT_EQ(spreads, (std::set<int32_t>{200, 400}));
  EXPECT_EQ(late, (std::set<int64_t>{0, 1'000'000, 5'000'000}));
}

TEST_F(BudgetRequestTest, CountsWhatDoesNotFit) {
  simulator.answer = [this](const SwapPlan&, const StepTerms& terms) {
    return terms.budget_bytes % 2 == 0 ? testing::RunsOutAt(graph["x"]) : testing::Fits(1);
  };
  // The count, and the sizes in the order in which they are tried next.
  const auto count = [this](std::vector<int64_t> sizes, int most) {
    std::vector<VariedStep> varied;
    for (int64_t bytes : sizes) varied.push_back({StepVariation(), bytes});
    simulator.calls.clear();
    sizes = {testing::ValueOrDie(request.CountUnfit({}, GpuIndex(0), most, &varied), "count")};
    for (const VariedStep& next : varied) sizes.push_back(next.bytes);
    return sizes;
  };
  EXPECT_THAT(count({1, 2, 3, 4, 5}, 5), ElementsAre(2, 4, 1, 2, 3, 5));
  EXPECT_EQ(simulator.calls.size(), 5u);
  EXPECT_THAT(count({1, 2, 3, 4, 5}, 1), ElementsAre(1, 2, 1, 3, 4, 5));
  EXPECT_EQ(simulator.calls.size(), 2u);
  EXPECT_THAT(count({1, 3, 5}, 5), ElementsAre(0, 1, 3, 5));
}

}  // namespace
}  // namespace spillway::core
