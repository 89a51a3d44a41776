#include "rewrite_core/analysis/machine/profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

// Field numbers of tensorflow/core/framework/{step_stats,tensor_description,allocation_description}
// .proto and of RunMetadata (config.proto).
constexpr uint32_t kRunMetadataStepStats = 1;
constexpr uint32_t kStepStatsDevice = 1;
constexpr uint32_t kDeviceName = 1;
constexpr uint32_t kDeviceNode = 2;
constexpr uint32_t kNodeName = 1;
constexpr uint32_t kOpStartRelMicros = 3;
constexpr uint32_t kOpEndRelMicros = 4;
constexpr uint32_t kAllEndRelMicros = 5;
constexpr uint32_t kNodeMemory = 6;
constexpr uint32_t kNodeOutput = 7;
constexpr uint32_t kOpStartRelNanos = 14;
constexpr uint32_t kOpEndRelNanos = 15;
constexpr uint32_t kAllEndRelNanos = 16;
constexpr uint32_t kOutputSlot = 1;
constexpr uint32_t kOutputTensor = 3;
constexpr uint32_t kTensorAllocation = 4;
constexpr uint32_t kAllocatorName = 1;
constexpr uint32_t kPeakBytes = 3;
constexpr uint32_t kLiveBytes = 4;
constexpr uint32_t kRequestedBytes = 1;
constexpr uint32_t kAllocatedBytes = 2;

// The maximum time of a node in one step (100 s), so that sums fit in 63 bits.
constexpr int64_t kMaxNs = 100'000'000'000;
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

absl::Status BadProfile(absl::string_view what) {
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat("profile ", what,
                                   "; give a serialized RunMetadata or StepStats of a run of this "
                                   "graph, with trace_level FULL_TRACE"),
                      {{"option", "profile"}});
}

struct DeviceEntry {
  absl::string_view name;
  absl::string_view bytes;
};

// The next field; false also if stopped.
bool NextPolled(WireReader* reader, StopPoller* poll) { return !poll->Tick() && reader->Next(); }

// Reads the devices of a StepStats; false if it is not one.
bool ReadDevices(absl::string_view step_stats, StopPoller* poll,
                 std::vector<DeviceEntry>* devices) {
  devices->clear();
  WireReader reader(step_stats);
  while (NextPolled(&reader, poll)) {
    if (!reader.IsBytes(kStepStatsDevice)) return false;
    DeviceEntry device{{}, reader.bytes()};
    WireReader fields(device.bytes);
    while (NextPolled(&fields, poll)) {
      if (fields.IsBytes(kDeviceName)) device.name = fields.bytes();
    }
    if (!fields.ok() || device.name.empty()) return false;
    devices->push_back(device);
  }
  return reader.ok() && !devices->empty();
}

// Parses RunMetadata, whose first field is a StepStats, or a StepStats. A device's name begins with
// `/`, which is not a valid message, so the two cannot be confused.
bool FindDevices(absl::string_view bytes, StopPoller* poll, std::vector<DeviceEntry>* devices) {
  WireReader reader(bytes);
  absl::string_view step_stats;
  while (NextPolled(&reader, poll)) {
    if (reader.IsBytes(kRunMetadataStepStats)) step_stats = reader.bytes();
  }
  if (reader.ok() && !step_stats.empty() && ReadDevices(step_stats, poll, devices)) return true;
  return ReadDevices(bytes, poll, devices);
}

struct NodeEntry {
  absl::string_view name;
  int64_t ns = 0;
};

bool ReadNode(absl::string_view bytes, StopPoller* poll, NodeEntry* node) {
  WireReader reader(bytes);
  uint64_t start_us = 0, end_us = 0, all_us = 0, start_ns = 0, end_ns = 0, all_ns = 0;
  while (NextPolled(&reader, poll)) {
    if (reader.IsBytes(kNodeName)) node->name = reader.bytes();
    if (reader.IsVarint(kOpStartRelMicros)) start_us = reader.number();
    if (reader.IsVarint(kOpEndRelMicros)) end_us = reader.number();
    if (reader.IsVarint(kAllEndRelMicros)) all_us = reader.number();
    if (reader.IsVarint(kOpStartRelNanos)) start_ns = reader.number();
    if (reader.IsVarint(kOpEndRelNanos)) end_ns = reader.number();
    if (reader.IsVarint(kAllEndRelNanos)) all_ns = reader.number();
  }
  // Negative numbers are not times: the estimate remains.
  constexpr uint64_t kNegative = uint64_t{1} << 63;
  if (((start_us | end_us | all_us | start_ns | end_ns | all_ns) & kNegative) != 0) {
    node->ns = kNotMeasured;
    return reader.ok();
  }
  const auto between = [](uint64_t start, uint64_t end, uint64_t all) -> uint64_t {
    if (end == 0) return all;
    return end > start ? end - start : 0;
  };
  const uint64_t ns = between(start_ns, end_ns, all_ns);
  const uint64_t us = between(start_us, end_us, all_us);
  constexpr uint64_t kMaxUs = kMaxNs / 1000;
  node->ns = static_cast<int64_t>(ns != 0 ? std::min<uint64_t>(ns, kMaxNs)
                                          : std::min<uint64_t>(us, kMaxUs) * 1000);
  return reader.ok();
}

