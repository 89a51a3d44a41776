#include "rewrite_core/plan/state_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/plan/late_reads.h"

namespace spillway::core {
namespace {

// A smaller group saves less than its kernels' launches cost.
constexpr int64_t kMinGroupBytes = int64_t{64} << 10;

// A tensor of at most this size crosses to the host for less than the latency of its copy: learning
// rates, loss scales, norms.
constexpr int64_t kScalarBytes = 64;

// A slot's name is a little longer than its variable's. (All parts of a name are looked up.)
constexpr size_t kMaxSlotName = 512;

// Readers of a group times its updates, and updates and holders in all whose order is looked at, 64
// in each pass over the graph. A group beyond these stays. (Real ones have some ten readers and one
// update, and networks some thousand variables.)
constexpr size_t kMaxPairs = 10'000, kMaxTraced = 16'384;

constexpr char kColocationPrefix[] = "loc:@";

// Ops that take a handle, besides those of variable_handles.h.
constexpr absl::string_view kHandleOps[] = {"VarIsInitializedOp", "VariableShape",
                                            "DestroyResourceOp"};

// Elementwise ops with the same result on both sides (IEEE 754; the GPU flushes denormals), and
// those that only reshape.
constexpr char kConeOps[] =
    "Abs Add AddN AddV2 Cast Div DivNoNan ExpandDims Greater GreaterEqual Identity Less LessEqual "
    "LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul MulNoNan Neg RealDiv Reciprocal Reshape "
    "Select SelectV2 Sign Square Squeeze StopGradient Sub ZerosLike";

bool IsFloating(DataType dtype) {
  return dtype == kDtFloat32 || dtype == kDtDouble || dtype == kDtHalf || dtype == kDtBfloat16;
}

bool TakesHandle(absl::string_view op) {
  return TakesVariable(op) ||
         std::find(std::begin(kHandleOps), std::end(kHandleOps), op) != std::end(kHandleOps);
}

// Whether a cone may have this node.
bool MayMove(const StepFacts& facts, NodeId id) {
  return MayBeInCone(facts.graph().op(id)) && facts.placement().node(id) != kHostPlace &&
         !facts.shapes().IsFed(id) && facts.active_nodes().needed[id] &&
         facts.control_flow().input_frame(id) == kRootFrame;
}

bool IsSmall(const StepFacts& facts, Tensor tensor) {
  const int64_t bytes = facts.shapes().size_bytes(tensor);
  return (bytes >= 0 && bytes <= kScalarBytes) || facts.graph().op(tensor.node) == "Const";
}

// The groups while they are found: a union-find over variables.
class Finder {
 public:
  Finder(const StepFacts& facts, const StopToken& stop)
      : facts_(facts), graph_(facts.graph()), stop_(stop), poll_(stop) {}

  absl::StatusOr<std::vector<StateGroup>> Find() {
    top_.resize(graph_.num_nodes());
    std::iota(top_.begin(), top_.end(), NodeId(0));
    variable_of_.assign(graph_.num_nodes(), kNoNode);
    for (NodeId id : facts_.topology().order()) {
      if (poll_.Tick()) return stop_.status("analysis");
      Visit(id);
    }
    JoinSlots();
    if (poll_.stopped()) return stop_.status("analysis");
    Collect();
    for (StateGroup& group : groups_) Judge(&group);
    if (poll_.stopped()) return stop_.status("analysis");
    if (absl::Status s = KeepRaces(); !s.ok()) return s;
    groups_.erase(std::remove_if(groups_.begin(), groups_.end(),
                                 [](const StateGroup& group) { return group.updates.empty(); }),
                  groups_.end());
    return std::move(groups_);
  }

 private:
  struct Holder {
    NodeId node, variable;
  };
  // A node that keeps a group on the GPU.
  struct Obstacle {
    NodeId variable;
    v1::StateKept why;
    NodeId node;
  };

