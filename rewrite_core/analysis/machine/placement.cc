#include "rewrite_core/analysis/machine/placement.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {
namespace {

struct OpsRow {
  absl::string_view ops;
};
// Ops without a GPU kernel, besides those whose outputs are strings. The copying ops have only a
// GPU kernel, but represent the host side between two copies, like a swap's Identity.
constexpr OpsRow kHostOps[] = {
    // Fed, or read from outside.
    {"Placeholder PlaceholderV2 _Arg OneShotIterator Iterator IteratorV2 IteratorGetNext "
     "IteratorGetNextSync IteratorGetNextAsOptional MakeIterator AnonymousIterator "
     "AnonymousIteratorV2 AnonymousIteratorV3 IteratorFromStringHandle IteratorFromStringHandleV2 "
     "MultiDeviceIterator MultiDeviceIteratorInit MultiDeviceIteratorGetNextFromShard"},
    // Files and checkpoints.
    {"Restore RestoreSlice RestoreV2 Save SaveSlices SaveV2 MergeV2Checkpoints WriteFile "
     "CheckpointExists"},
    // Strings and parsing.
    {"StringToNumber StringToHashBucket StringToHashBucketFast StringToHashBucketStrong "
     "StringLength "
     "StringEqual StaticRegexFullMatch RegexFullMatch DecodeRaw DecodePaddedRaw DecodeCSV "
     "DecodeJpeg "
     "DecodeAndCropJpeg DecodePng DecodeGif DecodeBmp DecodeImage DecodeWav ParseExample "
     "ParseExampleV2 ParseSingleExample ParseSequenceExample ParseSequenceExampleV2 ParseTensor "
     "ExtractJpegShape UnicodeDecode UnicodeDecodeWithOffsets"},
    // Program code, messages, checks.
    {"PyFunc PyFuncStateless EagerPyFunc Print PrintV2 Assert LogicalAssert Abort"},
    // Random orders and samplers.
    {"RandomShuffle LogUniformCandidateSampler UniformCandidateSampler "
     "LearnedUnigramCandidateSampler FixedUnigramCandidateSampler AllCandidateSampler "
     "ComputeAccidentalHits"},
    {"_CopyFromGpuToHost _CopyFromHostToGpu"},
};
// The same by part of the name.
constexpr absl::string_view kHostOpParts[] = {"Dataset",   "Queue",   "Reader", "LookupTable",
                                              "HashTable", "Summary", "Barrier"};

// Ops that run functions, whose nodes TensorFlow places one by one.
constexpr OpsRow kCalls[] = {
    {"PartitionedCall StatefulPartitionedCall If StatelessIf Case StatelessCase While "
     "StatelessWhile"}};

// Kernels that keep int32 or other inputs in another memory than their type implies.
struct MemoryRow {
  absl::string_view ops;
  bool int32_outputs_on_gpu;
  uint32_t host_inputs;
  uint32_t int32_inputs_on_gpu;
};
constexpr MemoryRow kMemoryRows[] = {
    {"Switch RefSwitch _SwitchN", false, InputBit(1), 0},
    {"LoopCond If StatelessIf Case StatelessCase", false, InputBit(0), 0},
    {"Cast OneHot Where", true, 0, InputBit(0)},
    {"ArgMax ArgMin TopK TopKV2 RandomUniformInt StatelessRandomUniformInt "
     "StatelessRandomUniformIntV2 Multinomial StatelessMultinomial Bucketize",
     true, 0, 0},
    {"Gather GatherV2 GatherNd ResourceGather ResourceGatherNd", true, 0, InputBit(1)},
    {"SparseSoftmaxCrossEntropyWithLogits InTopK InTopKV2 UnsortedSegmentSum UnsortedSegmentMax "
     "UnsortedSegmentMin UnsortedSegmentProd SegmentSum SegmentMean ScatterAdd ScatterSub "
     "ScatterUpdate ScatterMul ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate "
     "TensorScatterUpdate TensorScatterAdd",
     false, 0, InputBit(1)},
    {"ScatterNd", false, 0, InputBit(0)},
    {"SparseApplyMomentum SparseApplyAdagrad ResourceSparseApplyAdagrad "
     "ResourceSparseApplyMomentum "
     "ResourceSparseApplyKerasMomentum",
     false, 0, InputBit(3) | InputBit(4)},
};

bool IsHostOp(const OpInfo& info, absl::string_view op) {
  for (absl::string_view word : absl::StrSplit(info.outputs, ' ', absl::SkipEmpty())) {
    if (word == "string") return true;
  }
  for (absl::string_view part : kHostOpParts) {
    if (absl::StrContains(op, part)) return true;
  }
  return false;
}

// Whether a GPU has kernels for variables of this type.
bool MayVariableBeOnGpu(DataType dtype) {
  return dtype != kDtInt32 && dtype != kDtString &&
         (dtype <= kDtInt64 || dtype == kDtHalf || dtype == kDtBfloat16 || dtype == kDtVariant);
}

bool IsGpuType(const DeviceName& name) { return !name.type.empty() && name.type != "CPU"; }

// The job of parameter servers, as TensorFlow's strategies and device setters name it: they have
// CPUs alone, unless the graph names a GPU of theirs.
constexpr absl::string_view kServerJob = "ps";

// A graph with more device strings than this spells equal ones alike, or is not genuine.
constexpr size_t kMaxCompared = 1024;

bool SameTask(const DeviceName& a, const DeviceName& b) {
  const auto agree = [](const std::string& x, const std::string& y) {
    return x.empty() || y.empty() || x == y;
  };
  return agree(a.job, b.job) && agree(a.replica, b.replica) && agree(a.task, b.task);
}

}  // namespace

