// Output of the program `spillway` with --json.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_CLI_JSON_H_
#define SPILLWAY_TESTS_CLIENT_LIB_CLI_JSON_H_

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace spillway::testing {

inline nlohmann::json Parsed(const std::string& text) {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << text.substr(0, 200);
  return parsed;
}

// 64 bits are text in protobuf's JSON.
inline int64_t Number(const nlohmann::json& value) {
  int64_t number = 0;
  EXPECT_TRUE(value.is_string() && absl::SimpleAtoi(value.get<std::string>(), &number)) << value;
  return number;
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_CLIENT_LIB_CLI_JSON_H_
