#include "rewrite_core/plan/clone_rules.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_outputs.h"

namespace spillway::core {
namespace {

// A serialized AttrValue: 1 as a float.
constexpr absl::string_view kFloatOne("\x25\x00\x00\x80\x3f", 5);

// Inputs examined behind a write outside the step, and for all of these together by node of the
// graph. (An initial value has some ten nodes behind it, a moving average the whole network.)
constexpr int64_t kLooksPerWrite = 1024;
constexpr int64_t kLooksPerNode = 64;

}  // namespace

bool ReadsInput(const Graph& graph, NodeId id, int32_t index) {
  // The mean and the variance, after x, scale and offset.
  if (index < 3 || index > 4 || !absl::StartsWith(graph.op(id), "FusedBatchNorm")) return true;
  const auto is_training = graph.attr(id, "is_training");
  if (is_training.has_value() && !AttrBool(*is_training).value_or(false)) return true;
  // Below 1, which is the default, the old averages are part of the outputs.
  const auto factor = graph.attr(id, "exponential_avg_factor");
  return factor.has_value() && *factor != kFloatOne;
}

absl::StatusOr<CloneRules> CloneRules::Find(const StepFacts& facts, const StopToken& stop) {
  CloneRules rules(facts);
  if (absl::Status s = rules.FindUpdates(stop); !s.ok()) return s;
  if (absl::Status s = rules.FindShared(stop); !s.ok()) return s;
  return rules;
}

RunAgain CloneRules::Of(NodeId id) const {
  const Graph& graph = facts_->graph();
  const RunAgain by_op = graph.op_info(id).run_again;
  const ControlFlowAnalysis& flow = facts_->control_flow();
  if (by_op == RunAgain::kNever || facts_->shapes().IsFed(id) ||
      flow.output_frame(id) != kRootFrame || flow.input_frame(id) != kRootFrame) {
    return RunAgain::kNever;
  }
  const auto is_value = [this](Tensor tensor) {
    const OutputType type = facts_->shapes().type(tensor);
    return type.dtype != kDtInvalid && type.dtype != kDtResource && type.dtype != kDtVariant;
  };
  for (Tensor input : graph.inputs(id)) {
    if (input.is_control()) break;
    // A clone that read the reference itself might see another value than its original.
    if (!is_value(input) || facts_->shapes().type(input).is_ref) return RunAgain::kNever;
  }
  const Graph::Readers readers = graph.readers(id);
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (readers[i].port == kControl) continue;
    const Tensor output{id, readers[i].port};
    if (!is_value(output) || facts_->shapes().type(output).is_ref) return RunAgain::kNever;
  }
  if (UpdatesOf(id).size() > kMaxUpdates) return RunAgain::kNever;
  return by_op;
}

// Reads of a reference variable go through nodes that share its memory (Identity, ...): a node
// reads the variable if the buffer behind one of its inputs is the variable's. Values read from
// resources share it in the same way, but an update copies the variable if such a value is held
// (PrepareToUpdateVariable in TensorFlow's training_op_helpers.h), so that the old one stays.
BufferIndex CloneRules::ReferencedBy(Tensor tensor) const {
  const Buffers& buffers = facts_->buffers();
  const BufferIndex buffer = buffers.buffer_of(tensor);
  if (buffer == kNoBuffer || buffers.buffers()[buffer].storage != Storage::kVariable) {
    return kNoBuffer;
  }
  return facts_->shapes().type(buffers.buffers()[buffer].first).is_ref ? buffer : kNoBuffer;
}

absl::Status CloneRules::FindUpdates(const StopToken& stop) {
  const Graph& graph = facts_->graph();
  std::vector<NodeId> seen_from(graph.num_nodes(), kNoNode);
  int64_t looks = kLooksPerNode * graph.num_nodes();
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    if (WriteOf(graph.op(id)) == Write::kNone) continue;
    const bool is_needed = facts_->active_nodes().needed[id];
    if (!is_needed && IsInitializer(id, &seen_from, &looks, &poll)) continue;
    if (absl::Status s = stop.status("analysis"); !s.ok()) return s;
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("analysis");
      if (input.is_control()) break;
      if (!facts_->shapes().type(input).is_ref) continue;
      const BufferIndex variable = ReferencedBy(input);
      if (variable == kNoBuffer) continue;
      std::vector<NodeId>& of = updates_[variable];
      if (of.size() <= kMaxUpdates && (of.empty() || of.back() != id)) of.push_back(id);
    }
  }
  return absl::OkStatus();
}

