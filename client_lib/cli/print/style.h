// Sparing colour: headings bold, warnings yellow, errors red. The texts are the same without it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_STYLE_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_STYLE_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// How to mark text. A value; the default leaves it plain.
class Style {
 public:
  explicit Style(bool color = false) : color_(color) {}

  std::string Heading(absl::string_view text) const { return Marked("1", text); }
  std::string Warning(absl::string_view text) const { return Marked("33", text); }
  std::string Error(absl::string_view text) const { return Marked("31", text); }

 private:
  // `code`: the parameter of ECMA-48's SGR sequence.
  std::string Marked(absl::string_view code, absl::string_view text) const;

  bool color_;
};

// Adds --color auto|always|never to `command`, which StyleOf uses in the whole process.
void AddColorFlag(CLI::App* command);

// Returns the style for output to a file descriptor: with `auto`, the default, in colour if it is a
// terminal, NO_COLOR is not set (no-color.org), and TERM is set and not `dumb`.
Style StyleOf(int fd);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_STYLE_H_
