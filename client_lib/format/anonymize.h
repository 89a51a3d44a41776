// Graphs without what is private in them, for bug reports: other names, no constants, the same
// structure.
//
// Kept: the order of nodes, edges, op types of TensorFlow, types, shapes, numbers in attributes,
// device types and indices, versions, and integer constants of at most 16 elements and rank 0 or 1
// (sizes, axes, permutations: without them shapes cannot be inferred, and TensorFlow refuses the
// graph). Replaced, the same by the same everywhere (also across the graphs of a file):
//   each part of a node's name     s0, s1, ... where it is a scope, n0, n1, ... where not, so that
//                                  the scopes stay; "lms/swapout_..." keeps its mark
//   functions, job names           f0, ...; job0, ... (TensorFlow's usual ones stay)
//   op types, attribute names      CustomOp0, ..., attr0, ..., _attr0, ...; TensorFlow's stay
//                                  on ops of its own (attribute_names.inc), a few on others
//   strings                        a name where they are one, else str0, ...; words that ops of
//                                  TensorFlow know (SAME, ...) and Einsum's equations stay
// Dropped: the values of all other constants (they become zeros and empty strings), descriptions,
// debug information, names of dimensions, device names that are none, unknown fields, and
// everything in the file around the graphs. The undo records of a rewritten graph are renamed, too:
// `strip` works on the result.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client_lib/format/graph_file.h"

namespace spillway::format {

struct Anonymized {
  std::string bytes;         // A file of the same format, with nothing but its graphs.
  std::string mapping_json;  // Which name became which, by kind. Stays at home.
};

// The same file gives the same result. A graph need not be one that could be rewritten: it may be
// the bug. MALFORMED_GRAPH if it is no protobuf message.
absl::StatusOr<Anonymized> Anonymize(const GraphFile& file);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_ANONYMIZE_H_
