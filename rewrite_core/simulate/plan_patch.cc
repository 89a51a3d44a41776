#include "rewrite_core/simulate/plan_patch.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "rewrite_core/simulate/grow.h"
#include "rewrite_core/simulate/node_linker.h"
#include "rewrite_core/simulate/plan_overlay.h"
#include "rewrite_core/simulate/prepared_patch.h"

namespace spillway::core {
namespace {

// The order of operations at one moment: nodes in order of ids, the plan's swap nodes, then copies
// by key. The same order as BuildWorkload's.
constexpr int64_t kFirstSwapNode = int64_t{1} << 31;
constexpr int64_t kFirstCopy = int64_t{1} << 62;

int64_t RankOf(const CopyKey& key) {
  return kFirstCopy | int64_t{key.tensor} << 31 | int64_t{key.want.place + 1} << 2 |
         int64_t{key.want.other} << 1 | key.step;
}

}  // namespace

class PlanPatch::Impl : private NodeLinker<PlanPatch::Impl> {
 public:
  Impl(const StepFacts& facts, const Workload& workload, const WorkloadTrace& trace,
       PreparedWorkload* prepared);

  absl::StatusOr<bool> Apply(const SwapPlan& plan, const StopToken& stop);
  void Undo();

  const std::vector<WorkloadOp>& added_ops() const { return added_ops_; }
  const std::vector<WorkloadBuffer>& added_buffers() const { return added_buffers_; }

 private:
  friend class NodeLinker<PlanPatch::Impl>;

  // An operation that is rebuilt, and its lists meanwhile.
  struct Linked {
    OpId op;
    int32_t waits = -1;   // In wait_items_: the first operation that it waits for;
    int32_t reads = -1;   // in read_items_: the first buffer that it reads, linked by Item::next.
    int32_t reuses = -1;  // In reuses_, by Reuse::next.
    BufferId written = kNoBufferId;  // For copies. Others write the same as before.
    int64_t mark = 0;                // Its mark in waited_ and read_.
    bool is_relinked = true;         // False: only its reuse in place changes.
  };
  template <typename Id>
  struct Item {
    Id id;
    int32_t next;
  };
  struct Reuse {
    BufferId output;
    int32_t begin, end;  // In candidates_.
    int32_t next;
  };

  int32_t num_ops() const { return static_cast<int32_t>(workload_.ops.size()); }
  int32_t num_buffers() const { return static_cast<int32_t>(workload_.buffers.size()); }
  const WorkloadOp& op(OpId id) const {
    return id < num_ops() ? workload_.ops[id] : added_ops_[id - num_ops()];
  }
  const WorkloadBuffer& buffer(BufferId id) const {
    return id < num_buffers() ? workload_.buffers[id] : added_buffers_[id - num_buffers()];
  }
  bool RunsUnswapped(NodeId id) const { return trace_.op_of[id] != kNoOp; }

  // Returns false if more nodes would run than before, or stopped.
  bool FindActive(StopPoller* poll);
  void AddSwapOps();
  absl::Status LinkAll(const StopToken& stop);
  void Relink(NodeId id);
  void RelinkCopies(Tensor tensor, BufferId buffer);
  void RelinkReaders(Tensor tensor);
  bool RelinkMerges(NodeId dead, StopPoller* poll);
  void Enqueue(NodeId id);
  Linked& Link(OpId op);
  OpId AddOp(const WorkloadOp& op, int64_t rank);
  int32_t CountUse(int32_t tensor, TensorForm want, int32_t by);
  bool LosesCopies() const;
  void ForgetUses(NodeId id);

  // The stages after LinkAll, for all that was linked; false if stopped.
  absl::Status AddToPrepared();
  void AddChoices();
  void ChangeReaders(BufferId id, int32_t by);
  bool CountReaders(StopPoller* poll);
  bool ChooseAgain(StopPoller* poll);
  bool FinishLists(StopPoller* poll);
  bool FinishEdges(StopPoller* poll);