// Nodes added by TensorFlow's partitioning and its clients: `_SOURCE`, `_Send...`, `x/_12`, copies.
bool IsAdded(absl::string_view name) {
  if (name.empty() || name[0] == '_' || absl::StartsWith(name, "MEMCPY") ||
      absl::StartsWith(name, "edge_") || absl::StartsWithIgnoreCase(name, "memset")) {
    return true;
  }
  const size_t mark = name.rfind("/_");
  if (mark == absl::string_view::npos || mark + 2 == name.size()) return false;
  const absl::string_view number = name.substr(mark + 2);
  return std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

// How to use an entry's times; if a node has two kinds, the later kind counts.
enum class Source : uint8_t { kNone, kDevice, kStream, kAllStreams };

Source SourceOf(absl::string_view device) {
  // Copies: `/device:GPU:0/memcpy`, and `/device:GPU:0/stream:14<MemcpyD2H>`; waits of the host:
  // `/device:GPU:0/sync` (TensorFlow 2, ConvertGpuXSpaceToStepStats in xplane_to_step_stats.cc).
  if (absl::StrContains(absl::AsciiStrToLower(device), "memcpy") ||
      absl::EndsWith(device, "/sync")) {
    return Source::kNone;
  }
  if (absl::StrContains(device, "/stream:all")) return Source::kAllStreams;
  if (absl::StrContains(device, "/stream:")) return Source::kStream;
  return Source::kDevice;
}

}  // namespace

class ProfileReader {
 public:
  ProfileReader(const Graph& graph, const StopToken& stop)
      : graph_(graph), stop_(stop), poll_(stop) {
    profile_.duration_ns_.assign(graph.num_nodes(), kNotMeasured);
    profile_.workspace_bytes_.assign(graph.num_nodes(), kNotMeasured);
    source_.assign(graph.num_nodes(), Source::kNone);
    device_.assign(graph.num_nodes(), -1);
  }

  absl::StatusOr<Profile> Read(absl::string_view bytes) {
    if (bytes.size() > static_cast<size_t>(kMaxMessageBytes)) {
      return BadProfile(absl::StrCat("has ", bytes.size(), " bytes, more than a message may have"));
    }
    std::vector<DeviceEntry> devices;
    const bool has_devices = FindDevices(bytes, &poll_, &devices);
    if (absl::Status s = stop_.status("profile"); !s.ok()) return s;
    if (!has_devices) {
      return BadProfile("is neither a RunMetadata with step_stats nor a StepStats");
    }
    for (size_t i = 0; i < devices.size(); ++i) {
      if (poll_.Tick()) return stop_.status("profile");
      const Source source = SourceOf(devices[i].name);
      if (source == Source::kNone) continue;
      is_gpu_ = absl::StrContains(absl::AsciiStrToLower(devices[i].name), "gpu:");
      WireReader reader(devices[i].bytes);
      while (reader.Next()) {
        if (poll_.Tick()) return stop_.status("profile");
        if (!reader.IsBytes(kDeviceNode)) continue;
        const bool is_read = AddNode(reader.bytes(), source, static_cast<int>(i));
        if (absl::Status s = stop_.status("profile"); !s.ok()) return s;
        if (!is_read) {
          return BadProfile(
              absl::StrCat("is damaged at a node of device ", Quoted(devices[i].name)));
        }
      }
    }
    if (known_ + unknown_ == 0) return BadProfile("has no times of nodes");
    if (known_ < unknown_) {
      return InvalidError(
          v1::ERROR_REASON_BAD_OPTION,
          absl::StrCat("profile belongs to another graph: of ", known_ + unknown_,
                       " entries, only ", known_, " are of nodes of this graph, and ",
                       Quoted(first_unknown_), " is not; give a profile of this graph, or none"),
          {{"option", "profile"}, {"node", first_unknown_}});
    }
    return std::move(profile_);
  }

