#include "client_lib/text/style.h"

#include "absl/strings/str_cat.h"

namespace spillway::text {

std::string Style::Marked(absl::string_view code, absl::string_view text) const {
  if (color_ == Color::kOff || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

}  // namespace spillway::text
