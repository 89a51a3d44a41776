// Texts in pictures. Names come from graphs, and titles from command lines: neither is trusted.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::plot {

// `text` with a question mark for each byte that is no valid UTF-8, and for each character that XML
// 1.0 does not have or that would turn the direction of what follows. The first 16 KiB of it.
std::string Clean(absl::string_view text);

// The same for XML and HTML, between tags or in quotes: with entities.
std::string Escaped(absl::string_view text);

// The same as a string of JSON, with its quotes.
std::string JsonText(absl::string_view text);

// `text` with an ellipsis in its middle, if it has more than `width` bytes; no character is cut.
std::string Shortened(absl::string_view text, size_t width);

// `text` in lines of at most `width` bytes, broken at spaces; what is longer is shortened.
std::string FirstLine(absl::string_view* text, size_t width);

// `1.2 ms`, `905 ms`, `12.3 s`: three digits, in the unit in which there is at least one.
std::string TimeText(double nanoseconds);

// As graphs spell it; `GPU` where they name none.
std::string GpuName(absl::string_view device);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_
