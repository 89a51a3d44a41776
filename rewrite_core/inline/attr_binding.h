// Attributes of a function's nodes that stand for attributes of the call (`T: placeholder "T"`).
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_ATTR_BINDING_H_
#define SPILLWAY_REWRITE_CORE_INLINE_ATTR_BINDING_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/inline/function_table.h"

namespace spillway::core {

// Serialized AttrValues by name.
using AttrValues = absl::flat_hash_map<absl::string_view, absl::string_view>;

// The attributes that a call passes to its function: those of its function attribute, or its own if
// its op type is the function. Views into `node_def`, the bytes of the calling node.
AttrValues AttrsOfCall(CallKind kind, absl::string_view node_def);

// Appends `node_def` to `out`, with placeholders in its attributes replaced by the call's attribute
// values. False if a value is missing or nested too deep, or the result grows beyond `max_bytes`.
bool BindAttrs(absl::string_view node_def, const AttrValues& values, size_t max_bytes,
               std::string* out);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_ATTR_BINDING_H_