absl::Status CloneRules::FindShared(const StopToken& stop) {
  const Graph& graph = facts_->graph();
  std::vector<std::pair<NodeId, BufferIndex>> todo;
  const auto add = [&](NodeId id, BufferIndex variable) {
    if (!MayShareMemory(graph, id)) return;
    std::vector<BufferIndex>& of = shared_[id];
    if (of.size() > kMaxUpdates || std::find(of.begin(), of.end(), variable) != of.end()) return;
    of.push_back(variable);
    todo.emplace_back(id, variable);
  };
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes() && !updates_.empty(); ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("analysis");
      if (input.is_control()) break;
      const BufferIndex variable = ReferencedBy(input);
      if (updates_.contains(variable)) add(id, variable);
    }
  }
  while (!todo.empty()) {
    const auto [id, variable] = todo.back();
    todo.pop_back();
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      if (readers[i].port != kControl) add(readers[i].node, variable);
    }
  }
  return absl::OkStatus();
}

// Whether the write depends on no recomputable node that reads a variable that it writes: initial
// values, copies between towers, broadcasts of a variable. (Of several towers, the step may update
// the statistics of one alone; a clone in another one still has to run before that one's updates,
// in any step.) False also if that takes too long to find out, or if stopped.
bool CloneRules::IsInitializer(NodeId write, std::vector<NodeId>* seen_from, int64_t* looks,
                               StopPoller* poll) const {
  const Graph& graph = facts_->graph();
  absl::flat_hash_set<BufferIndex> written;  // A write may have very many inputs.
  for (Tensor input : graph.inputs(write)) {
    if (poll->Tick()) return false;
    if (input.is_control()) break;
    if (!facts_->shapes().type(input).is_ref) continue;
    if (const BufferIndex variable = ReferencedBy(input); variable != kNoBuffer) {
      written.insert(variable);
    }
  }
  std::vector<NodeId> todo = {write};
  (*seen_from)[write] = write;
  const int64_t least_looks = std::max<int64_t>(0, *looks - kLooksPerWrite);
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    const bool writes = WriteOf(graph.op(id)) != Write::kNone;
    const OpInfo& op = graph.op_info(id);
    const bool may_run_again = op.run_again != RunAgain::kNever && op.forwards != Forwards::kAlways;
    for (Tensor input : graph.inputs(id)) {
      if (poll->Tick() || --*looks < least_looks) return false;
      if (writes && !input.is_control() && facts_->shapes().type(input).is_ref) continue;
      if (may_run_again && !input.is_control() && written.contains(ReferencedBy(input))) {
        return false;
      }
      if (std::exchange((*seen_from)[input.node], write) != write) todo.push_back(input.node);
    }
  }
  return true;
}

// (Outputs of IdentityN are different inputs, and a clone of it holds all of them.)
bool CloneRules::MayCloneForwarder(NodeId id) const {
  return Of(id) == RunAgain::kSameBits && facts_->graph().op(id) != "IdentityN";
}

std::vector<NodeId> CloneRules::UpdatesOf(Tensor tensor) const {
  const auto found = updates_.find(ReferencedBy(tensor));
  return found == updates_.end() ? std::vector<NodeId>() : found->second;
}

std::vector<NodeId> CloneRules::UpdatesOf(NodeId id) const {
  std::vector<NodeId> updates;
  if (updates_.empty()) return updates;
  absl::flat_hash_set<BufferIndex> seen;
  absl::flat_hash_map<DeviceId, bool> is_other;
  const Graph& graph = facts_->graph();
  const absl::Span<const Tensor> inputs = graph.inputs(id);
  for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
    const Tensor input = inputs[i];
    if (updates.size() > kMaxUpdates) break;
    if (!ReadsInput(graph, id, static_cast<int32_t>(i))) continue;
    const BufferIndex variable = ReferencedBy(input);
    const auto shared = shared_.find(input.node);
    if (!updates_.contains(variable) && shared == shared_.end()) continue;
    // Tensors from another device are copied once for all readers (AddRecv in graph_partition.cc).
    // Names of devices may be long: each is compared once.
    const auto [other, is_new] = is_other.try_emplace(graph.device_id(input.node));
    if (is_new) other->second = AreOtherDevices(graph.device(input.node), graph.device(id));
    if (other->second) continue;
    const auto add = [&](BufferIndex of) {
      const auto found = updates_.find(of);
      if (found == updates_.end() || !seen.insert(of).second) return;
      for (NodeId update : found->second) {
        if (std::find(updates.begin(), updates.end(), update) == updates.end()) {
          updates.push_back(update);
        }
      }
    };
    add(variable);
    if (shared != shared_.end()) std::for_each(shared->second.begin(), shared->second.end(), add);
  }
  return updates;
}

}  // namespace spillway::core
