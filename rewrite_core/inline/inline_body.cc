#include "rewrite_core/inline/inline_body.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

// Stateful ops that need not run: IsExemptFromSideEffectsExecutionValidation in TensorFlow's
// grappler/optimizers/function_optimizer.cc.
constexpr absl::string_view kWithoutEffect[] = {
    "CollectiveAssignGroupsV2",
    "CollectiveBcastRecv",
    "CollectiveBcastRecvV2",
    "CollectiveBcastSend",
    "CollectiveBcastSendV2",
    "CollectiveGather",
    "CollectiveInitializeCommunicator",
    "CollectiveReduce",
    "CudnnRNN",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "DynamicEnqueueTPUEmbeddingArbitraryTensorBatch",
    "EnqueueTPUEmbeddingArbitraryTensorBatch",
    "EnqueueTPUEmbeddingIntegerBatch",
    "EnqueueTPUEmbeddingRaggedTensorBatch",
    "EnqueueTPUEmbeddingSparseBatch",
    "EnqueueTPUEmbeddingSparseTensorBatch",
    "InfeedEnqueue",
    "InfeedEnqueueTuple",
    "Multinomial",
    "NcclAllReduce",
    "ParameterizedTruncatedNormal",
    "RandomGamma",
    "RandomGammaGrad",
    "RandomPoisson",
    "RandomPoissonV2",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "ReadVariableOp",
    "Recv",
    "RestoreV2",
    "SaveV2",
    "Send",
    "TruncatedNormal",
};

class BodyReader {
 public:
  BodyReader(const FunctionTable& table, int32_t function, const StopToken& stop,
             FunctionResults* results)
      : table_(table),
        function_def_(table[function].function_def),
        stop_(stop),
        poll_(stop),
        results_(results),
        body_(std::make_unique<InlineBody>()) {
    body_->has_attrs = table[function].has_attrs;
  }

  std::unique_ptr<InlineBody> Run() {
    if (!ReadGraph() || !ReadTypes() || !ReadControlReturns() || !Describe() || !CheckEffects() ||
        !CheckDeadness()) {
      return nullptr;
    }
    return std::move(body_);
  }

 private:
  // Each returns false if the body cannot be read, or the call must end.