absl::Status Placement::FindDevices(const StopToken& stop) {
  const int32_t count = graph_->num_devices();
  StopPoller poll(stop);
  std::vector<DeviceName> names;
  // GPU device strings by type and index: only those with the same may name the same device.
  absl::flat_hash_map<std::string, std::vector<DeviceId>> alike;
  std::vector<DeviceId> gpus;
  for (DeviceId i(0); i < count; ++i) {
    if (poll.Tick()) return stop.status("placement");
    names.push_back(ParseDeviceName(graph_->device_name(i)));
    if (IsGpuType(names[i]) && gpus.size() < kMaxCompared) gpus.push_back(i);
  }
  const auto is_of_servers = [](const DeviceName& name) { return name.job == kServerJob; };
  const bool servers_have_gpu = std::any_of(
      gpus.begin(), gpus.end(), [&](DeviceId gpu) { return is_of_servers(names[gpu]); });
  by_device_id_.assign(count, kHostPlace);
  for (DeviceId i(0); i < count; ++i) {
    if (names[i].type == "CPU") continue;
    if (names[i].type.empty() && is_of_servers(names[i]) && !servers_have_gpu) continue;
    // The device that the string stands for: itself, or without a type the first GPU that it may
    // mean.
    DeviceId meant = i;
    if (names[i].type.empty()) {
      int64_t lowest = std::numeric_limits<int64_t>::max();
      for (DeviceId gpu : gpus) {
        if (poll.Tick()) return stop.status("placement");
        int64_t index = 0;
        if (!absl::SimpleAtoi(names[gpu].index, &index)) index = 0;
        if (index >= lowest || !SameTask(names[i], names[gpu])) continue;
        lowest = index;
        meant = gpu;
      }
    }
    std::vector<DeviceId>& same_kind =
        alike[absl::StrCat(names[meant].type, ":", names[meant].index)];
    DeviceId known(-1);
    for (DeviceId other : same_kind) {
      if (poll.Tick()) return stop.status("placement");
      // Strings without a type name nothing, and are kept separate.
      if (other == meant || NamesDevice(names[other], names[meant])) known = other;
      if (known >= 0) break;
    }
    if (known >= 0) {
      by_device_id_[i] = by_device_id_[meant] = by_device_id_[known];
      continue;
    }
    by_device_id_[i] = by_device_id_[meant] = Place(devices_.size());
    devices_.emplace_back(graph_->device_name(meant));
    if (same_kind.size() < kMaxCompared) same_kind.push_back(meant);
  }
  return absl::OkStatus();
}

Place Placement::Resolve(absl::string_view device) const {
  for (DeviceId i(0); i < graph_->num_devices(); ++i) {
    if (graph_->device_name(i) == device) return by_device_id_[i];
  }
  if (IsCpuDevice(device)) return kHostPlace;
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(devices_.size()); ++gpu) {
    if (NamesDevice(device, devices_[gpu])) return gpu;
  }
  return kHostPlace;
}

Place Placement::HomeOfVariable(NodeId id) const {
  const absl::Span<const Tensor> inputs = graph_->inputs(id);
  if (inputs.empty() || inputs[0].is_control() || IsBackEdge(*graph_, inputs[0].node, id)) {
    return kNoMemory;
  }
  const OutputType type = shapes_->type(inputs[0]);
  return type.is_ref || type.dtype == kDtResource ? place_[inputs[0].node] : kNoMemory;
}

