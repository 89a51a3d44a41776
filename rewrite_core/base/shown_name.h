// Names from a graph as shown in summaries: of bounded length, because a summary may repeat one
// name as often as the graph has inputs.
#ifndef SPILLWAY_REWRITE_CORE_BASE_SHOWN_NAME_H_
#define SPILLWAY_REWRITE_CORE_BASE_SHOWN_NAME_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spillway::core {

// Longer than nearly all names in TensorFlow programs.
inline constexpr size_t kMaxShownName = 250;

// A node's name, cut after kMaxShownName bytes.
inline std::string ShownName(absl::string_view name) {
  if (name.size() <= kMaxShownName) return std::string(name);
  return absl::StrCat(name.substr(0, kMaxShownName), "...");
}

// The same for a name of arbitrary bytes: escaped as in C unless plain ASCII.
inline std::string ShownBytes(absl::string_view name) { return absl::CHexEscape(ShownName(name)); }

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_SHOWN_NAME_H_