  bool ReadGraph() {
    FunctionBody text;
    const auto find = [this](absl::string_view name) {
      const int32_t function = table_.Find(name);
      return function == FunctionTable::kNoFunction ? absl::string_view()
                                                    : table_[function].function_def;
    };
    if (!WriteFunctionBody(function_def_, find, stop_, &text, results_)) return false;
    body_->bytes = std::move(text.graph_def);
    if (body_->bytes.empty()) return false;  // No arguments and no nodes.
    auto graph = Graph::Parse(body_->bytes, NoLimits(), stop_);
    if (!graph.ok() || !Topology::Build(*graph, stop_).ok()) return false;
    body_->graph = *std::move(graph);
    for (const std::string& spelling : text.results) {
      if (poll_.Tick()) return false;
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(spelling, absl::MaxSplits(':', 1));
      Tensor tensor{body_->graph->Find(parts.first), 0};
      if (tensor.node == kNoNode) return false;
      if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &tensor.port)) return false;
      body_->result_tensors.push_back(tensor);
    }
    return true;
  }

  bool ReadTypes() {
    absl::string_view bytes;
    if (!FindPayload(function_def_, function_def::kSignature, &poll_, &bytes)) return false;
    WireReader signature(bytes);
    while (signature.Next()) {
      if (poll_.Tick()) return false;
      const bool is_input = signature.IsBytes(op_def::kInputArg);
      if (!is_input && !signature.IsBytes(op_def::kOutputArg)) continue;
      BorderType type;
      WireReader argument(signature.bytes());
      while (argument.Next()) {
        if (poll_.Tick()) return false;
        if (argument.IsVarint(op_def::kArgType)) {
          type.dtype = static_cast<DataType>(argument.number());
        }
        if (argument.IsBytes(op_def::kArgTypeAttr)) type.attr = argument.bytes();
      }
      (is_input ? body_->arguments : body_->results).push_back(type);
      if (is_input) continue;
      if (!type.attr.empty()) body_->result_attrs.insert(type.attr);
      body_->has_bad_result |= type.attr.empty() && type.dtype == kDtInvalid;
    }
    return true;
  }

  bool ReadControlReturns() {
    body_->returns_control.assign(body_->graph->num_nodes(), false);
    WireReader reader(function_def_);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (!reader.IsBytes(function_def::kControlReturn)) continue;
      absl::string_view name;
      if (!FindPayload(reader.bytes(), map_entry::kValue, &poll_, &name)) return false;
      const NodeId node = body_->graph->Find(name);
      if (node == kNoNode) return false;
      body_->returns_control[node] = true;
    }
    for (NodeId id(0); id < body_->graph->num_nodes(); ++id) {
      if (body_->returns_control[id]) body_->control_returns.push_back(id);
    }
    return true;
  }

  bool Describe() {
    const Graph& graph = *body_->graph;
    for (int32_t op = 0; op < graph.num_ops(); ++op) {
      body_->kinds.push_back(table_.KindOf(graph.op_name(op)));
      has_effect_.push_back(HasEffect(graph.op_name(op), graph.op_type_info(op)));
    }
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (poll_.Tick(1 + graph.inputs(id).size())) return false;  // All of its fields are read.
      body_->copied.push_back(CopiedFields(graph.node_bytes(id)));
    }
    body_->last_port.assign(graph.num_nodes(), -1);
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      for (Tensor input : graph.inputs(id)) {
        if (poll_.Tick()) return false;
        int32_t& last = body_->last_port[input.node];
        last = std::max(last, input.port);
      }
    }
    for (Tensor result : body_->result_tensors) {
      body_->last_port[result.node] = std::max(body_->last_port[result.node], result.port);
    }
    return true;
  }

  static absl::string_view CopiedFields(absl::string_view node_def) {
    absl::string_view copied;
    WireReader reader(node_def);
    while (reader.Next()) {
      if (IsWrittenAnew(reader)) continue;
      const absl::string_view field = reader.whole();
      if (copied.empty()) copied = field.substr(0, 0);
      if (copied.data() + copied.size() != field.data()) return {};
      copied = absl::string_view(copied.data(), copied.size() + field.size());
      if (reader.IsBytes(node_def::kAttr) && NamesNodes(ReadAttrEntry(reader.bytes()).key)) {
        return {};
      }
    }
    return copied;
  }

  // An unknown op may have any effect.
  bool HasEffect(absl::string_view op, const OpInfo& info) const {
    if (op == "_Arg" ||
        std::binary_search(std::begin(kWithoutEffect), std::end(kWithoutEffect), op)) {
      return false;
    }
    if (info.known) return info.is_stateful;
    const int32_t function = table_.Find(op);
    return function == FunctionTable::kNoFunction || table_[function].is_stateful;
  }

  // Flags the nodes that lead to `queue`. Empty if stopped.
  bool MarkLeading(std::vector<NodeId> queue, std::vector<bool>* leads) {
    leads->assign(body_->graph->num_nodes(), false);
    for (NodeId id : queue) (*leads)[id] = true;
    while (!queue.empty()) {
      const NodeId id = queue.back();
      queue.pop_back();
      for (Tensor input : body_->graph->inputs(id)) {
        if (poll_.Tick()) return false;
        if ((*leads)[input.node]) continue;
        (*leads)[input.node] = true;
        queue.push_back(input.node);
      }
    }
    return true;
  }

  bool CheckEffects() {
    const Graph& graph = *body_->graph;
    for (bool effect : has_effect_) body_->has_effects |= effect;
    if (!body_->has_effects) return true;
    std::vector<NodeId> results;
    for (Tensor result : body_->result_tensors) results.push_back(result.node);
    std::vector<bool> to_controls, to_results;
    if (!MarkLeading(body_->control_returns, &to_controls) ||
        !MarkLeading(std::move(results), &to_results)) {
      return false;
    }
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (!has_effect_[graph.op_id(id)]) continue;
      if (!to_controls[id]) body_->effects_reach_controls = false;
      if (!to_results[id]) body_->effects_reach_results = false;
    }
    return true;
  }

  // Walks from each Switch, and each call by name whose body has one, along all edges up to Merges.
  bool CheckDeadness() {
    const Graph& graph = *body_->graph;
    std::vector<NodeId> queue;
    std::vector<bool> reached(graph.num_nodes(), false);
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      bool is_source = graph.op_info(id).control_flow == ControlFlow::kSwitch;
      if (body_->kinds[graph.op_id(id)] == CallKind::kNative) {
        is_source = table_[table_.Find(graph.op(id))].has_switch;
      }
      if (!is_source) continue;
      reached[id] = true;
      queue.push_back(id);
    }
    while (!queue.empty()) {
      const NodeId id = queue.back();
      queue.pop_back();
      if (graph.op_info(id).control_flow == ControlFlow::kMerge) continue;
      const Graph::Readers readers = graph.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        if (reached[readers[i].node]) continue;
        reached[readers[i].node] = true;
        queue.push_back(readers[i].node);
      }
    }
    // The walk ends at a Merge, which forwards no dead tensor.
    for (Tensor result : body_->result_tensors) {
      body_->has_dead_results |=
          reached[result.node] && graph.op_info(result.node).control_flow != ControlFlow::kMerge;
    }
    return true;
  }

  const FunctionTable& table_;
  const absl::string_view function_def_;
  const StopToken& stop_;
  StopPoller poll_;
  FunctionResults* const results_;
  std::unique_ptr<InlineBody> body_;
  std::vector<bool> has_effect_;  // By op id.
};

}  // namespace

std::unique_ptr<InlineBody> ReadBody(const FunctionTable& table, int32_t function,
                                     const StopToken& stop, FunctionResults* results) {
  return BodyReader(table, function, stop, results).Run();
}

}  // namespace spillway::core