  NodeId Top(NodeId id) {
    while (top_[id] != id) {
      top_[id] = top_[top_[id]];
      id = top_[id];
    }
    return id;
  }
  // The first variable of the file stands for the group.
  void Join(NodeId a, NodeId b) {
    a = Top(a);
    b = Top(b);
    if (a != b) top_[std::max(a, b)] = std::min(a, b);
  }

  bool IsVariable(NodeId id) const {
    return IsVariableOp(graph_.op(id)) || facts_.shapes().captured_variable(id) != kDtInvalid;
  }

  void Visit(NodeId id) {
    const absl::string_view op = graph_.op(id);
    if (IsVariable(id)) {
      variable_of_[id] = id;
      variables_.push_back(id);
      if (facts_.shapes().captured_variable(id) != kDtInvalid) {
        obstacles_.push_back({id, v1::STATE_KEPT_CAPTURED, id});
      }
      return;
    }
    NodeId first = kNoNode;  // The group that it holds.
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      const NodeId variable = variable_of_[inputs[i].node];
      if (poll_.Tick() || variable == kNoNode) continue;
      const OutputType type = facts_.shapes().type(inputs[i]);
      const bool is_handle = type.dtype == kDtResource;
      if (!type.is_ref && !is_handle) continue;
      const bool is_known =
          is_handle ? TakesHandle(op) || ForwardsHandle(op) : graph_.op_info(id).known;
      if (!is_known) {
        obstacles_.push_back({variable, v1::STATE_KEPT_OP, id});
        continue;
      }
      if (type.is_ref && !TakesReference(op, graph_.op_info(id)) && op != "Identity") {
        continue;  // It reads the value, which may be copied to it.
      }
      if (first == kNoNode) {
        first = variable;
        holders_.push_back({id, variable});
        const bool hands_on =
            type.is_ref ? facts_.shapes().type({id, 0}).is_ref : ForwardsHandle(op);
        if (hands_on) variable_of_[id] = variable;
      } else {
        Join(first, variable);
      }
    }
  }

  int64_t BytesOf(NodeId variable) const {
    const Buffers& buffers = facts_.buffers();
    return buffers.num_outputs(variable) > 0 ? buffers.bytes({variable, 0}) : kUnknownSize;
  }

  // Slots that no update takes together with their variable (a composite optimizer's): TensorFlow 1
  // colocates them with it, and all name them VAR/SLOT.
  void JoinSlots() {
    absl::flat_hash_map<absl::string_view, NodeId> by_name;
    for (NodeId id : variables_) by_name[graph_.name(id)] = id;
    const auto join = [&](NodeId slot, absl::string_view name) {
      const auto found = by_name.find(name);
      if (found == by_name.end() || BytesOf(found->second) != BytesOf(slot)) return false;
      Join(slot, found->second);
      return true;
    };
    for (NodeId id : variables_) {
      const auto classes = graph_.attr(id, kClassAttr);
      for (absl::string_view item : AttrStrings(classes.value_or(absl::string_view()))) {
        if (poll_.Tick()) return;
        join(id, ColocatedWith(item));
      }
      absl::string_view name = graph_.name(id);
      if (name.size() > kMaxSlotName) continue;
      for (size_t cut = name.rfind('/'); cut != absl::string_view::npos && cut > 0;
           cut = name.rfind('/')) {
        name = name.substr(0, cut);
        if (poll_.Tick() || join(id, name)) break;
      }
    }
  }

