#include "rewrite_core/simulate/workload_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/analysis/device_name.h"

namespace spillway::core {
namespace {

constexpr OpId kNoOperation = -1;
constexpr BufferId kNoBufferId = -1;

// Items of many lists in any order, made into lists at the end.
class ListItems {
 public:
  void Add(int32_t list, int32_t item) { items_.push_back({list, item}); }
  // Gives list i the number `to`[i].
  void RenumberLists(const std::vector<int32_t>& to) {
    for (Item& item : items_) item.list = to[item.list];
  }
  // Each list in the order of Add; items for which `map` is negative are left out.
  template <typename Map>
  IndexLists Build(int32_t num_lists, Map map) const {
    std::vector<int32_t> begin(num_lists + 1, 0);
    for (const Item& item : items_) ++begin[item.list + 1];
    for (int32_t i = 0; i < num_lists; ++i) begin[i + 1] += begin[i];
    std::vector<int32_t> sorted(items_.size()), next(begin.begin(), begin.end() - 1);
    for (const Item& item : items_) sorted[next[item.list]++] = item.item;
    IndexLists lists;
    for (int32_t i = 0; i < num_lists; ++i) {
      for (int32_t at = begin[i]; at < begin[i + 1]; ++at) {
        const int32_t item = map(sorted[at]);
        if (item >= 0) lists.Add(item);
      }
      lists.EndList();
    }
    return lists;
  }

 private:
  struct Item {
    int32_t list, item;
  };
  std::vector<Item> items_;
};

class Builder {
 public:
  Builder(const StepFacts& facts, const SwapPlan* plan, const StopToken& stop)
      : facts_(facts), graph_(facts.graph()), stop_(stop), poll_(stop) {
    num_nodes_ = graph_.num_nodes();
    if (plan != nullptr) AddPlan(*plan);
  }

  absl::StatusOr<Workload> Build(WorkloadNotes* notes);

 private:
  // A swap node of the plan. Its id is num_nodes_ plus its position.
  struct SwapNode {
    Tensor tensor;  // What travels, as the graph has it.
    Tensor input;   // What it reads: that, or the swap-out.
    absl::Span<const NodeId> triggers;
    Place place;        // Where it stands.
    int32_t next = -1;  // The next one for the same producer.
  };
  // A change to the inputs of an original node: input `index` is `tensor`; or, from kAppended on, a
  // control input more.
  static constexpr int32_t kAppended = 1 << 30;
  struct Edit {
    NodeId node;
    int32_t index;
    Tensor tensor;
  };
  // A tensor as some memory has it: its buffer there, and the operation that puts it there.
  struct View {
    BufferId buffer = kNoBufferId;
    OpId op = kNoOperation;
  };
  // An output that may take over the memory of one of some inputs.
  struct Reuse {
    OpId op;
    BufferId output;
    int32_t begin, end;  // In candidates_.
  };

  bool IsSwapNode(NodeId id) const { return id >= num_nodes_; }
  Tensor Original(Tensor t) const { return IsSwapNode(t.node) ? swap(t.node).tensor : t; }
  const SwapNode& swap(NodeId id) const { return swap_nodes_[id - num_nodes_]; }
  int32_t index(Tensor t) const {
    return IsSwapNode(t.node) ? facts_.buffers().num_tensors() + (t.node - num_nodes_)
                              : facts_.buffers().index(t);
  }
  BufferId& buffer_of(Tensor t) { return buffer_of_[index(t)]; }
  Place place(Tensor t) const {
    return IsSwapNode(t.node) ? swap(t.node).place : facts_.buffers().place(t);
  }
  absl::Span<const Tensor> Inputs(NodeId id) const {
    if (!IsSwapNode(id) && facts_.shapes().IsFed(id)) return {};
    if (edited_.empty() || edited_[id].second < 0) return graph_.inputs(id);
    return absl::MakeSpan(edited_inputs_).subspan(edited_[id].first, edited_[id].second);
  }

