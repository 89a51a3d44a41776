#include "client_lib/text/check_trace.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/plain_text.h"
#include "rewrite_core/base/wire_reader.h"

namespace spillway::text {
namespace {

using core::WireReader;

// Field numbers of TensorFlow's config.proto (RunMetadata), step_stats.proto,
// tensor_description.proto, allocation_description.proto and tensor_shape.proto.
constexpr uint32_t kStepStats = 1;
constexpr uint32_t kDevice = 1;
constexpr uint32_t kDeviceName = 1, kDeviceNode = 2;
constexpr uint32_t kNodeName = 1, kStartUs = 2, kEndUs = 5, kMemory = 6, kOutput = 7;
constexpr uint32_t kStartNs = 13, kEndNs = 16;
constexpr uint32_t kAllocator = 1, kBytesInUse = 5, kRecords = 6;
constexpr uint32_t kRecordUs = 1, kRecordBytes = 2;
constexpr uint32_t kSlot = 1, kDescription = 3;
constexpr uint32_t kDtype = 1, kShape = 2, kAllocation = 4;
constexpr uint32_t kRequestedBytes = 1;
constexpr uint32_t kDim = 2, kUnknownRank = 3, kDimSize = 1;

// The maximum number of elements of a tensor; it bounds the product of many dimensions.
constexpr int64_t kMaxElements = int64_t{1} << 58;
// The maximum duration of a step (a year, in ns) and size of an allocation, so that sums do not
// overflow.
constexpr int64_t kMaxNs = int64_t{365} * 24 * 3600 * 1'000'000'000;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

// Bytes per element by DataType (types.proto); 0: no fixed width.
int64_t ElementBytes(uint64_t dtype) {
  constexpr int64_t kBytes[] = {0, 4, 8, 4, 1, 2,  1, 0, 8, 8, 1, 1, 1,
                                4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8, 1, 1};
  return dtype < std::size(kBytes) ? kBytes[dtype] : 0;
}

// TensorFlow's errors of a step that found no memory. Those for cuDNN's workspaces differ from
// those for tensors: NotFoundError if no engine's workspace was available when it chose one
// (AutotuneUnfusedConv), then UnknownError or InternalError (AllocateScratchOrFallback; both in
// core/kernels/conv_ops_gpu.h).
constexpr absl::string_view kOutOfMemory[] = {
    "OOM when allocating", "ResourceExhaustedError",     "RESOURCE_EXHAUSTED",
    "No algorithm worked", "allocate the scratch space", "No-scratch fallback runner"};
// More than readers need of an error with the names of its nodes.
constexpr size_t kMaxQuoted = 160;

// The first line with such an error, from there on; empty: none.
std::string OutOfMemoryLine(absl::string_view text) {
  size_t first = text.npos;
  for (const absl::string_view words : kOutOfMemory) first = std::min(first, text.find(words));
  if (first == text.npos) return "";
  text.remove_prefix(first);
  return core::PlainText(
      absl::StripAsciiWhitespace(text.substr(0, text.find('\n')).substr(0, kMaxQuoted)));
}

// `bytes`: the input, which may be the error of the step, or a log with it.
absl::Status BadTrace(absl::string_view what, absl::string_view bytes = "") {
  if (const std::string line = OutOfMemoryLine(bytes); !line.empty()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("run_metadata is no trace, but says that the step ran out of GPU memory (",
                     line,
                     "); plan for less memory (gpu_memory_bytes) or with a larger "
                     "allocator_reserve, set the variables of advice.environment, and if cuDNN "
                     "must have workspaces, count them (convolution_workspace_bytes)"),
        {{"option", "run_metadata"}});
  }
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("run_metadata ", what,
                   "; run one step with RunOptions(trace_level=RunOptions.FULL_TRACE), and write "
                   "its RunMetadata with SerializeToString()"),
      {{"option", "run_metadata"}});
}

// Returns -1 if the shape is unknown or invalid.
int64_t ElementsOf(absl::string_view shape) {
  int64_t elements = 1;
  WireReader reader(shape);
  while (reader.Next()) {
    if (reader.IsVarint(kUnknownRank) && reader.number() != 0) return -1;
    if (!reader.IsBytes(kDim)) continue;
    int64_t size = 0;
    WireReader dim(reader.bytes());
    while (dim.Next()) {
      if (dim.IsVarint(kDimSize)) size = static_cast<int64_t>(dim.number());
    }
    if (!dim.ok() || size < 0 || __builtin_mul_overflow(elements, size, &elements) ||
        elements > kMaxElements) {
      return -1;
    }
  }
  return reader.ok() ? elements : -1;
}