  // The functions of a NodeLinker target.
  BufferId BufferOf(Tensor t) const {
    const int32_t index = Index(t);
    return changed_[index] != kUnchanged ? changed_[index] : trace_.buffer_of[index];
  }
  void SetBufferOf(Tensor t, BufferId buffer) { Change(Index(t), buffer); }
  OpId OpOf(NodeId id) const {
    return overlay_.IsSwapNode(id) ? swap_ops_[id - graph_.num_nodes()] : trace_.op_of[id];
  }
  Place DeviceOf(BufferId id) const { return buffer(id).device; }
  View CopyOf(Tensor tensor, TensorForm from, TensorForm want);
  OpId AddCopy(const Copy& copy);
  BufferId AddCopied(const Copy& copy, Place place);
  void LinkCopy(OpId op, OpId before, BufferId from, BufferId to);
  void Wait(OpId op, OpId before);
  void Read(OpId op, BufferId buffer);
  void Write(OpId, BufferId) {}  // As before: Own handles it.
  BufferId Own(Tensor tensor, Place place, int64_t bytes, bool resident);
  void Share(Tensor tensor, BufferId shared, int64_t bytes);
  void AddReuse(OpId op, BufferId output, absl::Span<const BufferId> candidates);

  void Change(int32_t tensor, BufferId buffer);
  // Fails if a copy may not read the buffer: host buffers that were not copied are absent.
  void Travel(BufferId buffer);
  // Prepends `id` to the list that begins with item `next`, and returns the index of its item.
  template <typename Id>
  static int32_t Prepend(Id id, int32_t next, std::vector<Item<Id>>* items) {
    items->push_back({id, next});
    return static_cast<int32_t>(items->size()) - 1;
  }

  static constexpr BufferId kUnchanged{-2};