  void AddPlan(const SwapPlan& plan);
  NodeId AddSwapNode(const SwapNode& node) {
    const NodeId id = num_nodes_ + static_cast<NodeId>(swap_nodes_.size());
    swap_nodes_.push_back(node);
    return id;
  }
  void EditInputs(std::vector<Edit> edits);
  absl::Status FindActive();
  void MakeOps();
  OpId AddOp(OpKind kind, Place device, int64_t duration_ns, NodeId node);
  BufferId AddBuffer(Place place, int64_t bytes, bool resident, Tensor tensor);
  View Get(Tensor tensor, Place want);
  View MakeCopy(Tensor tensor, Place from, Place want);
  void AddNode(NodeId id);
  void AddOutput(Tensor tensor, OpId op);
  void Wait(OpId op, OpId before);
  void Read(OpId op, BufferId buffer);
  void SortCopies();
  void FinishReuses();
  void Finish();

  const StepFacts& facts_;
  const Graph& graph_;
  const StopToken& stop_;
  StopPoller poll_;
  NodeId num_nodes_;
  // The plan.
  std::vector<SwapNode> swap_nodes_;
  std::vector<int32_t> first_swap_node_;             // By producer; empty without a plan.
  std::vector<std::pair<int32_t, int32_t>> edited_;  // By node: begin and size in the next.
  std::vector<Tensor> edited_inputs_;
  // What is built.
  std::vector<bool> runs_;
  std::vector<OpId> op_of_;
  std::vector<BufferId> buffer_of_;  // By tensor.
  // By tensor and where it was copied to.
  absl::flat_hash_map<std::pair<int32_t, Place>, View> copies_;
  std::vector<std::pair<int32_t, Place>> copy_keys_;  // By copy operation: the key there.
  ListItems waits_for_, reads_, writes_, reuses_;
  std::vector<Reuse> reuse_list_;
  std::vector<BufferId> candidates_;
  std::vector<View> views_;       // Of the inputs of the node at hand.
  std::vector<OpId> waited_;      // By operation: who waits for it already, of late.
  std::vector<OpId> read_;        // By buffer: who reads it already, of late.
  std::vector<int32_t> readers_;  // By buffer: how many.
  std::vector<int32_t> uses_;     // By buffer: inputs of the node at hand.
  std::vector<bool> travels_;     // By buffer: read or written by a copy.
  Workload workload_;
  WorkloadNotes notes_;
};

void Builder::AddPlan(const SwapPlan& plan) {
  first_swap_node_.assign(num_nodes_, -1);
  std::vector<Edit> edits;
  const bool has_device = !plan.cpu_device.empty();
  const Place given = has_device ? facts_.placement().Resolve(plan.cpu_device) : kHostPlace;
  for (const PlannedSwap& planned : plan.swaps) {
    const Tensor t = planned.tensor;
    const NodeId out = AddSwapNode({t, t, {}, given, first_swap_node_[t.node]});
    first_swap_node_[t.node] = out - num_nodes_;
    for (const PlannedSwapIn& planned_in : planned.swap_ins) {
      // Behind the swap-out in the list, which is walked from its head.
      const NodeId in = AddSwapNode(
          {t, {out, 0}, planned_in.triggers, given, swap_nodes_[out - num_nodes_].next});
      swap_nodes_[out - num_nodes_].next = in - num_nodes_;
      for (const InputPosition& consumer : planned_in.consumers) {
        edits.push_back({consumer.node, consumer.index, {in, 0}});
      }
    }
    for (size_t i = 0; i < planned.swap_ins.size(); ++i) {
      for (NodeId node : planned.swap_ins[i].paces) {
        edits.push_back({node, kAppended, {out + 1 + static_cast<NodeId>(i), kControl}});
      }
    }
    for (NodeId node : planned.waiting) edits.push_back({node, kAppended, {out, kControl}});
  }
  for (const ControlEdge& control : plan.controls) {
    edits.push_back({control.to, kAppended, {control.from, kControl}});
  }
  EditInputs(std::move(edits));
}

void Builder::EditInputs(std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return std::pair(a.node, a.index) < std::pair(b.node, b.index);
  });
  edited_.assign(num_nodes_ + swap_nodes_.size(), {0, -1});
  for (size_t i = 0; i < edits.size();) {
    const NodeId node = edits[i].node;
    const int32_t begin = static_cast<int32_t>(edited_inputs_.size());
    const absl::Span<const Tensor> inputs = graph_.inputs(node);
    edited_inputs_.insert(edited_inputs_.end(), inputs.begin(), inputs.end());
    for (; i < edits.size() && edits[i].node == node; ++i) {
      if (edits[i].index == kAppended) {
        edited_inputs_.push_back(edits[i].tensor);
      } else {
        edited_inputs_[begin + edits[i].index] = edits[i].tensor;
      }
    }
    edited_[node] = {begin, static_cast<int32_t>(edited_inputs_.size()) - begin};
  }
  for (size_t i = 0; i < swap_nodes_.size(); ++i) {
    const int32_t begin = static_cast<int32_t>(edited_inputs_.size());
    edited_inputs_.push_back(swap_nodes_[i].input);
    for (NodeId trigger : swap_nodes_[i].triggers) edited_inputs_.push_back({trigger, kControl});
    edited_[num_nodes_ + i] = {begin, static_cast<int32_t>(edited_inputs_.size()) - begin};
  }
}

