// Limits for bytes derived from a graph that has already passed the real limits.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NO_LIMITS_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NO_LIMITS_H_

#include "rewrite_core/graph/graph_def_fields.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Limits that accept anything that a protobuf message can hold.
inline v1::Limits NoLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(kMaxMessageBytes);
  limits.set_max_node_count(kMaxMessageBytes);
  limits.set_max_input_count(kMaxMessageBytes);
  return limits;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_NO_LIMITS_H_