  void Collect() {
    std::sort(variables_.begin(), variables_.end());
    absl::flat_hash_map<NodeId, size_t> index;
    for (NodeId id : variables_) {
      if (poll_.Tick()) return;
      const auto [found, is_new] = index.try_emplace(Top(id), groups_.size());
      if (is_new) groups_.emplace_back();
      groups_[found->second].variables.push_back(id);
    }
    std::sort(holders_.begin(), holders_.end(),
              [](const Holder& a, const Holder& b) { return a.node < b.node; });
    group_of_.assign(graph_.num_nodes(), kNoGroup);
    for (NodeId id : variables_) group_of_[id] = static_cast<int32_t>(index[Top(id)]);
    for (const Holder& holder : holders_) {
      if (poll_.Tick()) return;
      const size_t of = index[Top(holder.variable)];
      group_of_[holder.node] = static_cast<int32_t>(of);
      StateGroup& group = groups_[of];
      group.holders.push_back(holder.node);
      if (facts_.active_nodes().needed[holder.node] &&
          WriteOf(graph_.op(holder.node)) != Write::kNone) {
        group.updates.push_back(holder.node);
      }
    }
    for (const Obstacle& obstacle : obstacles_) {
      if (poll_.Tick()) return;
      Keep(&groups_[index[Top(obstacle.variable)]], obstacle.why, obstacle.node);
    }
  }

  static void Keep(StateGroup* group, v1::StateKept why, NodeId node) {
    if (group->kept != v1::STATE_KEPT_UNSPECIFIED) return;
    group->kept = why;
    group->in_the_way = node;
  }

  // The rules for one group alone.
  void Judge(StateGroup* group) {
    const Placement& placement = facts_.placement();
    group->gpu = placement.node(group->variables[0]);
    const std::string host = HostDeviceOf(graph_.device(group->variables[0]));
    for (NodeId id : group->variables) {
      if (poll_.Tick()) return;
      const int64_t bytes = BytesOf(id);
      if (placement.node(id) != group->gpu || HostDeviceOf(graph_.device(id)) != host) {
        Keep(group, v1::STATE_KEPT_DEVICES, id);
      }
      const auto held = graph_.attr(id, "dtype");
      if (!IsFloating(held ? AttrType(*held) : kDtInvalid)) Keep(group, v1::STATE_KEPT_TYPE, id);
      if (bytes == kUnknownSize) Keep(group, v1::STATE_KEPT_SIZE, id);
      if (bytes > 0) group->bytes = SaturatingAdd(group->bytes, bytes);
      if (facts_.shapes().IsFed(id)) Keep(group, v1::STATE_KEPT_FED, id);
    }
    if (group->gpu == kHostPlace) group->updates.clear();  // On the host already.
    if (group->bytes < kMinGroupBytes) Keep(group, v1::STATE_KEPT_SIZE, group->variables[0]);
    for (NodeId id : group->holders) {
      if (poll_.Tick()) return;
      if (facts_.shapes().IsFed(id)) Keep(group, v1::STATE_KEPT_FED, id);
      if (facts_.control_flow().input_frame(id) != kRootFrame) Keep(group, v1::STATE_KEPT_LOOP, id);
    }
  }

