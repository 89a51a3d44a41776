// Texts in pictures. Names from graphs and titles from command lines are untrusted.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::plot {

// Returns the first 16 KiB of `text` with a question mark for each byte that is not valid UTF-8,
// and for each character that XML 1.0 does not allow or that would change the text direction.
std::string Clean(absl::string_view text);

// The same for XML and HTML, between tags or in quotes: with entities.
std::string Escaped(absl::string_view text);

// Returns `text`, with an ellipsis in its middle if it has more than `width` bytes; no character is
// split.
std::string Shortened(absl::string_view text, size_t width);

// Removes the first line from `text` and returns it: at most `width` bytes, broken at a space; a
// longer word is shortened.
std::string FirstLine(absl::string_view* text, size_t width);

// Returns the device as graphs spell it; `GPU` if they name none.
std::string GpuName(absl::string_view device);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_TEXT_H_
