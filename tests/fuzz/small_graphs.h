// Graphs that stay the same, for targets whose bytes are something else.
//
// Thread-safe.
#ifndef SPILLWAY_TESTS_FUZZ_SMALL_GRAPHS_H_
#define SPILLWAY_TESTS_FUZZ_SMALL_GRAPHS_H_

#include <string>
#include <vector>

namespace spillway::testing {

// In a few dozen nodes each: one with a conditional and a loop, on several devices; a plain one;
// the first, rewritten on one of its devices.
const std::vector<std::string>& SmallGraphs();

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_SMALL_GRAPHS_H_
