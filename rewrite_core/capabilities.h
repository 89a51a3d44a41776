// The capabilities of this build and its default limits.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_CAPABILITIES_H_
#define SPILLWAY_REWRITE_CORE_CAPABILITIES_H_

#include <string>

#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// The limits that apply unless others are set. max_unary_bytes, max_chunk_bytes,
// max_concurrent_requests, max_inflight_bytes, max_concurrent_streams, max_metadata_bytes and
// max_option_bytes only concern the server.
v1::Limits DefaultLimits();

// This build's capabilities, under `limits`. Its strategies are those of strategy/strategies.h.
v1::GetCapabilitiesResponse Capabilities(const v1::Limits& limits);

// The version of this build, `MAJOR.MINOR.PATCH`.
std::string Version();

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_CAPABILITIES_H_
