#include "rewrite_core/inspect/inspect.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/inline/step_graph.h"
#include "rewrite_core/inspect/tensor_list.h"
#include "rewrite_core/report/tensor_summary.h"

namespace spillway::core {
namespace {

constexpr char kInspectStage[] = "inspect";
constexpr int32_t kDefaultLargestTensorCount = 10;

bool IsOneOf(absl::string_view op, std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsPlaceholder(absl::string_view op) {
  return IsOneOf(op, {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"});
}

bool IsUpdate(absl::string_view op) {
  const Write write = WriteOf(op);
  return write == Write::kOptimizer || write == Write::kPlain;
}

// False if stopped. Pointers are sorted, as messages are expensive to move.
template <typename Count>
bool SortMostFirst(google::protobuf::RepeatedPtrField<Count>* counts, StopPoller* poll) {
  return PolledSort(
      counts->pointer_begin(), counts->pointer_end(),
      [](const Count* a, const Count* b) { return a->count() > b->count(); }, poll);
}

using NameCounts = google::protobuf::RepeatedPtrField<v1::NameCount>;

void AddCount(absl::string_view name, int64_t count, NameCounts* counts) {
  v1::NameCount* entry = counts->Add();
  entry->set_name(std::string(name));
  entry->set_count(count);
}

// Collects the summary of one graph.
class Inspector {
 public:
  Inspector(const StepGraph& step_graph, const v1::InspectOptions& options, const StopToken& stop)
      : file_(step_graph.file()), graph_(step_graph.graph()), options_(options), stop_(stop) {
    if (step_graph.has_calls()) *summary_.mutable_inlining() = step_graph.inlining();
  }

  absl::StatusOr<v1::GraphSummary> Run() {
    summary_.set_size_bytes(static_cast<int64_t>(file_.bytes().size()));
    summary_.set_node_count(graph_.num_nodes());
    for (auto step : {&Inspector::ReadOtherFields, &Inspector::CountNodes,
                      &Inspector::DescribeOrder, &Inspector::DescribeTensors}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    if (!DescribeOps()) return stop_.status(kInspectStage);
    return std::move(summary_);
  }

  // The graph's shapes, once Run has succeeded.
  const Shapes& shapes() const { return *shapes_; }

 private:
  // The contents of the file besides nodes.
  absl::Status ReadOtherFields() {
    StopPoller poll(stop_);
    WireReader reader(graph_.bytes());
    while (reader.Next()) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      if (reader.IsBytes(graph_def::kVersions)) ReadVersions(reader.bytes());
      if (!reader.IsBytes(graph_def::kLibrary)) continue;
      WireReader library(reader.bytes());
      while (library.Next()) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        if (!library.IsBytes(library_def::kFunction)) continue;
        if (absl::Status status = ReadFunction(library.bytes()); !status.ok()) return status;
      }
      if (!library.ok()) return BadLibrary();
    }
    return absl::OkStatus();
  }

  void ReadVersions(absl::string_view versions) {
    WireReader reader(versions);
    while (reader.Next()) {
      const auto value = static_cast<int32_t>(reader.number());
      if (reader.IsVarint(version_def::kProducer)) summary_.set_producer_version(value);
      if (reader.IsVarint(version_def::kMinConsumer)) summary_.set_min_consumer_version(value);
    }
  }

  absl::Status ReadFunction(absl::string_view function) {
    v1::FunctionSummary* entry = summary_.add_functions();
    int64_t node_count = 0;
    StopPoller poll(stop_);
    WireReader reader(function);
    while (reader.Next()) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      if (reader.IsBytes(function_def::kNode)) ++node_count;
      if (!reader.IsBytes(function_def::kSignature)) continue;
      WireReader signature(reader.bytes());
      while (signature.Next()) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        if (!signature.IsBytes(function_def::kSignatureName)) continue;
        entry->set_name(ShownBytes(signature.bytes()));
        functions_.insert(signature.bytes());
      }
      if (!signature.ok()) return BadLibrary();
    }
    if (!reader.ok()) return BadLibrary();
    entry->set_node_count(node_count);
    return absl::OkStatus();
  }

  absl::Status BadLibrary() const {
    return InvalidError(
        v1::ERROR_REASON_MALFORMED_GRAPH,
        absl::StrCat("the function library cannot be read at function ", summary_.functions_size(),
                     "; send a serialized (binary) tensorflow.GraphDef"),
        {{"field", "library"}});
  }

  absl::Status CountNodes() {
    ops_.assign(graph_.num_ops(), 0);
    std::vector<int64_t> devices(graph_.num_devices(), 0);
    absl::flat_hash_map<absl::string_view, int> scope_rows;
    const auto found = FindEarlierRewrite(file_, stop_);
    if (!found.ok()) return found.status();
    const EarlierRewrite earlier = *found;
    // Once for each node: a record may be long, and its node may have many readers.
    std::vector<bool> added(graph_.num_nodes(), false);
    int64_t control_edges = 0;
    StopPoller poll(stop_);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      added[id] = IsAddedNode(graph_, id);
    }
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      ++ops_[graph_.op_id(id)];
      ++devices[graph_.device_id(id)];
      for (Tensor input : graph_.inputs(id)) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        control_edges += input.is_control();
      }
      const absl::string_view name = graph_.name(id);
      const size_t slash = name.find('/');
      const auto scope = slash == absl::string_view::npos ? "" : name.substr(0, slash);
      const auto [row, is_new] = scope_rows.try_emplace(scope, summary_.scopes_size());
      if (is_new) AddCount(scope, 0, summary_.mutable_scopes());
      v1::NameCount* count = summary_.mutable_scopes(row->second);
      count->set_count(count->count() + 1);
      CountSwapNode(id, earlier, added);
      if (poll.Tick()) return stop_.status(kInspectStage);
    }
    if (!SortMostFirst(summary_.mutable_scopes(), &poll)) return stop_.status(kInspectStage);
    summary_.set_control_edge_count(control_edges);
    summary_.set_data_edge_count(graph_.num_inputs() - control_edges);
    for (DeviceId device(0); device < graph_.num_devices(); ++device) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      AddCount(graph_.device_name(device), devices[device], summary_.mutable_devices());
    }
    summary_.set_rewritten_by(earlier.ours                      ? v1::REWRITTEN_BY_SPILLWAY
                              : earlier.foreign_node != kNoNode ? v1::REWRITTEN_BY_OTHER
                                                                : v1::REWRITTEN_BY_NOBODY);
    return absl::OkStatus();
  }

  // Our swap nodes are recognized by their records, others only by their names.
  void CountSwapNode(NodeId id, const EarlierRewrite& earlier, const std::vector<bool>& added) {
    bool out = false;
    bool in = false;
    if (earlier.ours) {
      if (!added[id] || graph_.inputs(id).empty() || IsCloneName(graph_.name(id))) return;
      const NodeId source = graph_.inputs(id)[0].node;
      in = added[source] && !IsCloneName(graph_.name(source));
      out = !in;
    } else if (earlier.foreign_node != kNoNode) {
      out = absl::StrContains(graph_.name(id), absl::StrCat(kSwapNodeMark, "out"));
      in = absl::StrContains(graph_.name(id), absl::StrCat(kSwapNodeMark, "in"));
    }
    summary_.set_swap_out_count(summary_.swap_out_count() + out);
    summary_.set_swap_in_count(summary_.swap_in_count() + in);
  }

  absl::Status DescribeOrder() {
    auto built = Topology::Build(graph_, stop_);
    if (!built.ok()) return built.status();
    const Topology* topology = &topology_.emplace(*std::move(built));
    NodeId end(0);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (topology->level(id) > topology->level(end)) end = id;
    }
    NodeId begin = end;
    StopPoller poll(stop_);
    while (topology->level(begin) > 0) {
      for (Tensor input : graph_.inputs(begin)) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        if (topology->level(input.node) != topology->level(begin) - 1) continue;
        begin = input.node;
        break;
      }
    }
    summary_.set_level_count(topology->level(end) + 1);
    summary_.set_longest_path_begin(ShownName(graph_.name(begin)));
    summary_.set_longest_path_end(ShownName(graph_.name(end)));
    return DescribeFrames(*topology);
  }

  absl::Status DescribeFrames(const Topology& topology) {
    auto control_flow = ControlFlowAnalysis::Build(graph_, topology, stop_);
    if (!control_flow.ok()) return control_flow.status();
    // By frame id: an Enter into it.
    std::vector<NodeId> enters;
    std::vector<int64_t> counts;
    int64_t unknown = 0;
    StopPoller poll(stop_);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      const FrameId in = control_flow->input_frame(id);
      const FrameId out = control_flow->output_frame(id);
      const size_t frames = std::max({in, out, kRootFrame}) + 1;
      if (frames > enters.size()) enters.resize(frames, kNoNode);
      if (frames > counts.size()) counts.resize(frames, 0);
      if (in == kUnknownFrame || out == kUnknownFrame) {
        ++unknown;
        continue;
      }
      ++counts[in];
      const bool enter = graph_.op_info(id).control_flow == ControlFlow::kEnter;
      if (enter && enters[out] == kNoNode) enters[out] = id;
    }
    // Frame ids increase inwards, so a frame's parent has a lower index; the root has none.
    for (FrameId frame(kRootFrame + 1); frame < static_cast<int32_t>(enters.size()); ++frame) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      v1::LoopFrame* entry = summary_.add_frames();
      entry->set_name(FrameName(enters[frame]));
      const FrameId parent = control_flow->input_frame(enters[frame]);
      if (parent != kRootFrame) entry->set_parent(summary_.frames(parent - 1).name());
      entry->set_node_count(counts[frame]);
    }
    summary_.set_unknown_frame_node_count(unknown);
    return absl::OkStatus();
  }

  std::string FrameName(NodeId enter) const {
    return ShownBytes(AttrString(*graph_.attr(enter, "frame_name")).value_or(""));
  }

  absl::Status DescribeTensors() {
    auto inferred = Shapes::Infer(graph_, *topology_, options_.step(), stop_);
    if (!inferred.ok()) return inferred.status();
    const Shapes* shapes = &shapes_.emplace(*std::move(inferred));
    struct Sized {
      int64_t size_bytes;
      Tensor tensor;
    };
    const auto larger = [](const Sized& a, const Sized& b) {
      if (a.size_bytes != b.size_bytes) return a.size_bytes > b.size_bytes;
      if (a.tensor.node != b.tensor.node) return a.tensor.node < b.tensor.node;
      return a.tensor.port < b.tensor.port;
    };
    const size_t wanted = options_.has_largest_tensor_count() ? options_.largest_tensor_count()
                                                              : kDefaultLargestTensorCount;
    std::vector<Sized> largest;  // A heap, the smallest first.
    int64_t known_count = 0;
    std::vector<int64_t> unknown(v1::SizeUnknown_ARRAYSIZE, 0);
    int64_t total = 0;
    std::vector<int32_t> ports;
    StopPoller poll(stop_);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      ports.clear();
      if (poll.Tick()) return stop_.status(kInspectStage);
      if (IsPlaceholder(graph_.op(id))) {
        *summary_.add_placeholders() = Summarize(graph_, *shapes, {id, 0});
      }
      const Graph::Readers readers = graph_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        const int32_t port = readers[i].port;
        if (port != kControl && (ports.empty() || ports.back() != port)) ports.push_back(port);
      }
      for (int32_t port : ports) {
        if (poll.Tick()) return stop_.status(kInspectStage);
        const Tensor tensor{id, port};
        const int64_t size_bytes = shapes->size_bytes(tensor);
        if (size_bytes == kUnknownSize) {
          ++unknown[shapes->why_unknown(tensor)];
          continue;
        }
        ++known_count;
        if (largest.size() == wanted && wanted > 0 && larger({size_bytes, tensor}, largest[0])) {
          std::pop_heap(largest.begin(), largest.end(), larger);
          largest.pop_back();
        }
        if (largest.size() < wanted) {
          largest.push_back({size_bytes, tensor});
          std::push_heap(largest.begin(), largest.end(), larger);
        }
        // Many tensors of nearly 2^63 bytes: the sum saturates.
        if (__builtin_add_overflow(total, size_bytes, &total)) {
          total = std::numeric_limits<int64_t>::max();
        }
      }
    }
    summary_.set_known_size_bytes(total);
    summary_.set_known_size_count(known_count);
    int64_t unknown_count = 0;
    for (int reason = 0; reason < v1::SizeUnknown_ARRAYSIZE; ++reason) {
      if (unknown[reason] == 0) continue;
      unknown_count += unknown[reason];
      v1::UnknownSizeCount* entry = summary_.add_unknown_sizes();
      entry->set_reason(static_cast<v1::SizeUnknown>(reason));
      entry->set_count(unknown[reason]);
    }
    if (!SortMostFirst(summary_.mutable_unknown_sizes(), &poll)) {
      return stop_.status(kInspectStage);
    }
    summary_.set_tensor_count(summary_.known_size_count() + unknown_count);
    if (!PolledSort(largest.begin(), largest.end(), larger, &poll)) {
      return stop_.status(kInspectStage);
    }
    for (const Sized& sized : largest) {
      if (poll.Tick()) return stop_.status(kInspectStage);
      *summary_.add_largest_tensors() = Summarize(graph_, *shapes, sized.tensor);
    }
    return absl::OkStatus();
  }

  // Facts that follow from the op types alone.
  bool DescribeOps() {
    int64_t switches = 0, merges = 0, ifs = 0, whiles = 0, calls = 0;
    StopPoller poll(stop_);
    for (int32_t id = 0; id < graph_.num_ops(); ++id) {
      if (poll.Tick()) return false;
      const absl::string_view op = graph_.op_name(id);
      const OpInfo info = FindOp(op);
      const int64_t count = ops_[id];
      AddCount(op, count, summary_.mutable_op_types());
      if (IsVariableOp(op)) AddCount(op, count, summary_.mutable_variables());
      if (IsUpdate(op)) AddCount(op, count, summary_.mutable_updates());
      if (info.control_flow == ControlFlow::kSwitch) switches += count;
      if (info.control_flow == ControlFlow::kMerge) merges += count;
      if (IsOneOf(op, {"If", "StatelessIf", "Case", "StatelessCase"})) ifs += count;
      if (IsOneOf(op, {"While", "StatelessWhile"})) whiles += count;
      if (IsOneOf(op, {"PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall",
                       "RemoteCall", "SymbolicGradient"}) ||
          functions_.contains(op)) {
        calls += count;
      }
    }
    for (NameCounts* counts :
         {summary_.mutable_op_types(), summary_.mutable_variables(), summary_.mutable_updates()}) {
      if (!SortMostFirst(counts, &poll)) return false;
    }
    summary_.set_switch_count(switches);
    summary_.set_merge_count(merges);
    summary_.set_if_count(ifs);
    summary_.set_while_count(whiles);
    summary_.set_call_count(calls);
    return true;
  }

  const Graph& file_;   // The original graph;
  const Graph& graph_;  // the same with its calls inlined.
  const v1::InspectOptions& options_;
  const StopToken& stop_;
  absl::optional<Topology> topology_;
  absl::optional<Shapes> shapes_;
  v1::GraphSummary summary_;
  std::vector<int64_t> ops_;                          // Nodes by op id.
  absl::flat_hash_set<absl::string_view> functions_;  // Names in the library.
};

