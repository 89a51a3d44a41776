// Mutations of how many and how long things are in a message of protobuf: libFuzzer's own change
// some bytes, and come to no list of thousands.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_TESTS_FUZZ_LENGTH_MUTATOR_H_
#define SPILLWAY_TESTS_FUZZ_LENGTH_MUTATOR_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/testing/random.h"

namespace spillway::testing {

// `message` with one field, at any depth, repeated up to thousands of times, lengthened as much,
// cut in half or left out; the lengths around it are right. At most `max_size` bytes if `message`
// has no more. Other input is taken for bytes.
std::string ScaleLengths(absl::string_view message, size_t max_size, Random* random);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_LENGTH_MUTATOR_H_