 private:
  bool AddNode(absl::string_view bytes, Source source, int device) {
    NodeEntry entry;
    if (!ReadNode(bytes, &poll_, &entry)) return false;
    // `node:Op` on streams; node names contain no colon.
    const absl::string_view name = entry.name.substr(0, entry.name.find(':'));
    const NodeId id = graph_.Find(name);
    if (id == kNoNode) {
      if (IsAdded(name)) return true;
      if (unknown_++ == 0) first_unknown_ = name;
      return true;
    }
    ++known_;
    if (!AddWorkspace(bytes, id)) return false;
    if (entry.ns == kNotMeasured) return AddOutputs(bytes, id);
    if (source != source_[id] ? source > source_[id] : device_[id] == device) {
      int64_t& ns = profile_.duration_ns_[id];
      const bool first = source != source_[id] || ns == kNotMeasured;
      ns = std::min(kMaxNs, (first ? 0 : ns) + entry.ns);
      source_[id] = source;
      device_[id] = device;
    }
    return AddOutputs(bytes, id);
  }

  bool AddWorkspace(absl::string_view bytes, NodeId id) {
    WireReader reader(bytes);
    while (NextPolled(&reader, &poll_)) {
      if (!reader.IsBytes(kNodeMemory)) continue;
      absl::string_view allocator;
      uint64_t peak = 0, live = 0;
      WireReader memory(reader.bytes());
      while (NextPolled(&memory, &poll_)) {
        if (memory.IsBytes(kAllocatorName)) allocator = memory.bytes();
        if (memory.IsVarint(kPeakBytes)) peak = memory.number();
        if (memory.IsVarint(kLiveBytes)) live = memory.number();
      }
      if (!memory.ok()) return false;
      if (is_gpu_ && !absl::StartsWith(allocator, "GPU_")) continue;
      if (peak > kMaxBytes || live > peak) continue;
      int64_t& workspace = profile_.workspace_bytes_[id];
      workspace = std::max(workspace, static_cast<int64_t>(peak - live));
    }
    return reader.ok();
  }

  bool AddOutputs(absl::string_view bytes, NodeId id) {
    WireReader reader(bytes);
    while (NextPolled(&reader, &poll_)) {
      if (!reader.IsBytes(kNodeOutput)) continue;
      uint64_t slot = 0;
      uint64_t requested = 0, allocated = 0;
      WireReader output(reader.bytes());
      while (NextPolled(&output, &poll_)) {
        if (output.IsVarint(kOutputSlot)) slot = output.number();
        if (!output.IsBytes(kOutputTensor)) continue;
        WireReader tensor(output.bytes());
        while (NextPolled(&tensor, &poll_)) {
          if (!tensor.IsBytes(kTensorAllocation)) continue;
          WireReader allocation(tensor.bytes());
          while (NextPolled(&allocation, &poll_)) {
            if (allocation.IsVarint(kRequestedBytes)) requested = allocation.number();
            if (allocation.IsVarint(kAllocatedBytes)) allocated = allocation.number();
          }
          if (!allocation.ok()) return false;
        }
        if (!tensor.ok()) return false;
      }
      if (!output.ok()) return false;
      const uint64_t size = allocated != 0 ? allocated : requested;
      if (size == 0 || size > kMaxBytes || slot > std::numeric_limits<int32_t>::max()) continue;
      int64_t& held = profile_.allocated_[Profile::Key({id, static_cast<int32_t>(slot)})];
      held = std::max(held, static_cast<int64_t>(size));
    }
    return reader.ok();
  }

  const Graph& graph_;
  const StopToken& stop_;
  StopPoller poll_;
  Profile profile_;
  std::vector<Source> source_;  // Per node: where its time comes from,
  std::vector<int> device_;     // and of which device's entry.
  bool is_gpu_ = false;         // Whether the current device is a GPU.
  int64_t known_ = 0;
  int64_t unknown_ = 0;
  absl::string_view first_unknown_;
};

absl::StatusOr<Profile> Profile::Read(absl::string_view bytes, const Graph& graph,
                                      const StopToken& stop) {
  return ProfileReader(graph, stop).Read(bytes);
}

}  // namespace spillway::core
