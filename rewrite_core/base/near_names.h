// "Did you mean" suggestions: known names spelled similarly to a user's word.
#ifndef SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_
#define SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::core {

// A longer word has no near names, and of more names only the first are examined.
inline constexpr size_t kMaxNearWord = 128;
inline constexpr size_t kMaxNearNames = 20'000;

// The number of letters to insert, delete, change or transpose to turn `a` into `b` (optimal string
// alignment); `limit` + 1 if that is more than `limit`. Ignores case.
size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit);

// The names of `known` nearest to `word`, at most three, the nearest first and ties in their order:
// one letter in three may be wrong, or `word` is a prefix of the name. Work and memory are bounded:
// of long names, fewer than kMaxNearNames are examined. `word` itself does not count.
std::vector<std::string> NearNames(absl::string_view word,
                                   const std::vector<absl::string_view>& known);

// `; did you mean 'a' or 'b'?`, or empty.
std::string DidYouMean(absl::string_view word, const std::vector<absl::string_view>& known);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_