  // A read that an update does not wait for, and that does not wait for the update, races with it.
  // Moved, another of the two would usually win. A read by handle takes the value when it runs. A
  // reference variable is copied to the GPU once for all readers of a read, from the variable's own
  // memory: before an update if one of these readers leads to it.
  absl::Status KeepRaces() {
    std::vector<LateRead> reads, waits;  // Reader and update; update and read (as a LateRead).
    size_t updates = 0, nodes = 0;
    for (StateGroup& group : groups_) {
      if (poll_.Tick()) return stop_.status("analysis");
      if (group.kept != v1::STATE_KEPT_UNSPECIFIED || group.updates.empty()) continue;
      size_t readers = group.holders.size() + group.variables.size();
      for (NodeId id : group.variables) readers += graph_.readers(id).size();
      for (NodeId id : group.holders) readers += graph_.readers(id).size();
      if (readers * group.updates.size() > kMaxPairs ||
          updates + group.updates.size() > kMaxTraced || nodes + readers > kMaxTraced) {
        Keep(&group, v1::STATE_KEPT_RACE, group.updates[0]);
        continue;
      }
      updates += group.updates.size();
      nodes += group.holders.size() + group.variables.size();
    }
    const auto each = [&](const auto& look) {
      for (StateGroup& group : groups_) {
        if (group.kept != v1::STATE_KEPT_UNSPECIFIED || group.updates.empty()) continue;
        for (const std::vector<NodeId>* of : {&group.variables, &group.holders}) {
          for (NodeId id : *of) {
            if (MayRace(id)) look(&group, id);
          }
        }
      }
    };
    each([&](StateGroup* group, NodeId read) {
      for (NodeId update : group->updates) {
        if (update == read) continue;
        waits.push_back({read, update});
        EachRacer(read, [&](NodeId reader) { reads.push_back({update, reader}); });
      }
    });
    if (poll_.stopped()) return stop_.status("analysis");
    auto unwaited = FindUnguarded(facts_, std::move(waits), stop_);
    if (!unwaited.ok()) return unwaited.status();
    auto unled = FindUnguarded(facts_, std::move(reads), stop_);
    if (!unled.ok()) return unled.status();
    const auto has = [](const std::vector<LateRead>& sorted, LateRead read) {
      return std::binary_search(sorted.begin(), sorted.end(), read);
    };
    each([&](StateGroup* group, NodeId read) {
      for (NodeId update : group->updates) {
        if (update == read || !has(*unwaited, {read, update})) continue;
        NodeId racer = kNoNode;
        bool leads = false;
        EachRacer(read, [&](NodeId reader) {
          if (has(*unled, {update, reader}))
            racer = reader;
          else
            leads = true;
        });
        if (racer != kNoNode && !leads) Keep(group, v1::STATE_KEPT_RACE, racer);
      }
    });
    return poll_.stopped() ? stop_.status("analysis") : absl::OkStatus();
  }

  // Whether its output is the memory of a reference variable, or the value behind a handle.
  bool MayRace(NodeId read) const {
    if (facts_.shapes().type({read, 0}).is_ref) return true;
    const absl::Span<const Tensor> inputs = graph_.inputs(read);
    if (inputs.empty() || inputs[0].is_control()) return false;
    return graph_.op(read) == "Identity" ? facts_.shapes().type(inputs[0]).is_ref
                                         : ReadsByHandle(read);
  }
  bool ReadsByHandle(NodeId id) const {
    return TakesVariable(graph_.op(id)) && WriteOf(graph_.op(id)) == Write::kNone;
  }

  // The nodes that must come before an update for the read to do so: it suffices that one does.
  template <typename Work>
  void EachRacer(NodeId read, const Work& work) {
    if (!ReadsByHandle(read)) return EachReader(read, work);
    if (facts_.active_nodes().needed[read] && HasDataReader(graph_, read)) work(read);
  }

  // The nodes of the step on a GPU that read output 0 of this node of a group, and stay there if it
  // moves.
  template <typename Work>
  void EachReader(NodeId read, const Work& work) {
    const Graph::Readers readers = graph_.readers(read);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      const NodeId reader = readers[i].node;
      if (poll_.Tick() || readers[i].port == kControl) continue;
      // As the verifier, which knows no kernels, sees it.
      if (!facts_.active_nodes().needed[reader] || IsCpuDevice(graph_.device(reader))) continue;
      if (!MovesAlong(reader, group_of_[read])) work(reader);
    }
  }

