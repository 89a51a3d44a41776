#include "tests/testing/files.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace spillway::testing {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) {
    std::cerr << "cannot read " << path << "\n";
    std::abort();
  }
  return bytes.str();
}

std::string ReadTestGraph(absl::string_view name) {
  return ReadFile(absl::StrCat(SPILLWAY_TEST_GRAPHS, "/", name));
}

}  // namespace spillway::testing
