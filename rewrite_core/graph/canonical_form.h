// A canonical form for all serializations of a graph. TensorFlow's maps, attributes above all, are
// unordered: every process serializes the same graph to different bytes.
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

// Passes the bytes of `graph_def` to `write`, in pieces of about 64 KiB, with the entries of each
// map after the other fields of its message and sorted by key. Entries with equal keys keep their
// order, since the last one counts. So two graphs with the same form are equivalent. Equivalent
// graphs may still have different forms: fields in a different order, maps of more than
// kMaxSortedEntries, messages deeper than kMaxSortedDepth and bytes that are not a message are left
// unchanged. Errors: those of `stop`. REQUIRES: at most INT_MAX bytes.
absl::Status WriteCanonicalForm(absl::string_view graph_def, const StopToken& stop,
                                absl::FunctionRef<void(absl::string_view)> write);

// The SHA-256 of that form in 64 hexadecimal digits, by which plans identify their graph. Errors:
// those of `stop`; INTERNAL if OpenSSL fails. REQUIRES: at most INT_MAX bytes.
absl::StatusOr<std::string> CanonicalSha256(absl::string_view graph_def, const StopToken& stop);

inline constexpr int kMaxSortedEntries = 4096;
inline constexpr int kMaxSortedDepth = 64;

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_CANONICAL_FORM_H_
