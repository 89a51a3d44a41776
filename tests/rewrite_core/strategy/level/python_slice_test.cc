#include "rewrite_core/strategy/level/python_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using Numbers = std::vector<int64_t>;

// Each position, ascending.
absl::optional<Numbers> Selected(const std::string& text, int32_t size) {
  const auto positions = SelectPositions(text, size);
  if (!positions.has_value()) return absl::nullopt;
  Numbers numbers;
  for (int64_t i = positions->first; i <= positions->last; i += positions->step) {
    numbers.push_back(i);
  }
  if (!positions->empty()) {
    EXPECT_EQ(numbers.back(), positions->last) << text << " of " << size;
  }
  return numbers;
}

// Output of Python 3.11 for sorted(list(range(10))[...]).
TEST(PythonSliceTest, SelectsWhatPythonSelects) {
  const std::vector<std::pair<std::string, Numbers>> cases = {
      {"3", {3}},
      {"-1", {9}},
      {"-10", {0}},
      {"::3", {0, 3, 6, 9}},
      {":-100:-4", {1, 5, 9}},
      {" 2 : 4 ", {2, 3}},
      {"+2:4", {2, 3}},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(Selected(text, 10), Optional(expected)) << text;
  }
}

TEST(PythonSliceTest, AnIndexOutsideSelectsNothing) {
  EXPECT_THAT(Selected("10", 10), Optional(IsEmpty()));
  EXPECT_THAT(Selected("-11", 10), Optional(IsEmpty()));
  EXPECT_THAT(Selected("0", 0), Optional(IsEmpty()));
  EXPECT_THAT(Selected("-1", 0), Optional(IsEmpty()));
  EXPECT_THAT(Selected(":", 0), Optional(IsEmpty()));
}

TEST(PythonSliceTest, WhatIsNeitherIndexNorSlice) {
  for (const char* text :
       {"", " ", "a", "1.5", "0x3", "1:2:3:4", "::0", "1:2:0", "1:b", "--1", "1 2", "3:5,",
        "None:", "2147483648", "-2147483649", "99999999999999999999:"}) {
    EXPECT_EQ(Selected(text, 10), absl::nullopt) << text;
  }
}

TEST(PythonSliceTest, TheLargestNumbers) {
  EXPECT_THAT(Selected("-2147483648:2147483647:2147483647", 10), Optional(ElementsAre(0)));
  EXPECT_THAT(Selected("2147483647:-2147483648:-2147483648", 10), Optional(ElementsAre(9)));
}

// The definition of the language reference (sequence types, note 5), position by position: x is
// selected if it is start + n * step for some n >= 0, before stop, where an omitted or out-of-range
// bound becomes the end value on its side.
bool IsSelected(int x, int size, std::optional<int> start, std::optional<int> stop, int step) {
  const auto end = [size, step](int i) {
    if (i < 0) i += size;
    return step > 0 ? std::clamp(i, 0, size) : std::clamp(i, -1, size - 1);
  };
  const int first = start ? end(*start) : step > 0 ? 0 : size - 1;
  const int last = stop ? end(*stop) : step > 0 ? size : -1;
  if ((x - first) % step != 0 || (x - first) / step < 0) return false;
  return step > 0 ? x < last : x > last;
}

TEST(PythonSliceTest, AgreesWithTheLanguageReferenceOnAllSmallSlices) {
  std::vector<std::optional<int>> ends = {std::nullopt};
  for (int i = -7; i <= 7; ++i) ends.push_back(i);
  const auto spelled = [](std::optional<int> end) { return end ? absl::StrCat(*end) : ""; };
  for (int size = 0; size <= 5; ++size) {
    for (const auto& start : ends) {
      for (const auto& stop : ends) {
        for (const auto& step : ends) {
          if (step == 0) continue;
          Numbers expected;
          for (int x = 0; x < size; ++x) {
            if (IsSelected(x, size, start, stop, step.value_or(1))) expected.push_back(x);
          }
          const std::string text =
              absl::StrCat(spelled(start), ":", spelled(stop), ":", spelled(step));
          ASSERT_THAT(Selected(text, size), Optional(expected)) << text << " of " << size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace spillway::core
