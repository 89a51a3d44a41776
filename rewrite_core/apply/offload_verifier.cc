#include "rewrite_core/apply/offload_verifier.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/apply/verify_error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/plan/state_groups.h"

namespace spillway::core {
namespace {

constexpr size_t kBits = 64;

// The fields of a NodeDef that a move may not touch.
std::string MovedBodyOf(absl::string_view node_def) {
  std::string body;
  for (WireReader reader(node_def); reader.Next();) {
    if (reader.IsBytes(node_def::kDevice) || IsUndoField(reader)) continue;
    if (reader.IsBytes(node_def::kAttr) && ReadAttrEntry(reader.bytes()).key == kClassAttr) {
      continue;
    }
    body.append(reader.whole().data(), reader.whole().size());
  }
  return body;
}

class MoveVerifier {
 public:
  MoveVerifier(const Graph& before, const Graph& after, const StopToken& stop)
      : before_(before),
        after_(after),
        stop_(stop),
        poll_(stop),
        moved_(before.num_nodes(), false),
        there_(before.num_nodes(), false),
        types_(before.num_nodes()) {}

  absl::Status Undo() const {
    auto expected = Strip(before_, stop_);
    if (!expected.ok()) return expected.status();
    auto stripped = Strip(after_, stop_);
    if (!stripped.ok()) return BlameVerified("undo", stripped.status());
    if (*stripped == *expected) return absl::OkStatus();
    return VerifyFailed("undo", "?", "undoing the moves does not give the original bytes");
  }

  absl::Status Bodies() {
    if (after_.num_nodes() != before_.num_nodes()) {
      return VerifyFailed("data", "?", "a move has added or dropped a node");
    }
    std::vector<std::string> hosts;
    for (DeviceId id(0); id < before_.num_devices(); ++id) {
      hosts.push_back(HostDeviceOf(before_.device_name(id)));
    }
    for (NodeId id(0); id < before_.num_nodes(); ++id) {
      if (poll_.Tick()) return stop_.status("verify");
      there_[id] = after_.device(id) == hosts[before_.device_id(id)];
      const absl::string_view now = after_.node_bytes(id), then = before_.node_bytes(id);
      if (now == then) continue;
      if (MovedBodyOf(now) != MovedBodyOf(then)) {
        return VerifyFailed("data", after_.name(id), "more than its device has changed");
      }
      if (after_.device(id) == before_.device(id)) continue;
      if (!there_[id]) {
        return VerifyFailed("device", after_.name(id), "it is not on the CPU of its own task");
      }
      moved_[id] = true;
    }
    return absl::OkStatus();
  }

