// A picture as a page of its own.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_HTML_H_
#define SPILLWAY_CLIENT_LIB_PLOT_HTML_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/plot/style.h"

namespace spillway::plot {

// `svg`: a picture of svg.h. The page loads nothing (it forbids itself to), and what it tells of
// the thing under the pointer is text, never markup.
std::string HtmlPage(absl::string_view title, absl::string_view svg, Theme theme);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_HTML_H_