  // Whether the node is in the group, or in the cone that moves with it alone.
  bool MovesAlong(NodeId id, int32_t group) {
    constexpr size_t kMaxLooks = 64;  // A moving average has three nodes, an update by hand ten.
    if (group_of_[id] == group) return true;
    std::vector<NodeId> todo = {id};
    for (size_t done = 0; done < todo.size(); ++done) {
      const NodeId node = todo[done];
      if (todo.size() > kMaxLooks || !MayMove(facts_, node)) return false;
      int large = 0;
      for (Tensor input : graph_.inputs(node)) {
        if (poll_.Tick() || input.is_control()) break;
        large += group_of_[input.node] != group && !IsSmall(facts_, input);
      }
      if (large > 1) return false;
      const Graph::Readers readers = graph_.readers(node);
      if (readers.size() > kMaxLooks || !HasDataReader(graph_, node)) return false;
      for (uint32_t i = 0; i < readers.size(); ++i) {
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl || group_of_[reader] == group) continue;
        if (std::find(todo.begin(), todo.end(), reader) == todo.end()) todo.push_back(reader);
      }
    }
    return true;
  }

  const StepFacts& facts_;
  const Graph& graph_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<NodeId> top_;          // Of variables: the union-find.
  std::vector<NodeId> variable_of_;  // Of nodes that output a reference or handle: whose.
  std::vector<NodeId> variables_;
  std::vector<Holder> holders_;
  std::vector<Obstacle> obstacles_;
  std::vector<StateGroup> groups_;
  static constexpr int32_t kNoGroup = -1;
  std::vector<int32_t> group_of_;  // By node: the index of its group.
};

// The nodes that move with a set of groups: by node, whether it moves.
class Mover {
 public:
  Mover(const StepFacts& facts, const StopToken& stop)
      : facts_(facts),
        graph_(facts.graph()),
        poll_(stop),
        moves_(graph_.num_nodes(), false),
        light_(graph_.num_nodes(), false) {}

  void Add(const StateGroup& group) {
    for (NodeId id : group.variables) moves_[id] = true;
    for (NodeId id : group.holders) moves_[id] = true;
  }

  void AddGathers(const StateGroup& group) {
    for (NodeId read : group.holders) {
      if (!poll_.Tick() && AreRowsSmaller(read)) {
        EachReader(read, [&](NodeId gather) { moves_[gather] = true; });
      }
    }
  }

  void AddCone() {
    const std::vector<NodeId>& order = facts_.topology().order();
    for (NodeId id : order) {
      if (poll_.Tick()) return;
      light_[id] = MayMove(facts_, id) && IsMadeOnHost(id);
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (poll_.Tick()) return;
      if (moves_[*it] || !MayMove(facts_, *it)) continue;
      bool is_read = false, stays = false;
      EachReader(*it, [&](NodeId reader) {
        is_read = true;
        stays = stays || !moves_[reader];
      });
      if (is_read && !stays && CountLarge(*it) <= 1) moves_[*it] = true;
    }
  }

  std::vector<NodeId> Take() const {
    std::vector<NodeId> nodes;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (moves_[id]) nodes.push_back(id);
    }
    return nodes;
  }

 private:
  // How many of its inputs are copied to the host if it moves, scalars aside.
  int CountLarge(NodeId id) {
    int large = 0;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick() || input.is_control()) break;
      large += !moves_[input.node] && !light_[input.node] && !IsSmall(facts_, input);
    }
    return large;
  }

  // Whether all that it reads is on the host or small, and something is on the host.
  bool IsMadeOnHost(NodeId id) {
    bool any = false;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick() || input.is_control()) break;
      any = any || moves_[input.node] || light_[input.node];
    }
    return any && CountLarge(id) == 0;
  }

  // Whether only gathers read this value of a variable, and the rows that they take are smaller.
  bool AreRowsSmaller(NodeId read) {
    if (graph_.op(read) != "Identity" && graph_.op(read) != "ReadVariableOp") return false;
    int64_t rows = 0;
    bool is_read = false, others = false;
    EachReader(read, [&](NodeId reader) {
      const bool is_gather = graph_.op(reader) == "GatherV2" || graph_.op(reader) == "Gather";
      others = others || !is_gather || graph_.inputs(reader)[0].node != read ||
               facts_.shapes().IsFed(reader);
      const int64_t bytes = facts_.shapes().size_bytes({reader, 0});
      others = others || bytes == kUnknownSize;
      rows = SaturatingAdd(rows, std::max<int64_t>(bytes, 0));
      is_read = true;
    });
    return is_read && !others && rows < facts_.shapes().size_bytes({read, 0});
  }

  template <typename Work>
  void EachReader(NodeId id, const Work& work) {
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (!poll_.Tick() && readers[i].port != kControl) work(readers[i].node);
    }
  }

  const StepFacts& facts_;
  const Graph& graph_;
  StopPoller poll_;
  std::vector<bool> moves_;
  std::vector<bool> light_;  // The host can make it from tensors there and scalars.
};

}  // namespace

