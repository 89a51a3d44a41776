// One form for all serializations of a graph. TensorFlow's maps, attributes above all, are
// unordered: every process serializes the same graph to other bytes.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_CANONICAL_FORM_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_CANONICAL_FORM_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Gives the bytes of `graph_def` to `write`, in pieces of some 64 KiB, with the entries of each map
// behind the other fields of its message, in the order of their keys; those of one key stay in
// theirs, of which the last counts. So two graphs of one form mean the same. Two that mean the same
// may have other forms: where fields are in another order, or in maps of more than
// kMaxSortedEntries and messages deeper than kMaxSortedDepth, which stay as they are; so do bytes
// that are no message. Errors: those of `stop`. REQUIRES: at most INT_MAX bytes.
absl::Status WriteCanonicalForm(absl::string_view graph_def, const StopToken& stop,
                                absl::FunctionRef<void(absl::string_view)> write);

// The SHA-256 of that form in 64 hexadecimal digits: what plans name their graph by. Errors: those
// of `stop`; INTERNAL if OpenSSL fails. REQUIRES: at most INT_MAX bytes.
absl::StatusOr<std::string> CanonicalSha256(absl::string_view graph_def, const StopToken& stop);

inline constexpr int kMaxSortedEntries = 4096;
inline constexpr int kMaxSortedDepth = 64;

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_CANONICAL_FORM_H_
