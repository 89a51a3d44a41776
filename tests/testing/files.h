// Reads test data files.
#ifndef SPILLWAY_TESTS_TESTING_FILES_H_
#define SPILLWAY_TESTS_TESTING_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spillway::testing {

// The bytes of a file; ends the program with a message if it cannot be read.
std::string ReadFile(const std::string& path);

// The bytes of tests/graphs/`name`, e.g. `mnist_deep/graph_shapes.pb`; if that does not exist, of
// `name`.gz, unpacked.
std::string ReadTestGraph(absl::string_view name);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_FILES_H_
