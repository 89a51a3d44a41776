// A graph's summary, for people.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_INSPECT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_INSPECT_TEXT_H_

#include <string>

#include "client_lib/text/style.h"
#include "spillway/v1/inspect.pb.h"

namespace spillway::text {

// Returns facts, then tables of at most `top` rows each; omitted rows are counted.
std::string FormatGraphSummary(const v1::GraphSummary& summary, int top, Style style = Style());

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_INSPECT_TEXT_H_
