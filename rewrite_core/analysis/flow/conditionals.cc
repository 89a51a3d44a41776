#include "rewrite_core/analysis/flow/conditionals.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/saturating.h"

namespace spillway::core {
namespace {

// A predicate is followed back this far, as in control_flow.cc.
constexpr int kMaxHopsToPredicate = 64;

// Sides are weighed by walking over their dependents, which repeats for each level of nesting.
// Beyond this many walked edges per edge of the graph, predicates are assumed true. Real graphs
// nest a few deep.
constexpr int64_t kMaxWalksOfGraph = 64;

// For a Switch without a dead output. Differs from kControl, which is not a port.
constexpr int8_t kNoPort = -2;

}  // namespace

class SideFinder {
 public:
  SideFinder(const Graph& graph, const Topology& topology, const Shapes& shapes,
             const Placement& placement, const NodeFlags& needed, const StopToken& stop)
      : graph_(graph),
        topology_(topology),
        shapes_(shapes),
        placement_(placement),
        needed_(needed),
        stop_(stop),
        poll_(stop) {}

  absl::StatusOr<Conditionals> Run() {
    if (!FindSwitches()) return stop_.status("conditionals");
    if (known_.empty() && groups_.empty()) return std::move(result_);
    result_.dead_.assign(graph_.num_nodes(), false);
    result_.dead_port_.assign(graph_.num_nodes(), kNoPort);
    live_inputs_.assign(graph_.num_nodes(), -1);
    for (const auto& [id, value] : known_) {
      if (!KillSide(id, !value)) return stop_.status("conditionals");
    }
    if (!Spread()) return stop_.status("conditionals");
    for (const Group& group : groups_) {
      if (!Decide(group)) return stop_.status("conditionals");
    }
    return std::move(result_);
  }

 private:
  struct User {
    NodeId id;
    bool negated;
  };
  struct Group {
    Tensor predicate;
    std::vector<User> switches;
  };
  // The origin of a predicate, and its value if known.
  struct Origin {
    Tensor tensor;
    bool negated = false;
    absl::optional<bool> value;
  };

  // Each of these returns false if the call must end.

  bool FindSwitches() {
    absl::flat_hash_map<std::pair<NodeId, int32_t>, size_t> group_of;
    for (NodeId id : topology_.order()) {
      if (poll_.Tick()) return false;
      num_edges_ += static_cast<int64_t>(graph_.inputs(id).size());
      if (graph_.op_info(id).control_flow != ControlFlow::kSwitch || graph_.op(id) == "_SwitchN" ||
          shapes_.IsFed(id)) {
        continue;
      }
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (inputs.size() < 2 || inputs[0].is_control() || inputs[1].is_control()) continue;
      const Origin origin = OriginOf(inputs[1]);
      if (origin.value.has_value()) {
        known_.push_back({id, *origin.value});
        continue;
      }
      if (graph_.op_info(origin.tensor.node).control_flow == ControlFlow::kLoopCond) continue;
      const auto [it, is_new] =
          group_of.try_emplace({origin.tensor.node, origin.tensor.port}, groups_.size());
      if (is_new) groups_.push_back({origin.tensor, {}});
      groups_[it->second].switches.push_back({id, origin.negated});
    }
    return true;
  }

  Origin OriginOf(Tensor tensor) const {
    Origin origin;
    origin.tensor = tensor;
    for (int hop = 0; hop <= kMaxHopsToPredicate; ++hop) {
      const NodeId id = origin.tensor.node;
      const auto value = shapes_.value(origin.tensor);
      if (value && value->size() == 1 && (*value)[0] != kUnknownElement) {
        origin.value = ((*value)[0] != 0) != origin.negated;
        break;
      }
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (shapes_.IsFed(id) || inputs.empty() || inputs[0].is_control()) break;
      if (graph_.op(id) == "LogicalNot") {
        origin.negated = !origin.negated;
      } else if (graph_.op(id) != "Identity" && graph_.op(id) != "Switch") {
        break;
      }
      origin.tensor = inputs[0];
    }
    return origin;
  }

  // The output `port` of a Switch is dead.
  bool KillSide(NodeId id, bool port) {
    if (result_.dead_[id]) return true;
    result_.dead_port_[id] = static_cast<int8_t>(port);
    sides_.push_back(id);
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      ++walked_;
      if (poll_.Tick()) return false;
      if (readers[i].port != static_cast<int32_t>(port)) continue;
      if (!KillReader(id, readers[i])) return false;
    }
    return true;
  }

  bool KillReader(NodeId id, const Graph::Reader& reader) {
    const NodeId node = reader.node;
    if (result_.dead_[node] || shapes_.IsFed(node)) return true;
    if (graph_.op_info(node).control_flow == ControlFlow::kMerge) {
      // It waits for one data input, regardless of control inputs.
      if (reader.port == kControl || IsBackEdge(graph_, id, node)) return true;
      merges_.push_back(node);
      if (live_inputs_[node] < 0 && !CountLiveInputs(node)) return false;
      if (--live_inputs_[node] > 0) return true;
    }
    result_.dead_[node] = true;
    killed_.push_back(node);
    return true;
  }

