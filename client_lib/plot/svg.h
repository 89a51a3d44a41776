// Writes an SVG picture, shape by shape. Colours are classes (style.h), so that one picture is
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

// What an element may have besides its place. Texts are escaped here, and nowhere else.
struct Extra {
  std::string tip;   // Shown where the pointer is on it.
  std::string data;  // Attributes, ready to be written: ` data-bytes="12"`. No text from outside.
};

class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };

  void Rect(Point corner, double width, double height, absl::string_view style,
            const Extra& extra = Extra());
  void Line(Point from, Point to, absl::string_view style, const Extra& extra = Extra());
  // With a head at `to`.
  void Arrow(Point from, Point to, absl::string_view style, const Extra& extra = Extra());
  void Circle(Point at, double radius, absl::string_view style, const Extra& extra = Extra());
  // `commands`: of a path's attribute `d`.
  void Path(absl::string_view commands, absl::string_view style, const Extra& extra = Extra());
  // `style`: `text` is the usual one, `note` smaller and paler.
  void Text(Point at, Anchor anchor, absl::string_view text, absl::string_view style = "text",
            const Extra& extra = Extra());
  // From below to above, its middle at `at`.
  void TextUpwards(Point at, absl::string_view text);

  enum class Use { kInHtml, kFile };
  // The picture, for a file with an XML declaration. `title`
  // is for who cannot see it.
  std::string Picture(double width, double height, absl::string_view title, absl::string_view css,
                      Use use) const;

 private:
  void Close(absl::string_view element, const Extra& extra);

  std::string shapes_;
};

// A coordinate, to a tenth of a pixel.
std::string Pixels(double value);

// ` data-NAME="VALUE"`.
std::string Data(absl::string_view name, int64_t value);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_SVG_H_
