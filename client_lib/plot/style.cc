#include "client_lib/plot/style.h"

#include "absl/strings/str_cat.h"

namespace spillway::plot {
namespace {

// Okabe and Ito, Color Universal Design (2008): distinguishable by everyone.
constexpr char kOrange[] = "#E69F00";
constexpr char kSkyBlue[] = "#56B4E9";
constexpr char kGreen[] = "#009E73";
constexpr char kBlue[] = "#0072B2";
constexpr char kVermillion[] = "#D55E00";
constexpr char kPurple[] = "#CC79A7";
constexpr char kYellow[] = "#F0E442";

struct Colour {
  const char* selector;
  const char* property;
  const char* light;
  const char* dark;
};

// In the dark theme, sky blue replaces blue, which would be hard to see; no picture uses both for
// one thing.
constexpr Colour kColours[] = {
    {".paper", "fill", "#FFFFFF", "#15181D"},
    {".title,.text,.legend", "fill", "#1A1A1A", "#E9EAEC"},
    {".note", "fill", "#555B63", "#A7AEB8"},
    {".halo", "stroke", "#FFFFFF", "#15181D"},
    {".grid", "stroke", "#E3E5E8", "#2B3038"},
    {".frame", "stroke", "#878D96", "#6C737E"},
    {".budget", "stroke", "#1A1A1A", "#E9EAEC"},
    {".resident", "fill", "#878D96", "#878D96"},
    {".before", "stroke", kVermillion, kVermillion},
    {".before-mark", "fill", kVermillion, kVermillion},
    {".after", "stroke", kBlue, kSkyBlue},
    {".after-area,.after-mark", "fill", kBlue, kSkyBlue},
    {".compute", "fill", kGreen, kGreen},
    {".again", "fill", kYellow, kYellow},
    {".copy-out", "fill", kOrange, kOrange},
    {".copy-in", "fill", kSkyBlue, kSkyBlue},
    {".wait", "fill", "#1A1A1A", "#E9EAEC"},
    {".host", "fill", "#878D96", "#878D96"},
    {".swap", "stroke", kPurple, kPurple},
    {".swap", "fill", kPurple, kPurple},
    {".bound", "stroke", "#1A1A1A", "#E9EAEC"},
    {".full", "stroke", kGreen, kGreen},
};

// For both themes.
constexpr char kShapes[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "font-size:12px}\n"
    ".title{font-size:18px;font-weight:600}\n"
    ".note{font-size:11px}\n"
    ".grid,.frame{fill:none;stroke-width:1px}\n"
    ".budget{fill:none;stroke-width:1.5px;stroke-dasharray:7 4}\n"
    ".before,.after,.bound,.full{fill:none;stroke-width:1.6px;stroke-linejoin:round}\n"
    ".before{stroke-dasharray:5 2}\n"
    ".bound{stroke-dasharray:2 3}\n"
    ".full{stroke-dasharray:8 3}\n"
    ".after-area{fill-opacity:.14}\n"
    ".resident{fill-opacity:.3}\n"
    ".halo{stroke-width:1.5px}\n"
    ".swap{stroke-width:1.3px}\n"
    ".hit{fill:none;pointer-events:all}\n";

std::string Rules(bool dark) {
  std::string css;
  for (const Colour& colour : kColours) {
    absl::StrAppend(&css, colour.selector, "{", colour.property, ":",
                    dark ? colour.dark : colour.light, "}\n");
  }
  return css;
}

}  // namespace

std::string StyleSheet(Theme theme) {
  switch (theme) {
    case Theme::kLight:
      return absl::StrCat(kShapes, Rules(/*dark=*/false));
    case Theme::kDark:
      return absl::StrCat(kShapes, Rules(/*dark=*/true));
    case Theme::kAuto:
      break;
  }
  return absl::StrCat(kShapes, Rules(/*dark=*/false), "@media (prefers-color-scheme:dark){\n",
                      Rules(/*dark=*/true), "}\n");
}

}  // namespace spillway::plot
