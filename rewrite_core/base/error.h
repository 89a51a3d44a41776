// Errors of the core: an absl::Status with a stable reason and the names and numbers involved.
#ifndef SPILLWAY_REWRITE_CORE_BASE_ERROR_H_
#define SPILLWAY_REWRITE_CORE_BASE_ERROR_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "spillway/v1/error.pb.h"

namespace spillway::core {

// The type URL under which a status carries its serialized v1::ErrorInfo, both as a payload of an
// absl::Status and inside google.rpc.Status on the wire.
inline constexpr char kErrorInfoTypeUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";

// Key and value of one item that the message mentions, e.g. {"node", "conv1"}.
using ErrorDetail = std::pair<absl::string_view, absl::string_view>;

// Makes an error. `message` is one sentence that names the item and says what to do.
absl::Status Error(absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
                   absl::Span<const ErrorDetail> details = {});

// The same with code INVALID_ARGUMENT.
absl::Status InvalidError(v1::ErrorReason reason, absl::string_view message,
                          absl::Span<const ErrorDetail> details = {});

// BAD_OPTION, for a value out of its range: `OPTION is VALUE; REMEDY`.
absl::Status BadOptionError(absl::string_view option, const absl::AlphaNum& value,
                            absl::string_view remedy);

// UNKNOWN_OPTION, for a value of an enum to which a newer API may have added it.
absl::Status UnknownValueError(absl::string_view option, int value);

// `status` with that detail, which replaces one with the same key; unchanged if it is OK or carries
// no info.
absl::Status WithDetail(const absl::Status& status, absl::string_view key, absl::string_view value);

// `status` with `text` appended to its message. REQUIRES: it is not OK.
absl::Status WithMoreText(const absl::Status& status, absl::string_view text);

// The info that `status` carries; an empty one if it carries none.
v1::ErrorInfo GetErrorInfo(const absl::Status& status);

// The reason that `status` carries; UNSPECIFIED if it carries none.
v1::ErrorReason GetErrorReason(const absl::Status& status);

// `text` from a user, fit for a message: quoted, escaped to ASCII, cut after 200 bytes.
std::string Quoted(absl::string_view text);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_ERROR_H_
