// The difference of two graphs, as text.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_DIFF_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_DIFF_TEXT_H_

#include <string>

#include "client_lib/text/style.h"
#include "spillway/v1/diff.pb.h"

namespace spillway::text {

// Returns counts, one sentence per swap, one line per other difference, and a closing summary.
std::string FormatGraphDiff(const v1::GraphDiff& diff, Style style = Style());

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_DIFF_TEXT_H_
