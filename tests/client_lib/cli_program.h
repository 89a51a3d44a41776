// The program `spillway`, run by a test.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_CLI_PROGRAM_H_
#define SPILLWAY_TESTS_CLIENT_LIB_CLI_PROGRAM_H_

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"

namespace spillway::testing {

inline const char kProgram[] = SPILLWAY_BIN_DIR "/spillway";

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline ChildResult Spillway(const Words& words, const std::string& input = "") {
  return RunChild(Words{kProgram} + words, input);
}

// Its failure is one of the test.
inline ChildResult Done(const Words& words, const std::string& input = "") {
  ChildResult result = Spillway(words, input);
  EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(words) << result.err;
  return result;
}

// One line on standard error, from us, with `texts`, and nothing else.
inline void ExpectError(const ChildResult& result, int exit_code, const Words& texts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::StartsWith("spillway: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& text : texts) EXPECT_THAT(result.err, ::testing::HasSubstr(text));
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_CLIENT_LIB_CLI_PROGRAM_H_
