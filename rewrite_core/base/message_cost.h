// The memory that a message will take, computed from its bytes before they are parsed: two bytes on
// the wire may be a hundred in memory.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_BASE_MESSAGE_COST_H_
#define SPILLWAY_REWRITE_CORE_BASE_MESSAGE_COST_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace spillway::core {

struct MessageCost {
  int64_t memory_bytes = 0;  // Maximum once parsed.
  int64_t blob_bytes = 0;    // Wire size of fields of type `bytes`, which are not lists of small
                             // items.
};

// The cost of a message of `type` with these bytes, below 2 GiB. Malformed bytes count up to the
// error. Linear in the bytes.
MessageCost CostOf(const google::protobuf::Descriptor& type, absl::string_view bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_MESSAGE_COST_H_
