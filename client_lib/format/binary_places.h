// MetaGraphDefs and SavedModels in protobuf's binary form: finds the graphs and replaces them
// without touching any other byte.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_format.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// Returns the graphs of `bytes`, a file of `format`: one per MetaGraph, in file order.
// MALFORMED_GRAPH, naming the MetaGraph and the byte, if the file is truncated or not protobuf, or
// if a MetaGraph has its graph in two pieces, which no serializer writes and which could not be
// separated again.
// REQUIRES: a binary format; at most 2 GiB.
absl::StatusOr<std::vector<GraphPlace>> FindBinaryGraphs(absl::string_view bytes,
                                                         GraphFormat format);

// Appends to `out` the bytes from `done` to the end of `place`, with `graph` as the content and the
// lengths updated, and moves `done` there. A length varint that is longer than necessary keeps its
// width, so that strip restores the original; MALFORMED_GRAPH if the new length does not fit it.
absl::Status AppendWithGraph(absl::string_view bytes, const GraphPlace& place,
                             absl::string_view graph, size_t* done, std::string* out);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_BINARY_PLACES_H_
