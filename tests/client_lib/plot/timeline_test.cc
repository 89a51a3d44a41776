#include "client_lib/plot/timeline.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/random.h"

namespace spillway::plot {
namespace {

using ::spillway::testing::Random;

v1::DeviceMemory Timeline(const std::vector<std::pair<int64_t, int64_t>>& samples) {
  v1::DeviceMemory memory;
  for (const auto& [ns, bytes] : samples) {
    v1::MemorySample* sample = memory.add_timeline();
    sample->set_time_ns(ns);
    sample->set_bytes(bytes);
  }
  return memory;
}

TEST(TimelineTest, FewSamplesStay) {
  const auto samples = Thinned(Timeline({{0, 5}, {0, 7}, {3, 1}, {9, 2}}), 10, 4);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1].bytes, 7);
  EXPECT_EQ(samples[3].ns, 9);
  EXPECT_TRUE(Thinned(v1::DeviceMemory(), 10, 4).empty());
  EXPECT_TRUE(Thinned(v1::DeviceMemory(), 0, 4).empty());
}

TEST(TimelineTest, WhatMakesNoSenseIsLeftOut) {
  const auto samples =
      Thinned(Timeline({{5, 1}, {4, 100}, {-3, 100}, {6, -1}, {11, 100}, {7, 2}}), 10, 4);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].ns, 5);
  EXPECT_EQ(samples[1].ns, 7);
}

// Each column of pixels has its most bytes, and the bytes at its end; nothing is made up. Counted
// by looking at all samples for each column.
TEST(TimelineTest, EachColumnKeepsItsMost) {
  Random random(2);
  for (int round = 0; round < 50; ++round) {
    constexpr int kColumns = 37;
    std::vector<std::pair<int64_t, int64_t>> all;
    int64_t now = 0;
    for (int i = 0; i < 5'000; ++i) {
      now += random.Below(5);
      all.emplace_back(now, random.Below(1'000'000));
    }
    const double end = static_cast<double>(now + 1);
    const auto thinned = Thinned(Timeline(all), end, kColumns);
    EXPECT_LE(thinned.size(), 2u * kColumns);
    for (int column = 0; column < kColumns; ++column) {
      double most = -1, kept = -1, last = -1, kept_last = -1;
      for (const auto& [ns, bytes] : all) {
        if (static_cast<int>(static_cast<double>(ns) / end * kColumns) != column) continue;
        most = std::max(most, static_cast<double>(bytes));
        last = static_cast<double>(bytes);
      }
      for (const Sample& sample : thinned) {
        if (static_cast<int>(sample.ns / end * kColumns) != column) continue;
        kept = std::max(kept, sample.bytes);
        kept_last = sample.bytes;
      }
      ASSERT_EQ(kept, most) << column;
      ASSERT_EQ(kept_last, last) << column;
    }
  }
}

}  // namespace
}  // namespace spillway::plot
