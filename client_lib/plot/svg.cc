#include "client_lib/plot/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/plot/text.h"

namespace spillway::plot {
namespace {

// The size of an arrow's head.
constexpr double kHeadLength = 6;
constexpr double kHeadWidth = 3;

const char* AnchorName(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::kStart:
      return "start";
    case Svg::Anchor::kMiddle:
      return "middle";
    case Svg::Anchor::kEnd:
      return "end";
  }
  return "start";
}

}  // namespace

std::string Pixels(double value) {
  std::string text = absl::StrFormat("%.1f", value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Data(absl::string_view name, int64_t value) {
  return absl::StrCat(" data-", name, "=\"", value, "\"");
}

void Svg::Close(absl::string_view element, const Extra& extra) {
  if (extra.tip.empty()) {
    absl::StrAppend(&shapes_, extra.data, "/>\n");
  } else {
    absl::StrAppend(&shapes_, extra.data, "><title>", Escaped(extra.tip), "</title></", element,
                    ">\n");
  }
}

void Svg::Rect(Point corner, double width, double height, absl::string_view style,
               const Extra& extra) {
  absl::StrAppend(&shapes_, "<rect class=\"", style, "\" x=\"", Pixels(corner.x), "\" y=\"",
                  Pixels(corner.y), "\" width=\"", Pixels(width), "\" height=\"", Pixels(height),
                  "\"");
  Close("rect", extra);
}

void Svg::Line(Point from, Point to, absl::string_view style, const Extra& extra) {
  absl::StrAppend(&shapes_, "<line class=\"", style, "\" x1=\"", Pixels(from.x), "\" y1=\"",
                  Pixels(from.y), "\" x2=\"", Pixels(to.x), "\" y2=\"", Pixels(to.y), "\"");
  Close("line", extra);
}

void Svg::Arrow(Point from, Point to, absl::string_view style, const Extra& extra) {
  // Drawn by hand, because not every viewer supports markers. All arrows here point to the right.
  const double neck = to.x - kHeadLength > from.x ? to.x - kHeadLength : from.x;
  Path(absl::StrCat("M", Pixels(from.x), " ", Pixels(from.y), "H", Pixels(neck), "M", Pixels(neck),
                    " ", Pixels(to.y - kHeadWidth), "L", Pixels(to.x), " ", Pixels(to.y), "L",
                    Pixels(neck), " ", Pixels(to.y + kHeadWidth), "Z"),
       style, extra);
}

void Svg::Circle(Point at, double radius, absl::string_view style, const Extra& extra) {
  absl::StrAppend(&shapes_, "<circle class=\"", style, "\" cx=\"", Pixels(at.x), "\" cy=\"",
                  Pixels(at.y), "\" r=\"", Pixels(radius), "\"");
  Close("circle", extra);
}

void Svg::Path(absl::string_view commands, absl::string_view style, const Extra& extra) {
  absl::StrAppend(&shapes_, "<path class=\"", style, "\" d=\"", commands, "\"");
  Close("path", extra);
}

void Svg::Text(Point at, Anchor anchor, absl::string_view text, absl::string_view style,
               const Extra& extra) {
  absl::StrAppend(&shapes_, "<text class=\"", style, "\" x=\"", Pixels(at.x), "\" y=\"",
                  Pixels(at.y), "\" text-anchor=\"", AnchorName(anchor), "\"", extra.data, ">",
                  Escaped(text));
  if (!extra.tip.empty()) absl::StrAppend(&shapes_, "<title>", Escaped(extra.tip), "</title>");
  absl::StrAppend(&shapes_, "</text>\n");
}

void Svg::TextUpwards(Point at, absl::string_view text) {
  const std::string x = Pixels(at.x), y = Pixels(at.y);
  absl::StrAppend(&shapes_, "<text class=\"text\" x=\"", x, "\" y=\"", y,
                  "\" text-anchor=\"middle\" transform=\"rotate(-90 ", x, " ", y, ")\">",
                  Escaped(text), "</text>\n");
}

std::string Svg::Picture(double width, double height, absl::string_view title,
                         absl::string_view css, Use use) const {
  const std::string w = Pixels(width), h = Pixels(height);
  return absl::StrCat(use == Use::kFile ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" : "",
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", w, "\" height=\"", h,
                      "\" viewBox=\"0 0 ", w, " ", h, "\" role=\"img\">\n<title>", Escaped(title),
                      "</title>\n<style>\n", css, "</style>\n<rect class=\"paper\" width=\"", w,
                      "\" height=\"", h, "\"/>\n", shapes_, "</svg>\n");
}

}  // namespace spillway::plot
