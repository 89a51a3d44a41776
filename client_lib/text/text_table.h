// Text for people: aligned tables, wrapped lines, counts.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_TEXT_TABLE_H_
#define SPILLWAY_CLIENT_LIB_TEXT_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client_lib/text/style.h"

namespace spillway::text {

// Formats rows of cells, one line each, indented by two spaces; the first row is the heading. The
// first column is aligned to the left, the others to the right. If a line would be too long, the
// cells of the widest column are shortened in the middle.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows, Style style = Style());

// Formats rows of a label and text, aligned to the left, indented by two spaces. Long texts are
// wrapped at spaces. Rows with the label `warning` are marked as such.
std::string FormatFacts(const std::vector<std::vector<std::string>>& rows, Style style = Style());

// Returns "1 tensor", "2 tensors". `noun` must take a plural s.
std::string FormatCount(int64_t count, absl::string_view noun);

// Returns the bytes of several tensors: `>= 3.00 GiB` if `unknown` of them are left out, as their
// sizes are unknown; `-` if that are all.
std::string KnownBytes(int64_t bytes, int64_t unknown);

// Returns `text`, with `...` in its middle if it is longer than `width`.
std::string Shortened(absl::string_view text, size_t width);

// Wraps `text` at spaces into lines of at most `width` characters. Longer words stay whole.
std::string Wrap(absl::string_view text, size_t width);

// Wraps `text` into lines of at most the style's width, the first indented by `indent` and the
// others by two more, with a final newline. Longer words are shortened.
std::string Paragraph(absl::string_view text, size_t indent, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_TEXT_TABLE_H_