// Of a graph with a plan: what the targets need now, triggers among it. That is what they needed
// before (a swap hands on what was read), and what the edited inputs of that lead to.
absl::Status Builder::FindActive() {
  runs_ = facts_.active_nodes().flags;
  if (first_swap_node_.empty()) return absl::OkStatus();
  runs_.resize(num_nodes_ + swap_nodes_.size(), false);
  std::vector<NodeId> stack;
  const auto visit = [&](NodeId id) {
    if (runs_[id]) return;
    runs_[id] = true;
    stack.push_back(id);
  };
  for (NodeId id = 0; id < num_nodes_; ++id) {
    if (!runs_[id] || edited_[id].second < 0) continue;
    for (Tensor input : Inputs(id)) visit(input.node);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (Tensor input : Inputs(id)) {
      if (poll_.Tick()) return stop_.status("workload");
      visit(input.node);
    }
  }
  return absl::OkStatus();
}

OpId Builder::AddOp(OpKind kind, Place device, int64_t duration_ns, NodeId node) {
  WorkloadOp op;
  op.kind = kind;
  op.device = device;
  op.duration_ns = duration_ns;
  op.node = node;
  workload_.ops.push_back(op);
  waited_.push_back(kNoOperation);
  return static_cast<OpId>(workload_.ops.size()) - 1;
}

BufferId Builder::AddBuffer(Place place, int64_t bytes, bool resident, Tensor tensor) {
  // kHostPlace is the workload's -1.
  workload_.buffers.push_back({bytes, place, resident, tensor});
  read_.push_back(kNoOperation);
  readers_.push_back(0);
  uses_.push_back(0);
  travels_.push_back(false);
  return static_cast<BufferId>(workload_.buffers.size()) - 1;
}

void Builder::MakeOps() {
  op_of_.assign(runs_.size(), kNoOperation);
  for (NodeId id = 0; id < num_nodes_; ++id) {
    if (!runs_[id]) continue;
    const Place where = facts_.placement().node(id);
    const NodeCost& cost = facts_.costs()[id];
    op_of_[id] =
        AddOp(where == kHostPlace ? OpKind::kHost : OpKind::kCompute, where, cost.duration_ns, id);
    if (where != kHostPlace) workload_.ops.back().workspace_bytes = cost.workspace_bytes;
    notes_.unknown_costs += !cost.is_known;
    if (where != kHostPlace && cost.is_call) {
      workload_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_CALLS, where, id);
    }
  }
  for (size_t i = 0; i < swap_nodes_.size(); ++i) {
    if (!runs_[num_nodes_ + i]) continue;
    const SwapNode& node = swap_nodes_[i];
    op_of_[num_nodes_ + i] = AddOp(node.place == kHostPlace ? OpKind::kHost : OpKind::kCompute,
                                   node.place, 0, node.tensor.node);
  }
}

