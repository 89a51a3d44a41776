// Reads sizes.txt. Uses only the standard library: the plug-in's test links none of our libraries.
#ifndef SPILLWAY_TESTS_TESTING_SIZES_H_
#define SPILLWAY_TESTS_TESTING_SIZES_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace spillway::size_table {

// Texts, and the bytes that they stand for; -1 if invalid.
inline std::vector<std::pair<std::string, int64_t>> ReadSizes() {
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::ifstream file(SPILLWAY_TEST_GRAPHS "/../testing/sizes.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t bar = line.find('|');
    if (line.empty() || line[0] == '#' || bar == std::string::npos) continue;
    const std::string bytes = line.substr(bar + 1);
    sizes.emplace_back(line.substr(0, bar), bytes == "-" ? -1 : std::stoll(bytes));
  }
  return sizes;
}

// The minimum number of rows, so that no test passes with a missing file.
inline constexpr size_t kMinSizes = 30;

}  // namespace spillway::size_table

#endif  // SPILLWAY_TESTS_TESTING_SIZES_H_
