// How texts are written: colours, width, and the names of options.
//
// Sparing colour: headings bold, warnings yellow, errors red. The texts are the same without it.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_STYLE_H_
#define SPILLWAY_CLIENT_LIB_TEXT_STYLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::text {

// The maximum length of a line in characters, unless a Style has another.
inline constexpr size_t kLineWidth = 100;

// A value; the default is plain text, with options named as in options.proto.
class Style {
 public:
  enum class Color { kOff, kOn };
  // Returns a sentence with its options named otherwise, such as by flags.
  using OptionNames = std::string (*)(absl::string_view sentence);

  explicit Style(Color color = Color::kOff, size_t width = kLineWidth, OptionNames names = nullptr)
      : color_(color), width_(width), names_(names) {}

  std::string Heading(absl::string_view text) const { return Marked("1", text); }
  std::string Warning(absl::string_view text) const { return Marked("33", text); }
  std::string Error(absl::string_view text) const { return Marked("31", text); }

  size_t width() const { return width_; }

  // Returns `sentence` with the names of options that the reader knows.
  std::string WithOptions(absl::string_view sentence) const {
    return names_ == nullptr ? std::string(sentence) : names_(sentence);
  }

 private:
  // `code`: the parameter of ECMA-48's SGR sequence.
  std::string Marked(absl::string_view code, absl::string_view text) const;

  Color color_;
  size_t width_;
  OptionNames names_;
};

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_STYLE_H_