void Builder::Wait(OpId op, OpId before) {
  if (before == kNoOperation || waited_[before] == op) return;
  waited_[before] = op;
  waits_for_.Add(op, before);
}

void Builder::Read(OpId op, BufferId buffer) {
  if (buffer == kNoBufferId || read_[buffer] == op) return;
  // A handle may lead to a variable of another device, which it does not read from there.
  const int32_t device = workload_.buffers[buffer].device;
  if (device != kHostPlace && device != workload_.ops[op].device) return;
  read_[buffer] = op;
  ++readers_[buffer];
  reads_.Add(op, buffer);
}

Builder::View Builder::Get(Tensor tensor, Place want) {
  const Place have = place(tensor);
  if (have == want || have == kNoMemory || want == kNoMemory) {
    return {buffer_of(tensor), op_of_[tensor.node]};
  }
  const auto [copy, is_new] = copies_.try_emplace({index(tensor), want});
  if (is_new) copy->second = MakeCopy(tensor, have, want);
  return copy->second;
}

Builder::View Builder::MakeCopy(Tensor tensor, Place from, Place want) {
  const Tensor original = Original(tensor);
  const int64_t bytes = facts_.buffers().bytes(original);
  View view{buffer_of(tensor), op_of_[tensor.node]};
  const auto step = [&](OpKind kind, Place device, Place to, double rate) {
    const OpId op =
        AddOp(kind, device, CopyNanoseconds(facts_.hardware(), rate, bytes), original.node);
    copy_keys_.push_back({index(tensor), want});
    Wait(op, view.op);
    Read(op, view.buffer);
    const BufferId written = AddBuffer(to, bytes, false, original);
    writes_.Add(op, written);
    travels_[view.buffer] = travels_[written] = true;
    view = {written, op};
  };
  if (from != kHostPlace) {
    step(OpKind::kCopyOut, from, kHostPlace, facts_.hardware().d2h_bytes_per_s);
  }
  if (want != kHostPlace) {
    step(OpKind::kCopyIn, want, want, facts_.hardware().h2d_bytes_per_s);
  }
  return view;
}

// `views_` are those of the node's inputs.
void Builder::AddOutput(Tensor tensor, OpId op) {
  const Buffers& buffers = facts_.buffers();
  const Place where = buffers.place(tensor);
  const int64_t bytes = buffers.bytes(tensor);
  BufferId& buffer = buffer_of(tensor);
  const int32_t alias = buffers.alias_input(tensor);
  if (alias != kNoAlias && alias < static_cast<int32_t>(views_.size())) {
    const BufferId shared = views_[alias].buffer;
    if (shared != kNoBufferId &&
        (where == kNoMemory || workload_.buffers[shared].device == where)) {
      buffer = shared;
      if (where != kNoMemory) {
        workload_.buffers[shared].bytes = std::max(workload_.buffers[shared].bytes, bytes);
      }
      return;
    }
  }
  if (buffers.storage(tensor) == Storage::kVariable && alias == kNoAlias) {
    buffer = AddBuffer(facts_.placement().node(tensor.node), bytes, true, tensor);
    return;
  }
  if (where == kNoMemory) return;
  const bool constant = buffers.storage(tensor) == Storage::kConstant && alias == kNoAlias;
  buffer = AddBuffer(where, bytes, constant, tensor);
  if (constant) return;
  writes_.Add(op, buffer);
  const uint32_t reusable = buffers.reusable_inputs(tensor);
  if (reusable == 0 || where == kHostPlace) return;
  Reuse reuse{op, buffer, static_cast<int32_t>(candidates_.size()), 0};
  const DataType dtype = facts_.shapes().type(tensor).dtype;
  const absl::Span<const Tensor> inputs = Inputs(tensor.node);
  for (size_t i = 0; i < views_.size(); ++i) {
    const bool listed = reusable == Buffers::kAnyInput || (i < 32 && (reusable >> i & 1) != 0);
    if (!listed || views_[i].buffer == kNoBufferId) continue;
    if (facts_.shapes().type(Original(inputs[i])).dtype != dtype) continue;
    if (uses_[views_[i].buffer] > 1) continue;  // Read at two inputs, it has two holders.
    candidates_.push_back(views_[i].buffer);
  }
  reuse.end = static_cast<int32_t>(candidates_.size());
  if (reuse.end > reuse.begin) reuse_list_.push_back(reuse);
}