  absl::Status Colocations() {
    for (NodeId id(0); id < before_.num_nodes(); ++id) {
      const auto then = before_.attr(id, kClassAttr), now = after_.attr(id, kClassAttr);
      const auto left = AttrStrings(now.value_or(absl::string_view()));
      auto next = left.begin();
      for (absl::string_view item : AttrStrings(then.value_or(absl::string_view()))) {
        if (poll_.Tick()) return stop_.status("verify");
        const NodeId with = before_.Find(ColocatedWith(item));
        const bool is_kept = next != left.end() && *next == item;
        const bool is_across =
            with != kNoNode && (moved_[with] || moved_[id]) && there_[with] != there_[id];
        if (is_kept == is_across) {
          return VerifyFailed("colocation", after_.name(id),
                              absl::StrCat(is_kept ? "it is still" : "it is no longer",
                                           " colocated with ", Quoted(ColocatedWith(item))));
        }
        if (is_kept) ++next;
      }
      if (next != left.end()) {
        return VerifyFailed("colocation", after_.name(id), "a colocation was added");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Groups(const v1::Step& step) {
    for (const v1::Feed& feed : step.feeds()) {
      if (poll_.Tick()) return stop_.status("verify");
      fed_.insert(before_.Find(absl::string_view(feed.name()).substr(0, feed.name().rfind(':'))));
    }
    for (NodeId id(0); id < before_.num_nodes(); ++id) {
      bool holds = IsVariableOp(before_.op(id));
      const absl::Span<const Tensor> inputs = before_.inputs(id);
      for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
        if (poll_.Tick()) return stop_.status("verify");
        const NodeId from = inputs[i].node;
        if (!moved_[from] && !moved_[id]) continue;
        const OutputType type = TypeOf(inputs[i]);
        const bool is_held = type.dtype == kDtResource ||
                             (type.is_ref && TakesReference(before_.op(id), before_.op_info(id)));
        if (is_held && there_[from] != there_[id]) {
          return VerifyFailed("group", after_.name(id),
                              absl::StrCat("it and ", Quoted(after_.name(from)),
                                           " share a variable, and one of them moved"));
        }
        holds = holds || (is_held && there_[from]);
      }
      if (!moved_[id]) continue;
      if (fed_.contains(id)) return VerifyFailed("cone", after_.name(id), "a fed node moved");
      if (!holds) {
        if (absl::Status s = InCone(id); !s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  // The step's updates of moved reference variables, and the reads that may race with them.
  absl::Status Races(const v1::Step& step, const std::vector<NodeId>& targets) {
    auto topology = Topology::Build(before_, stop_);
    if (!topology.ok()) return BlameVerified("acyclic", topology.status());
    const std::vector<bool> runs = Runs(step, targets);
    // Behind a reference, a handle, or a value read by one.
    std::vector<NodeId> variable(before_.num_nodes(), kNoNode);
    std::vector<std::pair<NodeId, NodeId>> updates;  // And their variables.
    std::vector<NodeId> reads;                       // Nodes with a variable.
    for (NodeId id : topology->order()) {
      if (poll_.Tick()) return stop_.status("verify");
      if (!there_[id]) continue;
      if (IsVariableOp(before_.op(id)) && moved_[id]) variable[id] = id;
      const bool hands_on = IsHolding({id, 0}), writes = WriteOf(before_.op(id)) != Write::kNone;
      const absl::Span<const Tensor> inputs = before_.inputs(id);
      for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
        if (poll_.Tick()) return stop_.status("verify");
        const NodeId of = variable[inputs[i].node];
        if (of == kNoNode || !IsHolding(inputs[i])) continue;
        if (writes && runs[id]) updates.emplace_back(id, of);
        if (i == 0 && (hands_on || !writes)) variable[id] = of;
      }
      if (variable[id] != kNoNode && HasDataReader(before_, id)) reads.push_back(id);
    }
    for (size_t next = 0; next < updates.size();) {
      std::vector<uint64_t> leads(before_.num_nodes(), 0), follows(before_.num_nodes(), 0);
      absl::flat_hash_map<NodeId, uint64_t> of_variable;
      std::vector<NodeId> of_bits;
      for (; next < updates.size(); ++next) {
        const auto [update, of] = updates[next];
        if (of_bits.empty() || of_bits.back() != update) {
          if (of_bits.size() == kBits) break;
          of_bits.push_back(update);
        }
        const uint64_t bit = uint64_t{1} << (of_bits.size() - 1);
        leads[update] |= bit;
        follows[update] |= bit;
        of_variable[of] |= bit;
      }
      for (NodeId id : topology->order()) SpreadTo(id, &follows);
      for (auto it = topology->order().rbegin(); it != topology->order().rend(); ++it) {
        SpreadFrom(*it, &leads);
      }
      for (NodeId read : reads) {
        if (poll_.stopped()) return stop_.status("verify");
        const auto of = of_variable.find(variable[read]);
        if (of == of_variable.end()) continue;
        uint64_t led = follows[read];
        NodeId racer = kNoNode;
        // A value read by a handle is taken then, one read by reference when it is copied.
        const bool is_taken = !before_.inputs(read).empty() && !IsHolding({read, 0}) &&
                              TypeOf(before_.inputs(read)[0]).dtype == kDtResource;
        if (is_taken && runs[read]) {
          led |= leads[read];
          racer = read;
        }
        const Graph::Readers readers = before_.readers(read);
        for (uint32_t i = 0; !is_taken && i < readers.size(); ++i) {
          const NodeId reader = readers[i].node;
          if (poll_.Tick() || readers[i].port == kControl || there_[reader] || !runs[reader]) {
            continue;
          }
          if (IsCpuDevice(after_.device(reader))) continue;  // It reads the memory itself.
          led |= leads[reader];
          racer = reader;
        }
        if (racer == kNoNode || (of->second & ~led) == 0) continue;
        return VerifyFailed("variable", after_.name(racer),
                            absl::StrCat("it reads ", Quoted(before_.name(variable[read])),
                                         ", and neither leads to its update nor waits for it"));
      }
    }
    return stop_.status("verify");
  }

 private:
  absl::Status InCone(NodeId id) {
    const absl::Span<const Tensor> inputs = before_.inputs(id);
    const bool has_input = !inputs.empty() && !inputs[0].is_control();
    const NodeId from = has_input ? inputs[0].node : kNoNode;
    const absl::string_view op = before_.op(id);
    if (from != kNoNode && op == "Identity" && TypeOf(inputs[0]).is_ref && there_[from]) {
      return absl::OkStatus();  // It reads a variable.
    }
    if (from != kNoNode && (op == "GatherV2" || op == "Gather") && there_[from] && IsRead(from)) {
      return absl::OkStatus();
    }
    if (!MayBeInCone(op)) {
      return VerifyFailed("cone", after_.name(id), absl::StrCat("a ", op, " moved"));
    }
    const Graph::Readers readers = before_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll_.Tick()) return stop_.status("verify");
      if (readers[i].port == kControl || there_[readers[i].node]) continue;
      return VerifyFailed(
          "cone", after_.name(id),
          absl::StrCat("it moved, and ", Quoted(after_.name(readers[i].node)), " did not"));
    }
    return absl::OkStatus();
  }

  // Whether it outputs the value of a variable.
  bool IsRead(NodeId id) {
    const absl::Span<const Tensor> inputs = before_.inputs(id);
    if (inputs.empty() || inputs[0].is_control()) return false;
    return before_.op(id) == "ReadVariableOp" || TypeOf(inputs[0]).is_ref;
  }

  // The nodes of a step, dead sides of conditionals included; without targets, the optimizers'
  // updates and their ancestors.
  std::vector<bool> Runs(const v1::Step& step, const std::vector<NodeId>& targets) {
    std::vector<NodeId> todo = targets;
    for (const std::string& target : step.targets()) {
      const NodeId id = before_.Find(absl::string_view(target).substr(0, target.rfind(':')));
      if (id != kNoNode) todo.push_back(id);
    }
    const bool has_targets = !todo.empty();
    for (NodeId id(0); !has_targets && id < before_.num_nodes(); ++id) {
      if (WriteOf(before_.op(id)) == Write::kOptimizer) todo.push_back(id);
    }
    std::vector<bool> runs(before_.num_nodes(), false);
    while (!todo.empty() && !poll_.Tick()) {
      const NodeId id = todo.back();
      todo.pop_back();
      if (runs[id]) continue;
      runs[id] = true;
      if (fed_.contains(id)) continue;
      for (Tensor input : before_.inputs(id)) {
        if (!poll_.Tick() && !runs[input.node]) todo.push_back(input.node);
      }
    }
    return runs;
  }

  void SpreadTo(NodeId id, std::vector<uint64_t>* bits) {
    for (Tensor input : before_.inputs(id)) {
      if (!poll_.Tick() && !IsBackEdge(before_, input.node, id)) (*bits)[id] |= (*bits)[input.node];
    }
  }
  void SpreadFrom(NodeId id, std::vector<uint64_t>* bits) {
    const Graph::Readers readers = before_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      const NodeId reader = readers[i].node;
      if (!poll_.Tick() && !IsBackEdge(before_, id, reader)) (*bits)[id] |= (*bits)[reader];
    }
  }

  // Whether it is a reference or a handle.
  bool IsHolding(Tensor tensor) {
    const OutputType type = TypeOf(tensor);
    return type.is_ref || type.dtype == kDtResource;
  }

  // Of outputs that matter here, which are 0 for all ops with a reference but RefSwitch.
  OutputType TypeOf(Tensor tensor) {
    if (tensor.port != 0) return GetOutputType(before_, tensor);
    absl::optional<OutputType>& type = types_[tensor.node];
    if (!type) type = GetOutputType(before_, tensor);
    return *type;
  }

  const Graph& before_;
  const Graph& after_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<bool> moved_;  // Its device has changed.
  std::vector<bool> there_;  // It is on the first CPU of its task, by a move or from the beginning.
  absl::flat_hash_set<NodeId> fed_;
  std::vector<absl::optional<OutputType>> types_;  // Of outputs 0, once asked for.
};

}  // namespace

absl::Status VerifyMoves(const Graph& before, const Graph& after, const v1::Step& step,
                         const std::vector<NodeId>& targets, const StopToken& stop) {
  MoveVerifier verifier(before, after, stop);
  if (absl::Status s = verifier.Undo(); !s.ok()) return s;
  if (absl::Status s = verifier.Bodies(); !s.ok()) return s;
  if (absl::Status s = verifier.Colocations(); !s.ok()) return s;
  if (absl::Status s = verifier.Groups(step); !s.ok()) return s;
  return verifier.Races(step, targets);
}

}  // namespace spillway::core
