// What a caller may call its request, so that its logs and a server's can be put side by side: how
// the metadata are called and what they may hold. Client and server ask here, so that what one
// sends the other takes.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_
#define SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace spillway::core {

inline constexpr char kRequestIdKey[] = "x-request-id";
// Of W3C Trace Context.
inline constexpr char kTraceparentKey[] = "traceparent";
// What a caller says of the job that it asks for: a scheduler's id, who submitted it, the queue or
// namespace, and how the model is called. Claims: they go to log and journal, and decide nothing.
inline constexpr char kJobKey[] = "x-spillway-job";
inline constexpr char kUserKey[] = "x-spillway-user";
inline constexpr char kQueueKey[] = "x-spillway-queue";
inline constexpr char kModelKey[] = "x-spillway-model";

// Of each. Enough for a UUID; the server's status_to_grpc.cc counts on it.
inline constexpr size_t kMaxRequestNameBytes = 128;

// 1 to kMaxRequestNameBytes printable ASCII characters without space, quote or backslash. What is
// said of a job is of the same form.
bool IsRequestId(absl::string_view text);

// `VERSION-TRACE-PARENT-FLAGS` of 2, 32, 16 and 2 lowercase hexadecimal digits; trace and parent
// are not all zero, and the version is not ff. A version above 00 may go on behind another dash.
bool IsTraceparent(absl::string_view text);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_REQUEST_NAMES_H_