void Builder::AddNode(NodeId id) {
  const OpId op = op_of_[id];
  views_.clear();
  const absl::Span<const Tensor> inputs = Inputs(id);
  const bool is_merge = !IsSwapNode(id) && graph_.op_info(id).control_flow == ControlFlow::kMerge;
  bool in_loop = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor input = inputs[i];
    if (is_merge && !IsSwapNode(input.node) && IsBackEdge(graph_, input.node, id)) {
      in_loop = true;
      ++notes_.loops;
      if (const Place gpu = facts_.placement().node(id); gpu != kHostPlace) {
        workload_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_LOOPS, gpu, id);
      }
      if (!input.is_control()) views_.push_back({});
      continue;
    }
    if (input.is_control()) {
      Wait(op, op_of_[input.node]);
      continue;
    }
    const Place want = IsSwapNode(id)
                           ? swap(id).place
                           : facts_.placement().input(id, static_cast<int32_t>(i), Original(input));
    const View view = Get(input, want);
    views_.push_back(view);
    Wait(op, view.op);
    Read(op, view.buffer);
  }
  if (IsSwapNode(id)) {
    buffer_of({id, 0}) = views_[0].buffer;  // As an Identity does.
    return;
  }
  notes_.merges += is_merge && !in_loop;
  const auto count_uses = [&](int32_t by) {
    for (const View& view : views_) {
      if (view.buffer != kNoBufferId) uses_[view.buffer] += by;
    }
  };
  count_uses(1);
  for (int32_t port = 0; port < facts_.buffers().num_outputs(id); ++port) {
    AddOutput({id, port}, op);
  }
  count_uses(-1);
}

// Of several inputs whose memory an output may have, the one with the fewest readers: the likeliest
// to be nobody else's at that time.
void Builder::FinishReuses() {
  // `reuses` has an item for each buffer written, or none: outputs that reuse come with the others.
  std::vector<BufferId> chosen(workload_.buffers.size(), kNoBufferId);
  std::vector<bool> has_reuse(workload_.ops.size(), false);
  for (const Reuse& reuse : reuse_list_) {
    BufferId best = kNoBufferId;
    for (int32_t i = reuse.begin; i < reuse.end; ++i) {
      const BufferId candidate = candidates_[i];
      if (candidate == kNoBufferId) continue;  // In host memory, and not kept.
      const WorkloadBuffer& buffer = workload_.buffers[candidate];
      const WorkloadBuffer& output = workload_.buffers[reuse.output];
      if (buffer.resident || buffer.device != output.device || buffer.bytes != output.bytes ||
          buffer.bytes <= 0) {
        continue;
      }
      if (best == kNoBufferId || readers_[candidate] < readers_[best]) best = candidate;
    }
    if (best == kNoBufferId) continue;
    chosen[reuse.output] = best;
    has_reuse[reuse.op] = true;
  }
  for (OpId op = 0; op < static_cast<OpId>(workload_.ops.size()); ++op) {
    if (has_reuse[op]) {
      for (BufferId written : workload_.writes[op]) workload_.reuses.Add(chosen[written]);
    }
    workload_.reuses.EndList();
  }
}

