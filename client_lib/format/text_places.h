// Finds graphs in protobuf's text form with protobuf's own tokenizer: the format of a file, and its
// blocks `graph_def { ... }`. The rest stays text and need not be understood.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_format.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// Whether a field name followed by a value comes first after white space and comments.
bool StartsLikeText(absl::string_view bytes);

// Returns the format of a text, by its first field that only one of the three messages has;
// otherwise GraphDef, so that parsing it as one gives the line of the error.
GraphFormat RecogniseText(absl::string_view text);

// Returns the graphs of a text of that format: one per MetaGraph, in file order. MALFORMED_GRAPH
// naming line and column, both from 1, if brackets do not match, the tokenizer finds no token, or a
// MetaGraph has a second graph_def. REQUIRES: a text format; at most 2 GiB.
absl::StatusOr<std::vector<GraphPlace>> FindTextGraphs(absl::string_view text, GraphFormat format);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_
