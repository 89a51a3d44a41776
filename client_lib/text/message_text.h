// Texts by name, for callers who have serialized messages: the C API.
//
// The messages are untrusted.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_MESSAGE_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_MESSAGE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::text {

// The names, and the types of `content`, are those of spillway_text (spillway.h). Options are named
// as in options.proto.
//
// Errors: BAD_OPTION for another name or content.
absl::StatusOr<std::string> TextOf(absl::string_view name, absl::string_view content);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_MESSAGE_TEXT_H_
