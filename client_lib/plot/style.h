// The style of pictures: light and dark colours that colour-blind people can distinguish.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_

#include <string>

namespace spillway::plot {

enum class Theme {
  kAuto,  // The viewer's preference (prefers-color-scheme); light if none.
  kLight,
  kDark,
};

// Returns the style sheet: every class that pictures use.
std::string StyleSheet(Theme theme);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_STYLE_H_
