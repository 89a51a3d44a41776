// MetaGraphDefs and SavedModels in protobuf's binary form: finding the graphs and putting others in
// their place, without touching a byte of the rest.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_format.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// The graphs of `bytes`, a file of `format`: one per MetaGraph, in file order. MALFORMED_GRAPH
// naming the MetaGraph and the byte where it is cut off or no protobuf; also if a MetaGraph has its
// graph in two pieces, which no serializer writes, and which could not be put back apart.
// REQUIRES: a binary format; at most 2 GiB.
absl::StatusOr<std::vector<GraphPlace>> FindBinaryGraphs(absl::string_view bytes,
                                                         GraphFormat format);

// Appends to `out` the varints and contents of `bytes` from `done` to the end of `place`, with
// `graph` as its content, and moves `done` there. A length that was written in more bytes than it
// needs keeps its width, so that strip gives the original back; MALFORMED_GRAPH where it cannot.
absl::Status AppendWithGraph(absl::string_view bytes, const GraphPlace& place,
                             absl::string_view graph, size_t* done, std::string* out);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_