// Only those parts of a step that determine shapes.
absl::Status CheckShapesAlone(const v1::Step& step) {
  const absl::string_view option =
      !step.targets().empty()                        ? "targets"
      : step.has_hardware()                          ? "hardware"
      : !step.profile().empty()                      ? "profile"
      : step.convolution_workspace_bytes() != 0      ? "convolution_workspace_bytes"
      : step.has_convolution_workspace_limit_bytes() ? "convolution_workspace_limit_bytes"
      : step.grappler() != v1::GRAPPLER_UNSPECIFIED  ? "grappler"
      : step.kernel_memory() != 0                    ? "kernel_memory"
      : !step.loop_counts().empty()                  ? "loop_counts"
                                                     : "";
  if (option.empty()) return absl::OkStatus();
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat(option,
                                   " is given, which matters only for a simulation; leave "
                                   "it out, or simulate the graph"),
                      {{"option", option}});
}

// Checks the options independently of the graph.
absl::Status CheckOptions(const v1::InspectOptions& options) {
  if (absl::Status s = CheckKnownFields(options); !s.ok()) return s;
  if (options.largest_tensor_count() < 0) {
    return BadOptionError("largest_tensor_count", options.largest_tensor_count(), "give 0 or more");
  }
  return CheckShapesAlone(options.step());
}

}  // namespace

absl::Status Inspect(absl::string_view graph_def, const v1::InspectOptions& options,
                     const v1::Limits& limits, const StopToken& stop, const InspectSink& sink) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  auto step_graph = StepGraph::Parse(graph_def, options.step(), limits, stop);
  if (!step_graph.ok()) return step_graph.status();
  Inspector inspector(**step_graph, options, stop);
  auto summary = inspector.Run();
  if (!summary.ok()) return summary.status();
  v1::InspectResponse first;
  *first.mutable_summary() = *std::move(summary);
  if (!sink(std::move(first)) || !options.tensors()) return absl::OkStatus();
  return ListTensors((*step_graph)->graph(), inspector.shapes(), stop,
                     [&sink](v1::TensorList&& list) {
                       v1::InspectResponse response;
                       *response.mutable_tensors() = std::move(list);
                       return sink(std::move(response));
                     });
}

absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const v1::Limits& limits, const StopToken& stop) {
  v1::GraphSummary summary;
  absl::Status status = Inspect(graph_def, options, limits, stop, [&](v1::InspectResponse&& first) {
    summary = std::move(*first.mutable_summary());
    return false;
  });
  if (!status.ok()) return status;
  return summary;
}

}  // namespace spillway::core
