// Writes an SVG picture, shape by shape. Colours are classes (style.h), so the same picture can be
// light or dark.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_SVG_H_
#define SPILLWAY_CLIENT_LIB_PLOT_SVG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::plot {

struct Point {
  double x = 0;
  double y = 0;
};

// Optional parts of an element. This class alone escapes texts.
struct Extra {
  std::string tip;   // Shown while the pointer is on the element.
  std::string data;  // Attributes as written: ` data-bytes="12"`. Must not contain untrusted text.
};

class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };

  void Rect(Point corner, double width, double height, absl::string_view style,
            const Extra& extra = Extra());
  void Line(Point from, Point to, absl::string_view style, const Extra& extra = Extra());
  // Has a head at `to`.
  void Arrow(Point from, Point to, absl::string_view style, const Extra& extra = Extra());
  void Circle(Point at, double radius, absl::string_view style, const Extra& extra = Extra());
  // `commands`: the value of a path's attribute `d`.
  void Path(absl::string_view commands, absl::string_view style, const Extra& extra = Extra());
  // `style`: `text` is the usual one, `note` smaller and paler.
  void Text(Point at, Anchor anchor, absl::string_view text, absl::string_view style = "text",
            const Extra& extra = Extra());
  // Runs upwards, with its middle at `at`.
  void TextUpwards(Point at, absl::string_view text);

  // Returns the picture for embedding in HTML, or with the XML line of a stand-alone file. `title`
  // is for screen readers.
  std::string Picture(double width, double height, absl::string_view title, absl::string_view css,
                      bool as_file) const;

 private:
  void Close(absl::string_view element, const Extra& extra);

  std::string shapes_;
};

// Formats a coordinate to a tenth of a pixel.
std::string Pixels(double value);

// Returns ` data-NAME="VALUE"`.
std::string Data(absl::string_view name, int64_t value);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_SVG_H_