class Reader {
 public:
  // False if the bytes are damaged.
  bool Read(absl::string_view message) {
    std::vector<absl::string_view> devices;
    if (!Devices(message, &devices)) return false;
    for (absl::string_view device : devices) {
      if (!ReadDevice(device)) return false;
    }
    if (first_ns_ >= 0) trace_.step_ns = std::max<int64_t>(0, last_ns_ - first_ns_);
    return true;
  }

  CheckTrace Take() { return std::move(trace_); }

 private:
  // Reads the DeviceStepStats of a RunMetadata or of a StepStats. The first field of a StepStats
  // holds messages that begin with a device's name, `/...`, which is not a message.
  static bool Devices(absl::string_view message, std::vector<absl::string_view>* devices) {
    std::vector<absl::string_view> outer;
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.IsBytes(kStepStats)) outer.push_back(reader.bytes());
    }
    if (!reader.ok()) return false;
    bool is_run_metadata = true;
    for (absl::string_view step_stats : outer) {
      WireReader inner(step_stats);
      while (inner.Next()) {
        if (!inner.IsBytes(kDevice)) continue;
        is_run_metadata &= !absl::StartsWith(inner.bytes(), "/");
        devices->push_back(inner.bytes());
      }
      is_run_metadata &= inner.ok();
    }
    if (!is_run_metadata || devices->empty()) *devices = std::move(outer);
    return true;
  }

  bool ReadDevice(absl::string_view message) {
    absl::string_view name;
    std::vector<absl::string_view> nodes;
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.IsBytes(kDeviceName)) name = reader.bytes();
      if (reader.IsBytes(kDeviceNode)) nodes.push_back(reader.bytes());
    }
    if (!reader.ok()) return false;
    // Devices for a GPU's streams, copies and waits repeat kernels of nodes in the GPU's own
    // entries.
    const bool own = !absl::StrContains(name, "/stream:") && !absl::StrContains(name, "memcpy") &&
                     !absl::EndsWith(name, "/sync");
    if (own) trace_.devices.push_back(name);
    records_.clear();
    for (absl::string_view node : nodes) {
      if (!ReadNode(node, name, own)) return false;
    }
    if (own && !records_.empty()) TakeRecords(name);
    return true;
  }

  bool ReadNode(absl::string_view message, absl::string_view device, bool own) {
    absl::string_view name;
    int64_t start_us = 0, end_us = 0, start_ns = 0, end_ns = 0;
    CheckTrace::Node node{device, absl::nullopt};
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.IsBytes(kNodeName)) name = reader.bytes();
      if (reader.IsVarint(kStartUs)) start_us = static_cast<int64_t>(reader.number());
      if (reader.IsVarint(kEndUs)) end_us = static_cast<int64_t>(reader.number());
      if (reader.IsVarint(kStartNs)) start_ns = static_cast<int64_t>(reader.number());
      if (reader.IsVarint(kEndNs)) end_ns = static_cast<int64_t>(reader.number());
      if (!own) continue;
      if (reader.IsBytes(kMemory) && !ReadMemory(reader.bytes(), device)) return false;
      if (reader.IsBytes(kOutput) && !ReadOutput(reader.bytes(), &node)) return false;
    }
    if (!reader.ok()) return false;
    if (own) trace_.nodes[name] = node;
    // Since the epoch; a node's end is relative to its start.
    const int64_t start =
        start_ns > 0
            ? start_ns
            : std::clamp<int64_t>(start_us, 0, std::numeric_limits<int64_t>::max() / 2000) * 1000;
    const int64_t length = std::clamp<int64_t>(
        start_ns > 0 ? end_ns : std::clamp<int64_t>(end_us, 0, kMaxNs / 1000) * 1000, 0, kMaxNs);
    if (start <= 0 || start > std::numeric_limits<int64_t>::max() - kMaxNs) return true;
    first_ns_ = first_ns_ < 0 ? start : std::min(first_ns_, start);
    last_ns_ = std::max(last_ns_, start + length);
    trace_.spans.push_back({device, name, start, start + length});
    return true;
  }

  bool ReadMemory(absl::string_view message, absl::string_view device) {
    absl::string_view allocator;
    int64_t in_use = 0;
    std::vector<Record> records;
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.IsBytes(kAllocator)) allocator = reader.bytes();
      if (reader.IsVarint(kBytesInUse)) in_use = static_cast<int64_t>(reader.number());
      if (!reader.IsBytes(kRecords)) continue;
      Record record{0, 0};
      WireReader fields(reader.bytes());
      while (fields.Next()) {
        if (fields.IsVarint(kRecordUs)) record.time_us = static_cast<int64_t>(fields.number());
        if (fields.IsVarint(kRecordBytes)) {
          record.bytes = std::clamp(static_cast<int64_t>(fields.number()), -kMaxBytes, kMaxBytes);
        }
      }
      if (!fields.ok()) return false;
      records.push_back(record);
    }
    if (!reader.ok()) return false;
    // A GPU's ops also allocate host memory (`cpu`, `gpu_host_bfc`), which is not part of the GPU's
    // usage.
    if (absl::StrContains(device, "GPU:") &&
        (absl::StrContains(allocator, "host") || absl::StrContains(allocator, "cpu"))) {
      return true;
    }
    records_.insert(records_.end(), records.begin(), records.end());
    if (in_use > 0) {
      int64_t& peak = trace_.in_use_peak_bytes[device];
      peak = std::max(peak, in_use);
    }
    return true;
  }

  static bool ReadOutput(absl::string_view message, CheckTrace::Node* node) {
    uint64_t slot = 0;
    absl::optional<absl::string_view> description;
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.IsVarint(kSlot)) slot = reader.number();
      if (reader.IsBytes(kDescription)) description = reader.bytes();
    }
    if (!reader.ok()) return false;
    if (slot != 0 || !description.has_value()) return true;
    uint64_t dtype = 0;
    int64_t elements = 1;
    absl::optional<int64_t> requested;
    WireReader fields(*description);
    while (fields.Next()) {
      if (fields.IsVarint(kDtype)) dtype = fields.number();
      if (fields.IsBytes(kShape)) elements = ElementsOf(fields.bytes());
      if (!fields.IsBytes(kAllocation)) continue;
      requested = 0;
      WireReader allocation(fields.bytes());
      while (allocation.Next()) {
        if (allocation.IsVarint(kRequestedBytes)) {
          requested = std::clamp<int64_t>(static_cast<int64_t>(allocation.number()), 0, kMaxBytes);
        }
      }
      if (!allocation.ok()) return false;
    }
    if (!fields.ok()) return false;
    // The buffer may be larger than the tensor, which may be a part of another one.
    if (ElementBytes(dtype) > 0 && elements >= 0) {
      node->output_bytes = elements * ElementBytes(dtype);
    } else if (requested.has_value()) {
      node->output_bytes = requested;
    }
    return true;
  }

  // The peak is a lower bound, since deallocations are counted first.
  void TakeRecords(absl::string_view device) {
    std::sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) {
      return std::pair(a.time_us, a.bytes) < std::pair(b.time_us, b.bytes);
    });
    int64_t held = 0, peak = 0;
    for (const Record& record : records_) {
      if (__builtin_add_overflow(held, record.bytes, &held)) break;
      peak = std::max(peak, held);
    }
    trace_.allocated_peak_bytes[device] = peak;
    trace_.records[device] = std::move(records_);
  }

  using Record = CheckTrace::Record;

  CheckTrace trace_;
  int64_t first_ns_ = -1;
  int64_t last_ns_ = 0;
  std::vector<Record> records_;  // For the device being read.
};

}  // namespace

absl::StatusOr<CheckTrace> ReadCheckTrace(absl::string_view run_metadata) {
  if (run_metadata.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return BadTrace("has more than 2 GiB, more than a message may have");
  }
  Reader reader;
  if (!reader.Read(run_metadata)) return BadTrace("is damaged, or another message", run_metadata);
  CheckTrace trace = reader.Take();
  if (trace.nodes.empty()) return BadTrace("holds no step", run_metadata);
  return trace;
}

}  // namespace spillway::text