// Numbers the copies, which come behind all other operations, by what they copy: in the order of
// nodes, not that in which the topological order meets them, which a plan's control edges change.
// Who comes first of several at one moment is then the same as for the graph with the plan in it.
void Builder::SortCopies() {
  const int32_t num_ops = static_cast<int32_t>(workload_.ops.size());
  const int32_t first = num_ops - static_cast<int32_t>(copy_keys_.size());
  std::vector<OpId> sorted(copy_keys_.size());
  std::iota(sorted.begin(), sorted.end(), first);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](OpId a, OpId b) { return copy_keys_[a - first] < copy_keys_[b - first]; });
  std::vector<OpId> to(num_ops);
  std::iota(to.begin(), to.end(), 0);
  std::vector<WorkloadOp> copies;
  for (size_t i = 0; i < sorted.size(); ++i) {
    to[sorted[i]] = first + static_cast<OpId>(i);
    copies.push_back(workload_.ops[sorted[i]]);
  }
  std::copy(copies.begin(), copies.end(), workload_.ops.begin() + first);
  for (ListItems* lists : {&waits_for_, &reads_, &writes_}) lists->RenumberLists(to);
  workload_.waits_for = waits_for_.Build(num_ops, [&to](OpId id) { return to[id]; });
}

void Builder::Finish() {
  for (WorkloadBuffer& buffer : workload_.buffers) {
    if (buffer.bytes != kUnknownSize) continue;
    buffer.bytes = 0;
    if (buffer.device == kHostPlace) continue;
    ++notes_.unknown_buffers;
    workload_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_SIZES, buffer.device, buffer.tensor.node);
  }
  // Of the host's buffers only those that travel are kept.
  std::vector<BufferId> renumbered(workload_.buffers.size(), kNoBufferId);
  std::vector<WorkloadBuffer> kept;
  kept.reserve(workload_.buffers.size());
  std::vector<int32_t> readers;
  for (size_t i = 0; i < workload_.buffers.size(); ++i) {
    if (workload_.buffers[i].device == kHostPlace && !travels_[i]) continue;
    renumbered[i] = static_cast<BufferId>(kept.size());
    kept.push_back(workload_.buffers[i]);
    readers.push_back(readers_[i]);
  }
  workload_.buffers = std::move(kept);
  readers_ = std::move(readers);
  for (Reuse& reuse : reuse_list_) reuse.output = renumbered[reuse.output];
  for (BufferId& candidate : candidates_) candidate = renumbered[candidate];
  const auto renumber = [&](BufferId id) { return renumbered[id]; };
  const int32_t num_ops = static_cast<int32_t>(workload_.ops.size());
  SortCopies();
  workload_.reads = reads_.Build(num_ops, renumber);
  workload_.writes = writes_.Build(num_ops, renumber);
  FinishReuses();
}

absl::StatusOr<Workload> Builder::Build(WorkloadNotes* notes) {
  workload_.devices = facts_.placement().devices();
  if (absl::Status status = FindActive(); !status.ok()) return status;
  MakeOps();
  buffer_of_.assign(facts_.buffers().num_tensors() + swap_nodes_.size(), kNoBufferId);
  for (NodeId id : facts_.topology().order()) {
    if (poll_.Tick()) return stop_.status("workload");
    if (!runs_[id]) {
      // Its memory is there all the same.
      if (facts_.placement().node(id) != kHostPlace && facts_.buffers().num_outputs(id) > 0 &&
          facts_.buffers().storage({id, 0}) == Storage::kVariable &&
          facts_.buffers().alias_input({id, 0}) == kNoAlias) {
        AddBuffer(facts_.placement().node(id), facts_.buffers().bytes({id, 0}), true, {id, 0});
      }
      continue;
    }
    AddNode(id);
    if (first_swap_node_.empty()) continue;
    for (int32_t i = first_swap_node_[id]; i >= 0; i = swap_nodes_[i].next) {
      if (runs_[num_nodes_ + i]) AddNode(num_nodes_ + i);
    }
  }
  Finish();
  if (notes != nullptr) *notes = notes_;
  return std::move(workload_);
}

}  // namespace

absl::StatusOr<Workload> BuildWorkload(const StepFacts& facts, const SwapPlan* plan,
                                       WorkloadNotes* notes, const StopToken& stop) {
  return Builder(facts, plan, stop).Build(notes);
}

}  // namespace spillway::core
