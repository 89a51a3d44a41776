// The looks of pictures: colours that colour-blind people tell apart, light and dark.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_

#include <string>

namespace spillway::plot {

enum class Theme {
  kAuto,  // As who looks at it prefers (prefers-color-scheme); light where nobody says.
  kLight,
  kDark,
};

// The style sheet: every class that pictures use, and what each looks like.
std::string StyleSheet(Theme theme);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_
