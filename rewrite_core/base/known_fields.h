// Rejects messages of a newer API, and fields that were removed from an older one: answering a
// different request than the one made is worse than an error.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_BASE_KNOWN_FIELDS_H_
#define SPILLWAY_REWRITE_CORE_BASE_KNOWN_FIELDS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace spillway::core {

// INVALID_ARGUMENT (UNKNOWN_OPTION), naming message and field number, if `message`, or a message in
// it, has a field that this build does not know. If it was removed, the error says so, with its
// name: the protos reserve numbers and names in the same order. Recursive, because our messages are
// only a few levels deep.
absl::Status CheckKnownFields(const google::protobuf::Message& message);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_KNOWN_FIELDS_H_
