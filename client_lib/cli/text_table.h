// Text for people: aligned tables, sizes and times in units that fit.
#ifndef SPILLWAY_CLIENT_LIB_CLI_TEXT_TABLE_H_
#define SPILLWAY_CLIENT_LIB_CLI_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::cli {

// Rows of cells, one line each, indented by two spaces. The first column is aligned to the left,
// the others to the right, unless `all_left`.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows, bool all_left = false);

// "512 B", "1.50 KiB", "3.21 GiB".
std::string FormatBytes(int64_t bytes);

// "0.12 ms", "1234 ms".
std::string FormatMilliseconds(int64_t nanoseconds);

// "1 tensor", "2 tensors": `noun` takes an s.
std::string FormatCount(int64_t count, absl::string_view noun);

// Breaks `text` at spaces into lines of at most `width` characters.
std::string Wrap(absl::string_view text, size_t width);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_TEXT_TABLE_H_
