// "Did you mean": the names that are spelled nearly as what a user wrote.
#ifndef SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_
#define SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::core {

// How many letters have to be put in, left out, changed or swapped with the next one to make `b` of
// `a` (optimal string alignment), `limit` + 1 if these are more than `limit`. Upper and lower case
// are the same.
size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit);

// The names of `known` nearest to `word`, at most three, the nearest first and equals in their
// order: one letter in three may be wrong, or `word` is how a name begins. Work and memory are
// bounded: a word above 128 letters has no near names, and no more than 20,000 are looked at.
// `word` itself is not near.
std::vector<std::string> NearNames(absl::string_view word,
                                   const std::vector<absl::string_view>& known);

// `; did you mean 'a' or 'b'?`, or nothing.
std::string DidYouMean(absl::string_view word, const std::vector<absl::string_view>& known);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_NEAR_NAMES_H_
