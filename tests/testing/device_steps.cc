#include "tests/testing/device_steps.h"

#include <algorithm>

#include "rewrite_core/simulate/simulator.h"

namespace spillway::testing {
namespace {

template <typename Items, typename Item>
bool IsAmong(const Items& items, Item item) {
  return std::count(items.begin(), items.end(), item) > 0;
}

}  // namespace

GapSet GapsOfBits(uint32_t bits, size_t num_gaps) {
  GapSet away(num_gaps);
  for (size_t g = 0; g < num_gaps; ++g) away[g] = (bits >> g & 1) != 0;
  return away;
}

DeviceSteps::DeviceSteps(const core::Workload& workload, int device_index,
                         const std::vector<core::OpId>& whole_order)
    : w(workload), device(device_index) {
  for (core::OpId id : whole_order) {
    if (w.ops[id].device == device) order.push_back(id);
  }
  for (core::BufferId b(0); b < static_cast<int32_t>(w.buffers.size()); ++b) {
    if (w.buffers[b].device != device || w.buffers[b].resident) continue;
    for (int t = 0; t < static_cast<int>(order.size()); ++t) {
      if (UsedAt(b, t)) uses[b].push_back(t);
    }
    for (size_t i = 0; i + 1 < uses[b].size(); ++i) gaps.push_back({b, uses[b][i], uses[b][i + 1]});
    for (core::OpId id(0); id < static_cast<int32_t>(w.ops.size()); ++id) {
      if (w.ops[id].kind == core::OpKind::kCopyOut && w.reads[id][0] == b) on_host.insert(b);
      if (w.ops[id].kind == core::OpKind::kCopyIn && w.writes[id][0] == b) on_host.insert(b);
    }
  }
}

bool DeviceSteps::UsedAt(core::BufferId b, int t) const {
  return IsAmong(w.reads[order[t]], b) || IsAmong(w.writes[order[t]], b);
}

int64_t DeviceSteps::Peak(const GapSet& away) const {
  int64_t peak = 0;
  for (int t = 0; t < static_cast<int>(order.size()); ++t) peak = std::max(peak, InUse(away, t));
  return peak;
}

int64_t DeviceSteps::InUse(const GapSet& away, int t) const {
  const core::OpId id = order[t];
  int64_t bytes = core::AllocatedBytes(w.ops[id].workspace_bytes);
  for (const core::WorkloadBuffer& b : w.buffers) {
    if (b.device == device && b.resident) bytes += core::AllocatedBytes(b.bytes);
  }
  std::set<core::BufferId> there;
  for (const auto& [b, at] : uses) {
    if (IsAmong(at, t)) there.insert(b);
  }
  for (size_t g = 0; g < gaps.size(); ++g) {
    if (gaps[g].from < t && t < gaps[g].to && !away[g]) there.insert(gaps[g].buffer);
  }
  // An input whose original has no further readers: all later ops read a copy.
  std::set<core::BufferId> taken;
  for (size_t i = 0; i < w.reuses[id].size(); ++i) {
    const core::BufferId input = w.reuses[id][i];
    if (input < 0 || w.buffers[input].resident || taken.count(input) > 0) continue;
    const core::BufferId output = w.writes[id][i];
    if (w.buffers[input].device != device || w.buffers[output].device != device ||
        w.buffers[input].bytes != w.buffers[output].bytes) {
      continue;
    }
    bool free = true;
    for (size_t g = 0; g < gaps.size(); ++g) {
      if (gaps[g].buffer == input && gaps[g].from == t && !away[g]) free = false;
    }
    if (!free) continue;
    taken.insert(input);
    bytes -= core::AllocatedBytes(w.buffers[output].bytes);
  }
  for (core::BufferId b : there) bytes += core::AllocatedBytes(w.buffers[b].bytes);
  return bytes;
}

int64_t DeviceSteps::BytesOut(const GapSet& away) const {
  std::set<core::BufferId> out;
  for (size_t g = 0; g < gaps.size(); ++g) {
    if (away[g] && on_host.count(gaps[g].buffer) == 0) out.insert(gaps[g].buffer);
  }
  int64_t bytes = 0;
  for (core::BufferId b : out) bytes += w.buffers[b].bytes;
  return bytes;
}

int64_t DeviceSteps::BytesIn(const GapSet& away) const {
  int64_t bytes = 0;
  for (size_t g = 0; g < gaps.size(); ++g) {
    if (away[g]) bytes += w.buffers[gaps[g].buffer].bytes;
  }
  return bytes;
}

}  // namespace spillway::testing