  PlanOverlay plan_;
  const Workload& workload_;
  const WorkloadTrace& trace_;
  PreparedPatch prepared_;
  OpId first_copy_;
  std::vector<int32_t> position_;  // By node: its position in the topological order.
  // By buffer of the workload: those of trace_.reuses with several candidates of which it is one.
  IndexLists<BufferId, int32_t> choices_;
  // For the current plan. Marks are numbers that grow from plan to plan.
  bool failed_ = false;
  int64_t mark_ = 0;
  std::vector<WorkloadOp> added_ops_;
  std::vector<WorkloadBuffer> added_buffers_;
  std::vector<int64_t> added_ranks_;
  std::vector<OpId> swap_ops_;     // By swap node.
  std::vector<BufferId> changed_;  // By tensor: its new buffer, if it has one.
  std::vector<int32_t> changed_tensors_;
  // The views of new copies, by tensor and destination.
  absl::flat_hash_map<std::pair<int32_t, TensorForm>, View> made_;
  // Positions of nodes to link.
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>> queue_;
  enum : char { kNotQueued, kForItsSwapNodes, kToBeRelinked };
  std::vector<char> queued_;  // By node.
  std::vector<NodeId> queued_nodes_;
  absl::flat_hash_set<NodeId> past_;  // Dead nodes that RelinkMerges has visited.
  std::vector<int32_t> copy_uses_;    // By copy: the current counts.
  std::vector<int32_t> changed_uses_;
  std::vector<Linked> linked_;
  std::vector<int32_t> linked_at_;  // By operation: its index in linked_, or -1.
  std::vector<Item<OpId>> wait_items_;
  std::vector<Item<BufferId>> read_items_;
  std::vector<Reuse> reuses_;
  std::vector<BufferId> candidates_;
  std::vector<int64_t> waited_,
      read_;                      // By operation, by buffer: the last mark that waited or read.
  std::vector<int32_t> readers_;  // By buffer.
  std::vector<std::pair<BufferId, int32_t>> changed_readers_;  // With the counts before.
  std::vector<BufferId> list_, chosen_;                        // For the current operation.
};

PlanPatch::Impl::Impl(const StepFacts& facts, const Workload& workload, const WorkloadTrace& trace,
                      PreparedWorkload* prepared)
    : NodeLinker(facts, plan_),
      plan_(facts),
      workload_(workload),
      trace_(trace),
      prepared_(prepared),
      first_copy_(num_ops() - trace.copies.size()) {
  const std::vector<NodeId>& order = facts.step_order();
  position_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = static_cast<int32_t>(i);
  prepared->rank.resize(num_ops());
  for (OpId id(0); id < num_ops(); ++id) {
    prepared->rank[prepared->NumberOf(id)] =
        id < first_copy_ ? id.value() : RankOf(trace.copies[id - first_copy_]);
  }
  AddChoices();
  changed_.assign(facts.buffers().num_tensors(), kUnchanged);
  queued_.assign(order.size(), kNotQueued);
  copy_uses_ = trace.copy_uses;
  linked_at_.assign(num_ops(), -1);
  waited_.assign(num_ops(), 0);
  read_.assign(num_buffers(), 0);
  readers_ = trace.readers;
}

void PlanPatch::Impl::AddChoices() {
  // A counting sort.
  std::vector<int32_t> begin(num_buffers() + 1, 0);
  const auto each = [this](const auto& visit) {
    for (size_t i = 0; i < trace_.reuses.size(); ++i) {
      const WorkloadTrace::Reuse& reuse = trace_.reuses[i];
      if (reuse.end - reuse.begin < 2) continue;
      for (int32_t at = reuse.begin; at < reuse.end; ++at) {
        if (trace_.candidates[at] >= 0) visit(trace_.candidates[at], static_cast<int32_t>(i));
      }
    }
  };
  each([&](BufferId candidate, int32_t) { ++begin[candidate + 1]; });
  for (BufferId id(0); id < num_buffers(); ++id) begin[id + 1] += begin[id];
  std::vector<int32_t> items(begin.back()), next(begin.begin(), begin.end() - 1);
  each([&](BufferId candidate, int32_t reuse) { items[next[candidate]++] = reuse; });
  choices_ = IndexLists<BufferId, int32_t>(std::move(items), std::move(begin));
}

absl::StatusOr<bool> PlanPatch::Impl::Apply(const SwapPlan& plan, const StopToken& stop) {
  StopPoller poll(stop);
  if (!plan_.Set(plan, &poll)) return stop.status("workload");
  if (!LoopsHold(&poll) || !FindActive(&poll)) return false;
  AddSwapOps();
  if (absl::Status s = LinkAll(stop); !s.ok()) return s;
  if (failed_ || LosesCopies()) return false;
  if (absl::Status s = AddToPrepared(); !s.ok()) return s;
  if (!CountReaders(&poll) || !ChooseAgain(&poll) || !FinishLists(&poll) || !FinishEdges(&poll)) {
    return stop.status("workload");
  }
  Release(&wait_items_);
  Release(&read_items_);
  Release(&reuses_);
  Release(&candidates_);
  return true;
}

// Like Builder::FindActive: visits edited inputs of needed nodes, and their ancestors.
bool PlanPatch::Impl::FindActive(StopPoller* poll) {
  const int32_t num_nodes = graph_.num_nodes();
  const NodeFlags& needed = facts_.active_nodes().needed;
  // For now, 0 marks the swap nodes that are needed.
  swap_ops_.assign(plan_.swap_nodes().size(), kNoOp);
  std::vector<NodeId> stack;
  bool all_needed = true;
  const auto visit = [&](NodeId id) {
    if (!plan_.IsSwapNode(id)) {
      all_needed = all_needed && needed[id];
    } else if (swap_ops_[id - num_nodes] == kNoOp) {
      swap_ops_[id - num_nodes] = OpId(0);
      stack.push_back(id);
    }
  };
  for (NodeId id : plan_.edited()) {
    if (!needed[id]) continue;
    for (Tensor input : plan_.Inputs(id)) {
      if (poll->Tick()) return false;
      visit(input.node);
    }
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (Tensor input : plan_.Inputs(id)) {
      if (poll->Tick()) return false;
      visit(input.node);
    }
  }
  const auto num_swaps = static_cast<int32_t>(swap_ops_.size());
  for (int32_t i = 0; graph_.has_control_flow() && i < num_swaps; ++i) {
    if (IsDead({plan_.id(i), kControl})) swap_ops_[i] = kNoOp;
  }
  return all_needed;
}

void PlanPatch::Impl::AddSwapOps() {
  GrowBy(swap_ops_.size(), &changed_);
  changed_.resize(facts_.buffers().num_tensors() + swap_ops_.size(), kUnchanged);
  for (size_t i = 0; i < swap_ops_.size(); ++i) {
    if (swap_ops_[i] == kNoOp) continue;
    const PlanOverlay::SwapNode& node = plan_.swap_nodes()[i];
    WorkloadOp op;
    op.kind = node.place == kHostPlace ? OpKind::kHost : OpKind::kCompute;
    op.device = node.place;
    op.node = node.tensor.node;
    op.swap = node.swap;
    op.swap_in = node.swap_in;
    swap_ops_[i] = AddOp(op, kFirstSwapNode + static_cast<int64_t>(i));
    Enqueue(node.tensor.node);
  }
}

OpId PlanPatch::Impl::AddOp(const WorkloadOp& op, int64_t rank) {
  added_ops_.push_back(op);
  added_ranks_.push_back(rank);
  GrowBy(1, &linked_at_);
  linked_at_.push_back(-1);
  GrowBy(1, &waited_);
  waited_.push_back(0);
  return OpId(num_ops() + added_ops_.size() - 1);
}

void PlanPatch::Impl::Enqueue(NodeId id) {
  if (queued_[id] != kNotQueued) return;
  queued_[id] = kForItsSwapNodes;
  queued_nodes_.push_back(id);
  queue_.push(position_[id]);
}

absl::Status PlanPatch::Impl::LinkAll(const StopToken& stop) {
  StopPoller poll(stop);
  for (NodeId id : plan_.edited()) {
    if (poll.Tick()) return stop.status("workload");
    if (RunsUnswapped(id)) {
      Relink(id);
    } else if (IsDead({id, kControl}) && !RelinkMerges(id, &poll)) {
      return stop.status("workload");
    }
  }
  while (!queue_.empty() && !failed_) {
    if (poll.Tick()) return stop.status("workload");
    const NodeId id = facts_.step_order()[queue_.top()];
    queue_.pop();
    if (queued_[id] == kToBeRelinked) {
      const size_t linked =
          plan_.Inputs(id).size() + static_cast<size_t>(facts_.buffers().num_outputs(id));
      if (poll.Tick(static_cast<int64_t>(linked))) return stop.status("workload");
      ForgetUses(id);
      LinkNode(id, OpOf(id));
    }
    for (int32_t i = plan_.first_swap_node(id); i >= 0; i = plan_.swap_nodes()[i].next) {
      if (swap_ops_[i] != kNoOp) LinkNode(plan_.id(i), swap_ops_[i]);
    }
  }
  return absl::OkStatus();
}

void PlanPatch::Impl::Relink(NodeId id) {
  // Memory shared across a loop, and waits for its body, are left to the builder.
  if (facts_.loops().loop(id) != nullptr || facts_.loops().last_value(id) != kNoNode) {
    failed_ = true;
  }
  Enqueue(id);
  if (queued_[id] == kToBeRelinked) return;
  queued_[id] = kToBeRelinked;
  Link(OpOf(id));
}

// Relinks the Merges that wait for nodes behind a dead node (WaitBeyond), as those may change.
bool PlanPatch::Impl::RelinkMerges(NodeId dead, StopPoller* poll) {
  std::vector<NodeId> stack = {dead};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (!past_.insert(id).second) continue;
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll->Tick()) return false;
      const NodeId reader = readers[i].node;
      if (facts_.shapes().IsFed(reader) || IsBackEdge(graph_, id, reader)) continue;
      if (RunsUnswapped(reader)) {
        Relink(reader);
      } else if (IsDead({reader, kControl})) {
        stack.push_back(reader);
      }
    }
  }
  return true;
}