absl::StatusOr<Placement> Placement::Find(const Graph& graph, const Topology& topology,
                                          const Shapes& shapes, const StopToken& stop) {
  Placement placement(graph, shapes);
  if (absl::Status status = placement.FindDevices(stop); !status.ok()) return status;
  const auto host_rows = RowsByOp(graph, kHostOps);
  const auto calls = RowsByOp(graph, kCalls);
  const auto memory_rows = RowsByOp(graph, kMemoryRows);
  std::vector<bool> is_variable(graph.num_ops());
  // Ops that run where the variable is, regardless of their device
  // (EnsureCompatibilityAcrossResourceEdge in TensorFlow's colocation_graph.cc).
  std::vector<bool> writes_ref(graph.num_ops()), takes_handle(graph.num_ops());
  placement.rules_.resize(graph.num_ops());
  std::vector<bool> seen(graph.num_ops(), false);
  placement.place_.assign(graph.num_nodes(), kHostPlace);
  StopPoller poll(stop);
  for (NodeId id : topology.order()) {
    if (poll.Tick()) return stop.status("placement");
    const int32_t op = graph.op_id(id);
    OpRule& rule = placement.rules_[op];
    if (!seen[op]) {
      seen[op] = true;
      const OpInfo& info = graph.op_info(id);
      is_variable[op] = IsVariableOp(graph.op(id));
      writes_ref[op] = absl::StrContains(info.outputs, '&');
      takes_handle[op] = TakesVariable(graph.op(id)) || ForwardsHandle(graph.op(id));
      rule.on_host = host_rows[op] != nullptr || IsHostOp(info, graph.op(id));
      rule.host_outputs = info.host_outputs || info.control_flow == ControlFlow::kLoopCond;
      if (const MemoryRow* row = memory_rows[op]) {
        rule.int32_on_device = row->int32_outputs_on_gpu;
        rule.host_inputs = row->host_inputs;
        rule.int32_inputs_gpu = row->int32_inputs_on_gpu;
      }
    }
    Place place = placement.by_device_id_[graph.device_id(id)];
    if (const Place home = placement.HomeOfVariable(id); home != kNoMemory) {
      const bool is_ref = shapes.type(graph.inputs(id)[0]).is_ref;
      const bool follows = is_ref ? writes_ref[op] : takes_handle[op];
      const bool is_free = graph.device(id).empty() && calls[op] == nullptr;
      if (follows || (is_free && home == kHostPlace)) place = home;
    }
    if (place == kHostPlace) continue;
    const DataType captured = shapes.captured_variable(id);
    if (captured == kDtInvalid && (rule.on_host || shapes.IsFed(id))) {
      place = kHostPlace;
    } else if (is_variable[op] || captured != kDtInvalid) {
      DataType dtype = captured != kDtInvalid ? captured : shapes.type({id, 0}).dtype;
      if (dtype == kDtResource) {
        const auto held = graph.attr(id, "dtype");
        dtype = held ? AttrType(*held) : kDtInvalid;
      }
      if (!MayVariableBeOnGpu(dtype)) place = kHostPlace;
    }
    placement.place_[id] = place;
  }
  return placement;
}

Place Placement::output(Tensor tensor) const {
  const OutputType type = shapes_->type(tensor);
  if (type.dtype == kDtResource || type.dtype == kDtVariant) return kNoMemory;
  const Place place = place_[tensor.node];
  if (place == kHostPlace || type.dtype == kDtString) return kHostPlace;
  const OpRule& rule = rules_[graph_->op_id(tensor.node)];
  if (rule.host_outputs) return kHostPlace;
  return type.dtype == kDtInt32 && !rule.int32_on_device ? kHostPlace : place;
}

Place Placement::input(NodeId reader, int32_t index, Tensor tensor) const {
  const OutputType type = shapes_->type(tensor);
  if (type.dtype == kDtResource || type.dtype == kDtVariant) return kNoMemory;
  const Place place = place_[reader];
  if (place == kHostPlace || type.dtype == kDtString) return kHostPlace;
  const OpRule& rule = rules_[graph_->op_id(reader)];
  const uint32_t bit = index < 32 ? uint32_t{1} << index : 0;
  if (rule.host_inputs & bit) return kHostPlace;
  return type.dtype == kDtInt32 && !(rule.int32_inputs_gpu & bit) ? kHostPlace : place;
}

}  // namespace spillway::core
