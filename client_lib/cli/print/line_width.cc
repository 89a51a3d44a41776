#include "client_lib/cli/print/line_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace spillway::cli {
namespace {

constexpr size_t kMinTerminalWidth = 40;
constexpr size_t kMaxTerminalWidth = 240;

}  // namespace

size_t LineWidth(size_t otherwise) {
  const char* const text = std::getenv("COLUMNS");
  size_t width = 0;
  if (text != nullptr && absl::SimpleAtoi(text, &width) && width > 0) {
    return std::clamp(width, kMinTerminalWidth, kMaxTerminalWidth);
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::clamp<size_t>(size.ws_col, kMinTerminalWidth, kMaxTerminalWidth);
  }
  return otherwise;
}

}  // namespace spillway::cli