// Subtracts the node's uses of copies in the unswapped graph from their counts, as these may
// change.
void PlanPatch::Impl::ForgetUses(NodeId id) {
  if (facts_.shapes().IsFed(id) || OnlyOrders(id)) return;
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor input = inputs[i];
    if (input.is_control() || IsCut(id, input) || IsDead(input)) continue;
    const TensorForm want = Wanted(id, static_cast<int32_t>(i), input);
    if (!NeedsCopy(FormOf(input), want)) continue;
    CountUse(Index(input), want, -1);
  }
}

// Counts one input more, or one less, that needs a copy, or two in a row. Returns the position of
// the last one in trace_.copies; -1 if it is not there.
int32_t PlanPatch::Impl::CountUse(int32_t tensor, TensorForm want, int32_t by) {
  const std::vector<CopyKey>& copies = trace_.copies;
  auto it = std::lower_bound(copies.begin(), copies.end(), CopyKey{tensor, want, 0});
  int32_t last = -1;
  for (; it != copies.end() && it->tensor == tensor && it->want == want; ++it) {
    last = static_cast<int32_t>(it - copies.begin());
    copy_uses_[last] += by;
    changed_uses_.push_back(last);
  }
  return last;
}

bool PlanPatch::Impl::LosesCopies() const {
  return std::any_of(changed_uses_.begin(), changed_uses_.end(),
                     [this](int32_t copy) { return copy_uses_[copy] == 0; });
}