  bool CountLiveInputs(NodeId merge) {
    int32_t& count = live_inputs_[merge];
    count = 0;
    for (Tensor input : graph_.inputs(merge)) {
      ++walked_;
      if (poll_.Tick()) return false;
      count += !input.is_control() && !IsBackEdge(graph_, input.node, merge);
    }
    return true;
  }

  // Propagates to everything that depends on the killed nodes.
  bool Spread() {
    for (; spread_ < killed_.size(); ++spread_) {
      const NodeId id = killed_[spread_];
      const Graph::Readers readers = graph_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        ++walked_;
        if (poll_.Tick()) return false;
        // A Merge has already counted that input.
        const bool told = readers[i].port != kControl && readers[i].port == result_.dead_port_[id];
        if (!told && !KillReader(id, readers[i])) return false;
      }
    }
    return true;
  }

  // By predicate and value: the nodes that would be dead.
  bool Kill(const Group& group, bool value) {
    for (const User& user : group.switches) {
      if (poll_.Tick() || !KillSide(user.id, value == user.negated)) return false;
    }
    return Spread();
  }

  void Forget() {
    killed_.clear();
    sides_.clear();
    merges_.clear();
    spread_ = 0;
  }

  bool Decide(const Group& group) {
    Forget();
    Conditionals::Choice choice;
    choice.predicate = group.predicate;
    for (const User& user : group.switches) choice.num_switches += !result_.dead_[user.id];
    if (choice.num_switches == 0) return true;
    for (const bool value : {false, true}) {
      if (walked_ / kMaxWalksOfGraph > num_edges_) break;
      if (!Kill(group, value)) return false;
      int64_t& bytes = choice.bytes[value ? 0 : 1];
      for (NodeId id : killed_) {
        bytes = SaturatingAdd(bytes, BytesMade(id));
        if (poll_.Tick() || !stop_.status("conditionals").ok()) return false;
      }
      for (NodeId id : killed_) result_.dead_[id] = false;
      for (NodeId id : sides_) result_.dead_port_[id] = kNoPort;
      for (NodeId id : merges_) ++live_inputs_[id];
      Forget();
    }
    choice.value = choice.bytes[1] >= choice.bytes[0];
    result_.choices_.push_back(choice);
    return Kill(group, choice.value);
  }

  // Bytes of device memory that a node of the step allocates.
  int64_t BytesMade(NodeId id) {
    if (!needed_[id] || graph_.op_info(id).control_flow != ControlFlow::kNone) return 0;
    // Many predicates may kill a node, and it may have very many outputs.
    const auto [found, is_new] = bytes_made_.try_emplace(id, 0);
    if (is_new) found->second = CountBytes(id);
    return found->second;
  }

  int64_t CountBytes(NodeId id) {
    int64_t bytes = 0;
    for (int port = 0; port < shapes_.num_outputs(id) && !poll_.Tick(); ++port) {
      const Tensor tensor{id, port};
      const int64_t size = shapes_.size_bytes(tensor);
      if (size == kUnknownSize || placement_.output(tensor) < 0 || IsHandedOn(tensor)) continue;
      bytes = SaturatingAdd(bytes, size);
    }
    return bytes;
  }

  // Whether the output probably shares the memory of input 0.
  bool IsHandedOn(Tensor tensor) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
    if (graph_.op_info(tensor.node).forwards == Forwards::kNo || inputs.empty() ||
        inputs[0].is_control()) {
      return false;
    }
    return shapes_.buffer_bytes(inputs[0]) == shapes_.size_bytes(tensor) &&
           shapes_.type(inputs[0]).dtype == shapes_.type(tensor).dtype;
  }

  const Graph& graph_;
  const Topology& topology_;
  const Shapes& shapes_;
  const Placement& placement_;
  const NodeFlags& needed_;
  const StopToken& stop_;
  StopPoller poll_;
  absl::flat_hash_map<NodeId, int64_t> bytes_made_;
  std::vector<std::pair<NodeId, bool>> known_;  // Switches with a known predicate, and its value.
  std::vector<Group> groups_;                   // The others, by predicate.
  std::vector<int32_t> live_inputs_;            // By Merge; -1: not counted yet.
  // For the current walk.
  std::vector<NodeId> killed_, sides_, merges_;
  size_t spread_ = 0;
  int64_t walked_ = 0;  // Edges, over all walks.
  int64_t num_edges_ = 0;
  Conditionals result_;
};

absl::StatusOr<Conditionals> Conditionals::Find(const Graph& graph, const Topology& topology,
                                                const Shapes& shapes, const Placement& placement,
                                                const NodeFlags& needed, const StopToken& stop) {
  return SideFinder(graph, topology, shapes, placement, needed, stop).Run();
}

}  // namespace spillway::core
