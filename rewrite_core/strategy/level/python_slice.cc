#include "rewrite_core/strategy/level/python_slice.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace spillway::core {

absl::optional<Positions> SelectPositions(absl::string_view text, int32_t size) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
  if (parts.size() > 3) return absl::nullopt;
  absl::optional<int64_t> numbers[3];
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::string_view part = absl::StripAsciiWhitespace(parts[i]);
    if (part.empty()) continue;
    int32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return absl::nullopt;
    numbers[i] = number;
  }
  const auto from_end = [size](int64_t number) { return number < 0 ? number + size : number; };
  if (parts.size() == 1) {
    if (!numbers[0].has_value()) return absl::nullopt;
    const int64_t index = from_end(*numbers[0]);
    return index >= 0 && index < size ? Positions{index, index} : Positions();
  }
  const int64_t step = numbers[2].value_or(1);
  if (step == 0) return absl::nullopt;
  // Like slice.indices: ends are clamped to 0 and size, or one less if the step is negative.
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : int64_t{size} - 1;
  const auto end_of = [&](absl::optional<int64_t> number, int64_t otherwise) {
    return number.has_value() ? std::min(std::max(from_end(*number), lowest), highest) : otherwise;
  };
  const int64_t start = end_of(numbers[0], step > 0 ? lowest : highest);
  const int64_t stop = end_of(numbers[1], step > 0 ? highest : lowest);
  if (step > 0 ? start >= stop : start <= stop) return Positions();
  const int64_t end = start + (stop - start - (step > 0 ? 1 : -1)) / step * step;
  return Positions{std::min(start, end), std::max(start, end), std::abs(step)};
}

}  // namespace spillway::core