PlanPatch::Impl::Linked& PlanPatch::Impl::Link(OpId op) {
  if (linked_at_[op] < 0) {
    linked_at_[op] = static_cast<int32_t>(linked_.size());
    linked_.push_back({op});
    linked_.back().mark = ++mark_;
  }
  return linked_[linked_at_[op]];
}

PlanPatch::Impl::View PlanPatch::Impl::CopyOf(Tensor tensor, TensorForm from, TensorForm want) {
  const int32_t index = Index(tensor);
  if (const int32_t at = CountUse(index, want, 1); at >= 0) {
    const OpId copy(first_copy_ + at);
    return {workload_.writes[copy][0], copy};
  }
  const std::pair<int32_t, TensorForm> key(index, want);
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  const View view = MakeCopy(tensor, from, want);
  made_[key] = view;
  return view;
}

OpId PlanPatch::Impl::AddCopy(const Copy& copy) {
  WorkloadOp op;
  op.kind = copy.kind;
  op.device = copy.device;
  op.duration_ns = copy.duration_ns;
  op.node = Original(copy.tensor).node;
  if (plan_.IsSwapNode(copy.tensor.node)) {
    op.swap = plan_.swap(copy.tensor.node).swap;
    op.swap_in = plan_.swap(copy.tensor.node).swap_in;
  }
  op.transposes = copy.kind == OpKind::kCompute;
  return AddOp(op, RankOf({Index(copy.tensor), copy.want, copy.step}));
}

BufferId PlanPatch::Impl::AddCopied(const Copy& copy, Place place) {
  WorkloadBuffer buffer;
  buffer.bytes = copy.bytes;
  buffer.device = place;
  buffer.tensor = Original(copy.tensor);
  buffer.transposed = copy.kind == OpKind::kCompute;
  buffer.swap = added_ops_.back().swap;
  buffer.swap_in = added_ops_.back().swap_in;
  added_buffers_.push_back(buffer);
  GrowBy(1, &read_);
  read_.push_back(0);
  GrowBy(1, &readers_);
  readers_.push_back(0);
  return BufferId(num_buffers() + added_buffers_.size() - 1);
}

void PlanPatch::Impl::LinkCopy(OpId op, OpId before, BufferId from, BufferId to) {
  Linked& linked = Link(op);
  if (before != kNoOp) linked.waits = Prepend(before, linked.waits, &wait_items_);
  linked.written = to;
  Travel(from);
  if (from != kNoBufferId) linked.reads = Prepend(from, linked.reads, &read_items_);
}

