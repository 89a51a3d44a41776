// A picture as a self-contained page.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_HTML_H_
#define SPILLWAY_CLIENT_LIB_PLOT_HTML_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/plot/style.h"

namespace spillway::plot {

// `svg`: a picture of svg.h. The page loads nothing (its policy forbids it), and inserts facts
// about the element under the pointer as text, never as markup.
std::string HtmlPage(absl::string_view title, absl::string_view svg, Theme theme);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_HTML_H_
