// Converts GraphDefs between protobuf's binary and text form.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_TEXT_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// Returns the serialized GraphDef in `text`, which is at `start` in its file. MALFORMED_GRAPH
// naming line and column in the file; also for a field or an enum value that TensorFlow 2.15 does
// not have (unknown text cannot be preserved). Deterministic. Besides text and bytes, needs memory
// for the message: about 3 times the bytes.
absl::StatusOr<std::string> GraphFromText(absl::string_view text, TextPosition start = {});

// Returns `graph_def` as text that TensorFlow's text_format reads: names of enum values, escaped
// bytes; `depth` levels indented. No comments, no unknown fields. INTERNAL if the bytes are not a
// GraphDef.
absl::StatusOr<std::string> GraphToText(absl::string_view graph_def, int depth = 0);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_TEXT_H_
