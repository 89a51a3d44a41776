// The text form of attribute values, described in text_form.h.
#ifndef SPILLWAY_TESTS_TESTING_ATTR_TEXT_H_
#define SPILLWAY_TESTS_TESTING_ATTR_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spillway::testing {

// The text of a serialized AttrValue. Parsing it gives the same bytes back.
std::string PrintAttr(absl::string_view value);

// Reads a value from the front of `text`, advances `text` past it and appends the serialized
// AttrValue to `out`. Returns false without a value; `text` then begins at the error.
bool ParseAttr(absl::string_view* text, std::string* out);

// Bytes as `0x...`, and back (false if the text does not begin with one).
std::string PrintHex(absl::string_view bytes);
bool ParseHex(absl::string_view* text, std::string* out);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_ATTR_TEXT_H_
