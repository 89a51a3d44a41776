// Graphs in protobuf's text form, as protobuf's own tokenizer sees it: what a file is, and where in
// it the blocks `graph_def { ... }` are. All else stays text, of which nothing need be known.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_format.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// Whether a field name, with a value behind it, comes first after white space and comments.
bool StartsLikeText(absl::string_view bytes);

// The format of a text: by its first field that only one of the three messages has; a GraphDef if
// there is none, so that reading it as one tells the line of the mistake.
GraphFormat RecogniseText(absl::string_view text);

// The graphs of a text of that format: one per MetaGraph, in file order. MALFORMED_GRAPH naming
// line and column, both from 1, where brackets do not match, where the tokenizer finds no token, or
// where a MetaGraph has a second graph_def. REQUIRES: a text format; at most 2 GiB.
absl::StatusOr<std::vector<GraphPlace>> FindTextGraphs(absl::string_view text, GraphFormat format);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_TEXT_PLACES_H_
