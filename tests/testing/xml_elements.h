// Reads XML strictly, for tests of code that writes it: malformed input is reported, never guessed
// at. Supports the subset used in pictures: elements, attributes in double quotes, text, the five
// entities and numeric ones, one declaration at the start.
#ifndef SPILLWAY_TESTS_TESTING_XML_ELEMENTS_H_
#define SPILLWAY_TESTS_TESTING_XML_ELEMENTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::testing {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // With entities decoded.
  std::string text;                               // Its own text, without that of nested elements.
  int parent = -1;                                // An index into the list; -1 for the root.
};

// The elements in order of their start. `*problem` is "" if the text is well-formed.
std::vector<XmlElement> ParseXml(absl::string_view text, std::string* problem);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_XML_ELEMENTS_H_