void PlanPatch::Impl::Travel(BufferId id) {
  // Host buffers that were not copied are absent.
  if (id == kNoBufferId || (id < num_buffers() && trace_.travels[id] == 0 && DeviceOf(id) < 0)) {
    failed_ = true;
  }
}

void PlanPatch::Impl::Wait(OpId op, OpId before) {
  Linked& linked = Link(op);
  const int64_t mark = linked.mark;
  if (before == kNoOp || waited_[before] == mark) return;
  waited_[before] = mark;
  linked.waits = Prepend(before, linked.waits, &wait_items_);
}

void PlanPatch::Impl::Read(OpId id, BufferId read) {
  Linked& linked = Link(id);
  const int64_t mark = linked.mark;
  if (read == kNoBufferId || read_[read] == mark) return;
  // Like Builder::Read, except that host buffers that are not copied are absent.
  const Place device = DeviceOf(read);
  if (device != kHostPlace && device != op(id).device) return;
  if (device == kHostPlace && read < num_buffers() && trace_.travels[read] == 0) return;
  read_[read] = mark;
  linked.reads = Prepend(read, linked.reads, &read_items_);
}

BufferId PlanPatch::Impl::Own(Tensor tensor, Place, int64_t, bool) {
  const BufferId own = trace_.buffer_of[Index(tensor)];
  if (own != kNoBufferId && workload_.buffers[own].tensor == tensor) return own;
  failed_ = true;  // It shared a buffer.
  return std::max(own, BufferId(0));
}

void PlanPatch::Impl::Share(Tensor tensor, BufferId shared, int64_t bytes) {
  const int32_t index = Index(tensor);
  const BufferId before = trace_.buffer_of[index];
  if (shared == before) return;
  if (before == kNoBufferId || workload_.buffers[before].tensor == tensor ||
      trace_.is_larger[before] != 0 || DeviceOf(before) < 0) {
    failed_ = true;  // It had its own buffer, or may have determined the size of a shared one, or
                     // caused its copy.
    return;
  }
  if (bytes > buffer(shared).bytes) {
    if (shared < num_buffers()) {
      failed_ = failed_ || bytes > 0;
    } else {
      added_buffers_[shared - num_buffers()].bytes = bytes;
    }
  }
  Change(index, shared);
  RelinkReaders(tensor);
  RelinkCopies(tensor, shared);
}

void PlanPatch::Impl::Change(int32_t tensor, BufferId buffer) {
  if (changed_[tensor] == kUnchanged) changed_tensors_.push_back(tensor);
  changed_[tensor] = buffer;
}

// Relinks the readers of the tensor in its own memory: they read another buffer.
void PlanPatch::Impl::RelinkReaders(Tensor tensor) {
  // They are in order of ports: a node may have very many readers of others.
  const Graph::Readers readers = graph_.readers(tensor.node);
  uint32_t first = 0, end = readers.size();
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2;
    const int32_t port = readers[middle].port;
    const bool before = port == kControl || Index({tensor.node, port}) < Index(tensor);
    (before ? first : end) = before ? middle + 1 : middle;
  }
  for (uint32_t i = first; i < readers.size(); ++i) {
    const auto [reader, index, port] = readers[i];
    if (Index({tensor.node, port}) != Index(tensor)) break;
    if (!RunsUnswapped(reader)) continue;
    if (position_[reader] > position_[tensor.node]) Relink(reader);
  }
}

// Relinks the copies of the tensor, too.
void PlanPatch::Impl::RelinkCopies(Tensor tensor, BufferId from) {
  const int32_t index = Index(tensor);
  auto it =
      std::lower_bound(trace_.copies.begin(), trace_.copies.end(), CopyKey{index, {kNoMemory}, 0});
  // In two layouts, one copy may be made of another one: left to the builder.
  const auto has = [&](auto at) { return at != trace_.copies.end() && at->tensor == index; };
  if (!facts_.layout().empty() && has(it) && has(it + 1)) failed_ = true;
  for (; it != trace_.copies.end() && it->tensor == index; ++it) {
    if (it->step != 0) continue;
    const OpId copy(first_copy_ + (it - trace_.copies.begin()));
    if (linked_at_[copy] >= 0) continue;
    LinkCopy(copy, OpOf(tensor.node), from, workload_.writes[copy][0]);
  }
}

