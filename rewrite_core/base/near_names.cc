#include "rewrite_core/base/near_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// Pairs of letters compared in all: some 30 ms, and enough for kMaxNearNames names of 28 letters.
constexpr size_t kMaxPairs = 16'000'000;
constexpr size_t kMaxNear = 3;
// One letter in kLettersPerMistake may be wrong; in short words at least one.
constexpr size_t kLettersPerMistake = 3;
// Shorter prefixes are not significant.
constexpr size_t kMinBeginning = 3;

}  // namespace

size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit) {
  const size_t beyond = limit + 1;
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return beyond;
  const std::string low_a = absl::AsciiStrToLower(a), low_b = absl::AsciiStrToLower(b);
  const size_t width = a.size() + 1;
  std::vector<size_t> rows(3 * width, beyond);
  size_t *before = rows.data(), *above = before + width, *row = above + width;
  for (size_t i = 0; i < width; ++i) above[i] = i;
  for (size_t j = 0; j < b.size(); ++j) {
    // A cell is at least as far as it is from the diagonal (Ukkonen, 1985): the others are beyond.
    const size_t begin = j > limit ? j - limit : 0;
    const size_t end = std::min(a.size(), j + limit + 1);
    row[begin] = begin == 0 ? j + 1 : beyond;
    size_t least = row[begin], left = row[begin];
    const char b_j = low_b[j];
    for (size_t i = begin; i < end; ++i) {
      const char a_i = low_a[i];
      size_t cell = std::min(std::min(left, above[i + 1]) + 1, above[i] + (a_i != b_j));
      if (i > 0 && j > 0 && a_i == low_b[j - 1] && low_a[i - 1] == b_j) {
        cell = std::min(cell, before[i - 1] + 1);
      }
      left = row[i + 1] = cell;
      least = std::min(least, cell);
    }
    if (end < a.size()) row[end + 1] = beyond;  // Read by the next row, which goes one further.
    if (least > limit) return beyond;
    std::swap(before, above);
    std::swap(above, row);
  }
  return std::min(above[a.size()], beyond);
}

std::vector<std::string> NearNames(absl::string_view word,
                                   const std::vector<absl::string_view>& known) {
  if (word.size() < 2 || word.size() > kMaxNearWord) return {};  // One letter is near any name.
  const size_t limit = std::max<size_t>(1, word.size() / kLettersPerMistake);
  std::vector<std::pair<size_t, size_t>> near;  // The distance, and the index.
  size_t pairs = 0;
  for (size_t i = 0; i < std::min(known.size(), kMaxNearNames) && pairs < kMaxPairs; ++i) {
    if (known[i] == word) continue;  // Not a spelling mistake, as the caller knows.
    if (known[i].size() <= word.size() + limit) pairs += word.size() * known[i].size();
    const size_t distance = EditDistance(word, known[i], limit);
    if (distance <= limit) {
      near.push_back({distance, i});
    } else if (word.size() >= kMinBeginning && absl::StartsWithIgnoreCase(known[i], word)) {
      near.push_back({limit + 1, i});
    }
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (const auto& found : near) {
    // If a name only differs in case, nothing else was meant.
    if (found.first > 0 && near.front().first == 0) break;
    const std::string name(known[found.second]);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (names.size() == kMaxNear) break;
  }
  return names;
}

std::string DidYouMean(absl::string_view word, const std::vector<absl::string_view>& known) {
  const std::vector<std::string> names = NearNames(word, known);
  if (names.empty()) return "";
  return absl::StrCat(
      "; did you mean ",
      absl::StrJoin(names, " or ",
                    [](std::string* out, const std::string& name) { *out += Quoted(name); }),
      "?");
}

}  // namespace spillway::core