absl::StatusOr<StateGroups> StateGroups::Find(const StepFacts& facts, const StopToken& stop) {
  absl::Status s = facts.Compute({Fact::kTopology, Fact::kShapes, Fact::kControlFlow,
                                  Fact::kPlacement, Fact::kBuffers, Fact::kActiveNodes},
                                 stop);
  if (!s.ok()) return s;
  StateGroups groups(facts);
  auto found = Finder(facts, stop).Find();
  if (!found.ok()) return found.status();
  groups.groups_ = *std::move(found);
  return groups;
}

absl::StatusOr<std::vector<NodeId>> StateGroups::NodesOf(absl::Span<const size_t> chosen,
                                                         const StopToken& stop) const {
  Mover mover(*facts_, stop);
  for (size_t i : chosen) mover.Add(groups_[i]);
  for (size_t i : chosen) mover.AddGathers(groups_[i]);
  mover.AddCone();
  if (absl::Status s = stop.status("analysis"); !s.ok()) return s;
  return mover.Take();
}

bool TakesReference(absl::string_view op, const OpInfo& info) {
  return absl::StrContains(info.outputs, '&') || op == "IsVariableInitialized" ||
         op == "CountUpTo" || op == "DestroyTemporaryVariable" || !info.known;
}

bool MayBeInCone(absl::string_view op) {
  static const auto& ops = *new absl::flat_hash_map<absl::string_view, bool>([] {
    absl::flat_hash_map<absl::string_view, bool> all;
    for (absl::string_view each : absl::StrSplit(kConeOps, ' ')) all[each] = true;
    return all;
  }());
  return ops.contains(op);
}

absl::string_view ColocatedWith(absl::string_view item) {
  return absl::ConsumePrefix(&item, kColocationPrefix) ? item : absl::string_view();
}

absl::Status WriteMoves(const Graph& graph, absl::Span<const NodeId> nodes, const StopToken& stop,
                        GraphEdit* edit) {
  StopPoller poll(stop);
  std::vector<std::string> hosts(graph.num_devices());  // By device id.
  for (DeviceId id(0); id < graph.num_devices(); ++id) {
    hosts[id] = HostDeviceOf(graph.device_name(id));
  }
  // Some may be there already: holders that the graph has on the CPU.
  std::vector<bool> moves(graph.num_nodes(), false);
  const auto is_there = [&](NodeId id) {
    return moves[id] || graph.device(id) == hosts[graph.device_id(id)];
  };
  for (NodeId id : nodes) moves[id] = !is_there(id);
  for (NodeId id(0); id < graph.num_nodes() && !edit->too_large(); ++id) {
    if (poll.Tick()) return stop.status("apply");
    GraphEdit::Placing placing{id, {}, {}};
    if (moves[id]) placing.device = hosts[graph.device_id(id)];
    const auto classes = graph.attr(id, kClassAttr);
    const auto items = AttrStrings(classes.value_or(absl::string_view()));
    std::vector<std::string> kept;
    for (absl::string_view item : items) {
      if (poll.Tick()) return stop.status("apply");
      const NodeId with = graph.Find(ColocatedWith(item));
      const bool is_across =
          with != kNoNode && (moves[with] || moves[id]) && is_there(with) != is_there(id);
      if (!is_across) kept.emplace_back(item);
    }
    if (kept.size() < items.size()) placing.colocations = std::move(kept);
    if (placing.device || placing.colocations) edit->PlaceNode(std::move(placing));
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
