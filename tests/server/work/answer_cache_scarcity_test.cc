// The cache of answers where memory runs out in the middle of it. A program of its own, since it
// has an operator new that fails on demand, and an operator delete after which no memory looks
// alive.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "server/work/answer_cache.h"

namespace {

// The allocation that fails counts down to 0; below: none does.
int allocations_left = -1;

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) std::memset(memory, 0xdd, malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace spillway::server {
namespace {

TEST(AnswerCacheScarcityTest, AnAllocationThatFailsLeavesNothingThatDangles) {
  constexpr int64_t kBudget = 1 << 20;
  const std::string plan_key(32, 'p');  // Longer than a string holds in itself.
  bool failed = true;
  for (int n = 0; failed; ++n) {
    ASSERT_LT(n, 100);
    Admission admission(kBudget, kBudget);
    AnswerCache cache(kBudget, admission);
    auto answer = std::make_shared<RewriteAnswer>();
    answer->graph.assign(1000, 'a');
    answer->plan = std::make_shared<core::PlannedStep>();
    allocations_left = n;
    try {
      cache.Keep("graph", "options", plan_key, answer);
      failed = false;
    } catch (const std::bad_alloc&) {
    }
    allocations_left = -1;
    const auto found = cache.Find("graph", "options");
    const auto plan = cache.FindPlan(plan_key);
    if (failed) {
      EXPECT_TRUE(found == nullptr || found == answer) << n;
      EXPECT_TRUE(plan == nullptr || plan == answer->plan) << n;
    } else {
      EXPECT_EQ(found, answer);
      EXPECT_EQ(plan, answer->plan);
    }
    cache.Keep("other", "", "", std::make_shared<RewriteAnswer>());
    EXPECT_NE(cache.Find("other", ""), nullptr) << n;
    cache.GiveUp(kBudget);
    EXPECT_EQ(cache.bytes(), 0) << n;
    EXPECT_EQ(admission.memory_bytes(), 0) << n;
  }
}

}  // namespace
}  // namespace spillway::server
