// The name of an enum's value for people, where a newer server may send one that has none here.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_VALUE_NAME_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_VALUE_NAME_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace spillway::cli {

// `name`, as rewrite_core/base/names.h gives it; "number 99" where that is empty.
inline std::string NameOrNumber(std::string name, int value) {
  return name.empty() ? absl::StrCat("number ", value) : name;
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_VALUE_NAME_H_
