// Names of enum values for people. A newer server may send a value that is unknown here.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_VALUE_NAME_H_
#define SPILLWAY_CLIENT_LIB_TEXT_VALUE_NAME_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace spillway::text {

// Returns `name`, from rewrite_core/base/names.h; "number 99" if it is empty.
inline std::string NameOrNumber(std::string name, int value) {
  return name.empty() ? absl::StrCat("number ", value) : name;
}

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_VALUE_NAME_H_
