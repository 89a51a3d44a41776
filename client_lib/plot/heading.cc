#include "client_lib/plot/heading.h"

#include "absl/strings/str_cat.h"
#include "client_lib/plot/html.h"
#include "client_lib/plot/text.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::plot {
namespace {

constexpr double kTitleAt = 30;
constexpr double kFirstLineAt = 50;
constexpr double kLineHeight = 16;
constexpr double kBelow = 8;
// The approximate width of a letter of the title, and of one below it.
constexpr double kTitleLetter = 9.2;
constexpr double kNoteLetter = 6.0;
// A longer note would push the picture out of sight.
constexpr int kMaxLines = 12;

}  // namespace

double DrawHeading(const std::string& title, const std::vector<std::string>& lines, double left,
                   double width, Svg* svg) {
  svg->Text({left, kTitleAt}, Svg::Anchor::kStart,
            Shortened(title, static_cast<size_t>(width / kTitleLetter)), "title", {title, ""});
  double y = kFirstLineAt;
  int shown = 0;
  for (const std::string& line : lines) {
    absl::string_view rest = line;
    while (!rest.empty() && shown < kMaxLines) {
      svg->Text({left, y}, Svg::Anchor::kStart,
                FirstLine(&rest, static_cast<size_t>(width / kNoteLetter)), "note");
      y += kLineHeight;
      ++shown;
    }
  }
  return y + kBelow;
}

std::string MachineText(const v1::HardwareReport& report) {
  const v1::Hardware& hardware = report.hardware();
  if (hardware.gpu_memory_bytes() <= 0) return "";
  return absl::StrCat(hardware.preset().empty() ? "a custom machine" : hardware.preset(), ", ",
                      core::BytesText(hardware.gpu_memory_bytes()), " per GPU",
                      report.device_budget_bytes() > 0
                          ? absl::StrCat(", of which a step may use ",
                                         core::BytesText(report.device_budget_bytes()))
                          : "");
}

std::string Finished(const Svg& svg, double width, double height, const std::string& title,
                     const PictureOptions& options) {
  const bool is_page = options.format == Format::kHtml;
  std::string picture = svg.Picture(width, height, title, StyleSheet(options.theme),
                                    is_page ? Svg::Use::kInHtml : Svg::Use::kFile);
  return is_page ? HtmlPage(title, picture, options.theme) : picture;
}

}  // namespace spillway::plot
