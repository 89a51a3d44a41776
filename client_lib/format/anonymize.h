// Anonymizes graphs for bug reports: other names, no constants, the same structure.
//
// Kept: the order of nodes, edges, TensorFlow's op types; of attributes types, shapes, numbers,
// bools, and the constants of a few known enumerations (padding: SAME); device types and indices,
// versions, and integer constants of at most 16 elements and rank 0 or 1 (sizes, axes,
// permutations: without them shapes cannot be inferred, and TensorFlow refuses the graph). Replaced
// consistently, also across the graphs of a file:
//   each part of a node's name     s0, s1, ... for scopes, n0, n1, ... for the rest, so that the
//                                  scopes stay intact; "lms/swapout_..." keeps its prefix
//   functions, job names           f0, ...; job0, ... (TensorFlow's usual ones stay)
//   op types, attribute names      CustomOp0, ..., attr0, ..., _attr0, ...; common attributes of
//                                  TensorFlow stay on its own ops, a few on others
//   other strings                  the new name if the string is a name, else str0, ...; Einsum's
//                                  equations stay
// Dropped: the values of all other constants (they become zeros and empty strings), descriptions,
// debug information, names of dimensions, malformed device names, unknown fields, and everything in
// the file around the graphs. The undo records of a rewritten graph are renamed, too, so that
// `strip` works on the result.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client_lib/format/graph_file.h"

namespace spillway::format {

struct Anonymized {
  std::string bytes;         // A file of the same format, with only its graphs.
  std::string mapping_json;  // Old and new names, by kind. Private.
};

// Anonymizes all graphs of `file`. Deterministic. A graph need not be valid for a rewrite, since it
// may be the bug. MALFORMED_GRAPH if it is not a protobuf message.
absl::StatusOr<Anonymized> Anonymize(const GraphFile& file);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_
