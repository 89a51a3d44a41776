// Names that a caller may give to a request, to correlate its logs with a server's: metadata keys
// and valid values. Shared by client and server, so that the server accepts the client's names.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_
#define SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace spillway::core {

inline constexpr char kRequestIdKey[] = "x-request-id";
// From W3C Trace Context.
inline constexpr char kTraceparentKey[] = "traceparent";
// The job that a request belongs to, as claimed by the caller: a scheduler's id, the submitting
// user, the queue or namespace, and the model's name. They only go to the log and the journal, and
// affect nothing else.
inline constexpr char kJobKey[] = "x-spillway-job";
inline constexpr char kUserKey[] = "x-spillway-user";
inline constexpr char kQueueKey[] = "x-spillway-queue";
inline constexpr char kModelKey[] = "x-spillway-model";

// Per name. Enough for a UUID; the server's status_to_grpc.cc relies on it.
inline constexpr size_t kMaxRequestNameBytes = 128;

// 1 to kMaxRequestNameBytes printable ASCII characters without space, quote or backslash. Values
// about the job have the same form.
bool IsRequestId(absl::string_view text);

// `VERSION-TRACE-PARENT-FLAGS` of 2, 32, 16 and 2 lowercase hexadecimal digits; trace and parent
// are not all zero, and the version is not ff. A version above 00 may continue after another dash.
bool IsTraceparent(absl::string_view text);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_
