#include "rewrite_core/capabilities.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::core {
v1::Limits DefaultLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(kMaxMessageBytes);
  limits.set_max_unary_bytes(64 * kBytesPerMib);
  limits.set_max_chunk_bytes(4 * kBytesPerMib);
  limits.set_max_node_count(20'000'000);
  limits.set_max_input_count(200'000'000);
  // About ten seconds on one core.
  limits.set_max_search_steps(1'000'000'000);
  limits.set_max_concurrent_requests(0);  // 0: one per core.
  limits.set_max_inflight_bytes(4096 * kBytesPerMib);
  limits.set_max_concurrent_streams(100);     // Envoy's recommendation for edge servers.
  limits.set_max_metadata_bytes(8 << 10);     // gRPC's default.
  limits.set_max_option_bytes(kBytesPerMib);  // Thousands of feeds and scopes.
  return limits;
}

v1::GetCapabilitiesResponse Capabilities(const v1::Limits& limits) {
  v1::GetCapabilitiesResponse response;
  response.set_version(Version());
  for (v1::Strategy strategy : Strategies()) response.add_strategies(strategy);
  *response.mutable_limits() = limits;
  for (const HardwarePreset& preset : HardwarePresets()) {
    v1::HardwareReport& row = *response.add_hardware_presets();
    row = preset.hardware.ToReport();
    row.set_about(std::string(preset.about));
    row.set_source(absl::StrCat(preset.source, ": ", preset.says));
  }
  return response;
}

std::string Version() { return SPILLWAY_VERSION; }

}  // namespace spillway::core