void PlanPatch::Impl::AddReuse(OpId op, BufferId output, absl::Span<const BufferId> candidates) {
  const int32_t begin = static_cast<int32_t>(candidates_.size());
  candidates_.insert(candidates_.end(), candidates.begin(), candidates.end());
  Linked& linked = Link(op);
  reuses_.push_back({output, begin, static_cast<int32_t>(candidates_.size()), linked.reuses});
  linked.reuses = static_cast<int32_t>(reuses_.size()) - 1;
}

absl::Status PlanPatch::Impl::AddToPrepared() {
  prepared_.Reserve(added_ops_.size(), added_buffers_.size());
  for (WorkloadBuffer& added : added_buffers_) {
    added.bytes = std::max<int64_t>(added.bytes, 0);  // Unknown sizes count as 0.
    if (absl::Status s = prepared_.AddBuffer(added); !s.ok()) return s;
  }
  for (size_t i = 0; i < added_ops_.size(); ++i) {
    if (absl::Status s = prepared_.AddOp(added_ops_[i], added_ranks_[i]); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void PlanPatch::Impl::ChangeReaders(BufferId id, int32_t by) {
  if (id < num_buffers()) changed_readers_.emplace_back(id, readers_[id]);
  readers_[id] += by;
  prepared_.AddHolders(id, by);
}

bool PlanPatch::Impl::CountReaders(StopPoller* poll) {
  for (const Linked& linked : linked_) {
    if (linked.op < num_ops()) {
      for (BufferId read : workload_.reads[linked.op]) {
        if (poll->Tick()) return false;
        ChangeReaders(read, -1);
      }
    }
    for (int32_t at = linked.reads; at >= 0; at = read_items_[at].next) {
      if (poll->Tick()) return false;
      ChangeReaders(read_items_[at].id, 1);
    }
  }
  return true;
}

// If the number of readers changed, another buffer may be the best to reuse in place, even for
// operations that were not rebuilt.
bool PlanPatch::Impl::ChooseAgain(StopPoller* poll) {
  const int32_t num_linked = static_cast<int32_t>(linked_.size());
  // A buffer may change many times, and an output have many candidates: visit each once.
  absl::flat_hash_set<BufferId> seen;
  absl::flat_hash_set<int32_t> done;
  for (const auto& [id, before] : changed_readers_) {
    if (poll->Tick()) return false;
    if (!seen.insert(id).second) continue;
    for (int32_t i : choices_[id]) {
      if (poll->Tick()) return false;
      if (!done.insert(i).second) continue;
      const WorkloadTrace::Reuse& reuse = trace_.reuses[i];
      const int32_t at = linked_at_[reuse.op];
      if (at >= 0 && at < num_linked) continue;
      Link(reuse.op).is_relinked = false;
      AddReuse(reuse.op, reuse.output,
               absl::MakeSpan(trace_.candidates).subspan(reuse.begin, reuse.end - reuse.begin));
    }
  }
  return true;
}

bool PlanPatch::Impl::FinishLists(StopPoller* poll) {
  for (const Linked& linked : linked_) {
    const OpId id = linked.op;
    list_.clear();
    if (poll->Tick()) return false;
    for (int32_t at = linked.reads; at >= 0; at = read_items_[at].next) {
      if (poll->Tick()) return false;
      list_.push_back(read_items_[at].id);
    }
    absl::Span<const BufferId> reads = list_, writes;
    chosen_.clear();
    if (id < num_ops()) {
      writes = workload_.writes[id];
      if (!linked.is_relinked) {
        reads = workload_.reads[id];
        const absl::Span<const BufferId> chosen = workload_.reuses[id];
        chosen_.assign(chosen.begin(), chosen.end());
      }
    } else if (linked.written != kNoBufferId) {
      writes = absl::MakeSpan(&linked.written, 1);
    }
    if (linked.reuses >= 0) chosen_.resize(writes.size(), kNoBufferId);
    for (int32_t at = linked.reuses; at >= 0; at = reuses_[at].next) {
      const Reuse& reuse = reuses_[at];
      const auto position = std::find(writes.begin(), writes.end(), reuse.output);
      chosen_[position - writes.begin()] = ChooseReuse(
          reuse.output, absl::MakeSpan(candidates_).subspan(reuse.begin, reuse.end - reuse.begin),
          readers_,
          [this](BufferId buffer_id) -> const WorkloadBuffer& { return buffer(buffer_id); });
    }
    prepared_.SetLists(id, reads, writes, chosen_);
  }
  return true;
}

bool PlanPatch::Impl::FinishEdges(StopPoller* poll) {
  for (const Linked& linked : linked_) {
    if (!linked.is_relinked) continue;
    const OpId id = linked.op;
    const int64_t is_new = ++mark_, is_kept = ++mark_;
    int32_t waits = 0;
    for (int32_t at = linked.waits; at >= 0; at = wait_items_[at].next, ++waits) {
      if (poll->Tick()) return false;
      waited_[wait_items_[at].id] = is_new;
    }
    if (id < num_ops()) {
      for (OpId before : workload_.waits_for[id]) {
        if (poll->Tick()) return false;
        if (waited_[before] == is_new) {
          waited_[before] = is_kept;
        } else {
          prepared_.RemoveEdge(before, id);
        }
      }
    }
    for (int32_t at = linked.waits; at >= 0; at = wait_items_[at].next) {
      if (waited_[wait_items_[at].id] == is_new) prepared_.AddEdge(wait_items_[at].id, id);
    }
    prepared_.SetWaits(id, waits);
  }
  return prepared_.FinishEdges(poll);
}

void PlanPatch::Impl::Undo() {
  for (auto it = changed_readers_.rbegin(); it != changed_readers_.rend(); ++it) {
    prepared_.AddHolders(it->first, it->second - readers_[it->first]);
    readers_[it->first] = it->second;
  }
  prepared_.Undo();
  for (const Linked& linked : linked_) linked_at_[linked.op] = -1;
  for (int32_t tensor : changed_tensors_) changed_[tensor] = kUnchanged;
  for (NodeId id : queued_nodes_) queued_[id] = kNotQueued;
  for (int32_t copy : changed_uses_) copy_uses_[copy] = trace_.copy_uses[copy];
  linked_at_.resize(num_ops());
  waited_.resize(num_ops());
  read_.resize(num_buffers());
  readers_.resize(num_buffers());
  changed_.resize(facts_.buffers().num_tensors());
  queue_ = {};
  failed_ = false;
  added_ops_.clear();
  added_buffers_.clear();
  added_ranks_.clear();
  changed_tensors_.clear();
  made_.clear();
  queued_nodes_.clear();
  past_.clear();
  changed_uses_.clear();
  linked_.clear();
  wait_items_.clear();
  read_items_.clear();
  reuses_.clear();
  candidates_.clear();
  changed_readers_.clear();
}

PlanPatch::PlanPatch(const StepFacts& facts, const Workload& workload, const WorkloadTrace& trace,
                     PreparedWorkload* prepared)
    : impl_(std::make_unique<Impl>(facts, workload, trace, prepared)) {}
PlanPatch::~PlanPatch() = default;

absl::StatusOr<bool> PlanPatch::Apply(const SwapPlan& plan, const StopToken& stop) {
  return impl_->Apply(plan, stop);
}
void PlanPatch::Undo() { impl_->Undo(); }
const std::vector<WorkloadOp>& PlanPatch::added_ops() const { return impl_->added_ops(); }
const std::vector<WorkloadBuffer>& PlanPatch::added_buffers() const {
  return impl_->added_buffers();
}

}  // namespace spillway::core
