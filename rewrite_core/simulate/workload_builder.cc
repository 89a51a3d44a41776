#include "rewrite_core/simulate/workload_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/simulate/node_linker.h"
#include "rewrite_core/simulate/plan_overlay.h"
#include "rewrite_core/simulate/workload_trace.h"

namespace spillway::core {
namespace {

// Horovod copies small gradients into one buffer per GPU, which it takes from TensorFlow's
// allocator in the first step and keeps (TFPersistentBuffer in horovod/tensorflow/mpi_ops.cc): by
// default of HOROVOD_FUSION_THRESHOLD, 128 MiB (horovod/common/operations.cc).
constexpr int64_t kFusionBufferBytes = int64_t{128} << 20;

bool TakesFusionBuffer(absl::string_view op) {
  return absl::StartsWith(op, "Horovod") &&
         (absl::EndsWith(op, "llreduce") || absl::EndsWith(op, "llgather") ||
          absl::EndsWith(op, "educescatter"));
}

// Items of the operations' lists, added in any order, made into lists at the end.
template <typename Id>
class ListItems {
 public:
  void Add(OpId list, Id item) { items_.push_back({list, item}); }
  // Renumbers list i to `to`[i].
  void RenumberLists(const std::vector<OpId>& to) {
    for (Item& item : items_) item.list = to[item.list];
  }
  // Builds the lists, each in order of Add; items for which `map` is negative are left out.
  // Consumes the items. Returns false if stopped.
  template <typename Map>
  bool Build(int32_t num_lists, Map map, StopPoller* poll, IndexLists<OpId, Id>* lists) {
    std::vector<int32_t> end(num_lists + 1, 0);
    for (Item& item : items_) {
      if (poll->Tick()) return false;
      item.item = map(item.item);
      if (item.item >= 0) ++end[item.list + 1];
    }
    for (int32_t i = 0; i < num_lists; ++i) end[i + 1] += end[i];
    std::vector<Id> sorted(end.back());
    // From the beginning of each list to its end.
    for (const Item& item : items_) {
      if (poll->Tick()) return false;
      if (item.item >= 0) sorted[end[item.list]++] = item.item;
    }
    std::vector<Item>().swap(items_);
    // The end of each is the beginning of the next.
    end.pop_back();
    end.insert(end.begin(), 0);
    *lists = IndexLists<OpId, Id>(std::move(sorted), std::move(end));
    return true;
  }

 private:
  struct Item {
    OpId list;
    Id item;
  };
  std::vector<Item> items_;
};

class Builder : private NodeLinker<Builder> {
 public:
  // `overlay` may have no plan.
  Builder(const StepFacts& facts, const PlanOverlay& overlay, const StopToken& stop)
      : NodeLinker(facts, overlay),
        stop_(stop),
        poll_(stop),
        num_nodes_(graph_.num_nodes()),
        num_swap_nodes_(static_cast<int32_t>(overlay.swap_nodes().size())) {}

  // With `keeps_all`, host buffers that are not copied are kept (BuildTracedWorkload).
  absl::StatusOr<Workload> Build(bool keeps_all);
  const WorkloadNotes& notes() const { return notes_; }
  // After Build.
  WorkloadTrace TakeTrace();

 private:
  friend class NodeLinker<Builder>;

  // An existing copy: the view that it makes, and how many inputs use it.
  struct Made {
    View view;
    int32_t uses = 0;
  };

  absl::Status FindActive();
  absl::Status MakeOps();
  OpId AddOp(OpKind kind, Place device, int64_t duration_ns, NodeId node);
  BufferId AddBuffer(Place place, int64_t bytes, bool resident, Tensor tensor);
  void AddFusionBuffers();
  absl::Status HoldInLoops();
  absl::Status SortCopies();
  absl::Status FinishReuses();
  absl::Status Finish(bool keeps_all);
  absl::Status Stopped() const { return stop_.status("workload"); }

  // The functions of a NodeLinker target.
  BufferId BufferOf(Tensor t) const { return buffer_of_[Index(t)]; }
  void SetBufferOf(Tensor t, BufferId buffer) { buffer_of_[Index(t)] = buffer; }
  OpId OpOf(NodeId id) const { return op_of_[id]; }
  Place DeviceOf(BufferId id) const { return workload_.buffers[id].device; }
  View CopyOf(Tensor tensor, TensorForm from, TensorForm want);
  OpId AddCopy(const Copy& copy);
  BufferId AddCopied(const Copy& copy, Place place);
  void LinkCopy(OpId op, OpId before, BufferId from, BufferId to);
  void Wait(OpId op, OpId before);
  void Read(OpId op, BufferId buffer);
  void Write(OpId op, BufferId buffer) { writes_.Add(op, buffer); }
  BufferId Own(Tensor tensor, Place place, int64_t bytes, bool resident) {
    return buffer_of_[Index(tensor)] = AddBuffer(place, bytes, resident, tensor);
  }
  void Share(Tensor tensor, BufferId shared, int64_t bytes);
  void AddReuse(OpId op, BufferId output, absl::Span<const BufferId> candidates);

  const StopToken& stop_;
  StopPoller poll_;
  const int32_t num_nodes_;
  const int32_t num_swap_nodes_;
  NodeFlags runs_;
  NodeFlags more_needed_, more_only_order_;  // If the plan makes more nodes run.
  std::vector<OpId> op_of_;
  std::vector<BufferId> buffer_of_;  // By tensor.
  // By tensor and destination.
  absl::flat_hash_map<std::pair<int32_t, TensorForm>, Made> copies_;
  std::vector<CopyKey> copy_keys_;  // By copy operation.
  ListItems<OpId> waits_for_;
  ListItems<BufferId> reads_, writes_;
  std::vector<WorkloadTrace::Reuse> reuses_;
  std::vector<BufferId> candidates_;
  std::vector<OpId> waited_;      // By operation: the last one that waits for it.
  std::vector<OpId> read_;        // By buffer: the last operation that reads it.
  std::vector<int32_t> readers_;  // By buffer: the number of readers.
  std::vector<char> travels_;     // By buffer: read or written by a copy.
  std::vector<char> is_larger_;   // By buffer: an alias is larger than the first.
  Workload workload_;
};

// Finds the nodes that the targets need in a graph with a plan, triggers included: those needed
// before (a swap forwards its input), and the edited inputs of those nodes with their ancestors,
// dead or not, as dead nodes are waited for, too. Dead nodes do not run.
absl::Status Builder::FindActive() {
  const NodeFlags& needed = facts_.active_nodes().needed;
  runs_ = needed;
  runs_.resize(num_nodes_ + num_swap_nodes_, false);
  std::vector<NodeId> stack;
  bool needs_more = false;
  const auto visit = [&](NodeId id) {
    if (runs_[id]) return;
    runs_[id] = true;
    stack.push_back(id);
  };
  for (NodeId id : overlay_.edited()) {
    if (!needed[id]) continue;
    for (Tensor input : overlay_.Inputs(id)) visit(input.node);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    needs_more = needs_more || !overlay_.IsSwapNode(id);
    for (Tensor input : overlay_.Inputs(id)) {
      if (poll_.Tick()) return Stopped();
      visit(input.node);
    }
  }
  if (needs_more) {
    more_needed_.assign(runs_.begin(), runs_.begin() + num_nodes_);
    auto only_orders =
        FindGrapplerNoOps(graph_, facts_.topology(), facts_.shapes(), facts_.step(), more_needed_,
                          facts_.active_nodes().constants, facts_.active_nodes().targets, stop_);
    if (!only_orders.ok()) return only_orders.status();
    more_only_order_ = *std::move(only_orders);
    needed_ = &more_needed_;
    only_orders_ = &more_only_order_;
  }
  if (!graph_.has_control_flow()) return absl::OkStatus();
  for (NodeId id(0); id < num_nodes_ + num_swap_nodes_; ++id) {
    if (poll_.Tick()) return Stopped();
    if (runs_[id] && IsDead({id, kControl})) runs_[id] = false;
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
  waited_.push_back(kNoOp);
  return OpId(workload_.ops.size() - 1);
}

BufferId Builder::AddBuffer(Place place, int64_t bytes, bool resident, Tensor tensor) {
  WorkloadBuffer buffer;
  buffer.bytes = bytes;
  buffer.device = place;
  buffer.resident = resident;
  if (resident) {
    const absl::string_view op = facts_.graph().op_name(facts_.graph().op_id(tensor.node));
    buffer.copied = op == "VariableV2" || op == "Variable";
  } else if (const BufferIndex of = facts_.buffers().buffer_of(tensor); of != kNoBuffer) {
    buffer.stays = facts_.buffers().buffers()[of].in_list;
  }
  buffer.tensor = tensor;
  workload_.buffers.push_back(buffer);
  read_.push_back(kNoOp);
  readers_.push_back(0);
  travels_.push_back(0);
  is_larger_.push_back(0);
  return BufferId(workload_.buffers.size() - 1);
}

absl::Status Builder::MakeOps() {
  const auto kind = [](Place place) {
    return place == kHostPlace ? OpKind::kHost : OpKind::kCompute;
  };
  op_of_.assign(runs_.size(), kNoOp);
  workload_.ops.reserve(runs_.size());
  waited_.reserve(runs_.size());
  for (NodeId id(0); id < num_nodes_; ++id) {
    if (poll_.Tick()) return Stopped();
    if (!runs_[id]) continue;
    const Place where = facts_.placement().node(id);
    if (OnlyOrders(id)) {
      op_of_[id] = AddOp(kind(where), where, 0, id);
      continue;
    }
    const NodeCost& cost = facts_.costs()[id];
    op_of_[id] = AddOp(kind(where), where, Times(facts_.loops().runs(id), cost.duration_ns), id);
    if (where != kHostPlace) workload_.ops.back().workspace_bytes = cost.workspace_bytes;
    workload_.ops.back().on_host_engine = cost.on_host_engine;
    if (const int64_t wanted_bytes = facts_.costs().wanted_bytes(id); wanted_bytes > 0) {
      workload_.wanted_bytes.resize(workload_.ops.size(), 0);
      workload_.wanted_bytes.back() = wanted_bytes;
    }
    notes_.unknown_costs += !cost.is_known;
    if (where != kHostPlace && cost.is_call) {
      notes_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_CALLS, where, id);
    }
  }
  for (NodeId id(num_nodes_); id < num_nodes_ + num_swap_nodes_; ++id) {
    if (!runs_[id]) continue;
    const PlanOverlay::SwapNode& node = overlay_.swap(id);
    op_of_[id] = AddOp(kind(node.place), node.place, 0, node.tensor.node);
    workload_.ops.back().swap = node.swap;
    workload_.ops.back().swap_in = node.swap_in;
  }
  return absl::OkStatus();
}

Builder::View Builder::CopyOf(Tensor tensor, TensorForm from, TensorForm want) {
  const std::pair<int32_t, TensorForm> key(Index(tensor), want);
  if (!copies_.contains(key)) {
    const View view = MakeCopy(tensor, from, want);  // May make another one first.
    copies_[key].view = view;
  }
  Made& made = copies_[key];
  ++made.uses;
  return made.view;
}

OpId Builder::AddCopy(const Copy& copy) {
  const OpId op = AddOp(copy.kind, copy.device, copy.duration_ns, Original(copy.tensor).node);
  workload_.ops.back().transposes = copy.kind == OpKind::kCompute;
  copy_keys_.push_back({Index(copy.tensor), copy.want, copy.step});
  if (overlay_.IsSwapNode(copy.tensor.node)) {
    workload_.ops.back().swap = overlay_.swap(copy.tensor.node).swap;
    workload_.ops.back().swap_in = overlay_.swap(copy.tensor.node).swap_in;
  }
  return op;
}

BufferId Builder::AddCopied(const Copy& copy, Place place) {
  const BufferId id = AddBuffer(place, copy.bytes, false, Original(copy.tensor));
  workload_.buffers.back().transposed = copy.kind == OpKind::kCompute;
  workload_.buffers.back().swap = workload_.ops.back().swap;
  workload_.buffers.back().swap_in = workload_.ops.back().swap_in;
  return id;
}

void Builder::LinkCopy(OpId op, OpId before, BufferId from, BufferId to) {
  // Not with Wait and Read, which remember the current node, as this is another one.
  if (before != kNoOp) waits_for_.Add(op, before);
  writes_.Add(op, to);
  travels_[to] = 1;
  if (from == kNoBufferId) return;
  reads_.Add(op, from);
  ++readers_[from];
  travels_[from] = 1;
}

void Builder::Wait(OpId op, OpId before) {
  if (before == kNoOp || waited_[before] == op) return;
  waited_[before] = op;
  waits_for_.Add(op, before);
}

void Builder::Read(OpId op, BufferId buffer) {
  if (buffer == kNoBufferId || read_[buffer] == op) return;
  // A handle may lead to a variable of another device, which it does not read from there.
  const Place device = workload_.buffers[buffer].device;
  if (device != kHostPlace && device != workload_.ops[op].device) return;
  read_[buffer] = op;
  ++readers_[buffer];
  reads_.Add(op, buffer);
}

void Builder::Share(Tensor tensor, BufferId shared, int64_t bytes) {
  buffer_of_[Index(tensor)] = shared;
  WorkloadBuffer& buffer = workload_.buffers[shared];
  if (bytes <= buffer.bytes) return;
  buffer.bytes = bytes;
  is_larger_[shared] = 1;
}

void Builder::AddReuse(OpId op, BufferId output, absl::Span<const BufferId> candidates) {
  const int32_t begin = static_cast<int32_t>(candidates_.size());
  candidates_.insert(candidates_.end(), candidates.begin(), candidates.end());
  reuses_.push_back({op, output, begin, static_cast<int32_t>(candidates_.size())});
}

void Builder::AddFusionBuffers() {
  if (!CountsTemporaries(facts_.step())) return;
  std::vector<bool> has(workload_.devices.size(), false);
  for (NodeId id(0); id < num_nodes_; ++id) {
    if (poll_.Tick()) return;  // The next stage polls, too.
    const Place place = facts_.placement().node(id);
    if (!runs_[id] || place < 0 || has[place] || OnlyOrders(id)) continue;
    if (!TakesFusionBuffer(graph_.op(id))) continue;
    has[place] = true;
    AddBuffer(place, kFusionBufferBytes, /*resident=*/true, {id, 0});
  }
}

// Makes the end of an iteration read the lists from which the loop takes. Called when all nodes are
// linked, as some come before buffers they hold.
absl::Status Builder::HoldInLoops() {
  if (facts_.loops().empty()) return absl::OkStatus();
  absl::flat_hash_set<BufferId> has;
  for (NodeId id(0); id < num_nodes_; ++id) {
    if (poll_.Tick()) return Stopped();
    const absl::Span<const Tensor> held = facts_.buffers().held(id);
    if (held.empty() || !runs_[id]) continue;
    has = {kNoBufferId};
    for (Tensor input : overlay_.Inputs(id)) {
      if (!input.is_control()) has.insert(BufferOf(input));
    }
    for (Tensor tensor : held) {
      if (poll_.Tick()) return Stopped();
      if (!IsDead(tensor) && has.insert(BufferOf(tensor)).second) {
        Read(op_of_[id], BufferOf(tensor));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Builder::FinishReuses() {
  // `reuses` has an item for each buffer written, or none.
  std::vector<BufferId> chosen(workload_.buffers.size(), kNoBufferId);
  std::vector<bool> has_reuse(workload_.ops.size(), false);
  for (const WorkloadTrace::Reuse& reuse : reuses_) {
    if (poll_.Tick()) return Stopped();
    const BufferId best = ChooseReuse(
        reuse.output, absl::MakeSpan(candidates_).subspan(reuse.begin, reuse.end - reuse.begin),
        readers_, [this](BufferId id) -> const WorkloadBuffer& { return workload_.buffers[id]; });
    if (best == kNoBufferId) continue;
    chosen[reuse.output] = best;
    has_reuse[reuse.op] = true;
  }
  for (OpId op(0); op < static_cast<int32_t>(workload_.ops.size()); ++op) {
    if (poll_.Tick()) return Stopped();
    if (has_reuse[op]) {
      for (BufferId written : workload_.writes[op]) workload_.reuses.Add(chosen[written]);
    }
    workload_.reuses.EndList();
  }
  return absl::OkStatus();
}

// Numbers the copies, which follow all other operations, by key: in order of nodes, not in the
// topological order, which a plan's control edges change. The order of operations at one moment is
// then the same as for the graph with the plan written into it.
absl::Status Builder::SortCopies() {
  const int32_t num_ops = static_cast<int32_t>(workload_.ops.size());
  const int32_t first = num_ops - static_cast<int32_t>(copy_keys_.size());
  std::vector<OpId> sorted(copy_keys_.size());
  std::iota(sorted.begin(), sorted.end(), OpId(first));
  const auto by_key = [&](OpId a, OpId b) { return copy_keys_[a - first] < copy_keys_[b - first]; };
  if (!PolledSort(sorted.begin(), sorted.end(), by_key, &poll_)) return Stopped();
  std::vector<OpId> to(num_ops);
  std::iota(to.begin(), to.end(), OpId(0));
  {
    std::vector<WorkloadOp> copies;
    copies.reserve(sorted.size());
    for (OpId op : sorted) copies.push_back(workload_.ops[op]);
    std::copy(copies.begin(), copies.end(), workload_.ops.begin() + first);
  }
  std::vector<CopyKey> keys;
  keys.reserve(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    to[sorted[i]] = OpId(first + i);
    keys.push_back(copy_keys_[sorted[i] - first]);
  }
  copy_keys_ = std::move(keys);
  waits_for_.RenumberLists(to);
  for (auto* lists : {&reads_, &writes_}) lists->RenumberLists(to);
  const auto renumber = [&to](OpId id) { return to[id]; };
  if (!waits_for_.Build(num_ops, renumber, &poll_, &workload_.waits_for)) return Stopped();
  return absl::OkStatus();
}

absl::Status Builder::Finish(bool keeps_all) {
  for (WorkloadBuffer& buffer : workload_.buffers) {
    if (poll_.Tick()) return Stopped();
    if (buffer.bytes != kUnknownSize) continue;
    buffer.bytes = 0;
    if (buffer.device == kHostPlace) continue;
    ++notes_.unknown_buffers;
    notes_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_SIZES, buffer.device, buffer.tensor.node);
  }
  // Host buffers are kept only if they are copied.
  std::vector<BufferId> renumbered(workload_.buffers.size(), kNoBufferId);
  BufferId kept(0);
  for (size_t i = 0; i < workload_.buffers.size(); ++i) {
    if (poll_.Tick()) return Stopped();
    const bool stays = workload_.buffers[i].device != kHostPlace || travels_[i] != 0;
    if (stays) renumbered[i] = keeps_all ? static_cast<BufferId>(i) : kept;
    if (!stays && keeps_all) workload_.buffers[i].bytes = readers_[i] = 0;
    if (!stays || keeps_all) continue;
    workload_.buffers[kept] = workload_.buffers[i];
    readers_[kept] = readers_[i];
    ++kept;
  }
  if (!keeps_all) {
    workload_.buffers.resize(kept);
    readers_.resize(kept);
  }
  for (WorkloadTrace::Reuse& reuse : reuses_) reuse.output = renumbered[reuse.output];
  for (BufferId& candidate : candidates_) candidate = renumbered[candidate];
  const auto renumber = [&](BufferId id) { return renumbered[id]; };
  const int32_t num_ops = static_cast<int32_t>(workload_.ops.size());
  if (absl::Status status = SortCopies(); !status.ok()) return status;
  if (!reads_.Build(num_ops, renumber, &poll_, &workload_.reads) ||
      !writes_.Build(num_ops, renumber, &poll_, &workload_.writes)) {
    return Stopped();
  }
  if (absl::Status status = FinishReuses(); !status.ok()) return status;
  if (keeps_all) {  // They live long.
    workload_.ops.shrink_to_fit();
    workload_.buffers.shrink_to_fit();
  }
  return absl::OkStatus();
}

absl::StatusOr<Workload> Builder::Build(bool keeps_all) {
  workload_.devices = facts_.placement().devices();
  links_loops_ = LoopsHold(&poll_);
  if (absl::Status status = FindActive(); !status.ok()) return status;
  if (absl::Status status = MakeOps(); !status.ok()) return status;
  buffer_of_.assign(facts_.buffers().num_tensors() + num_swap_nodes_, kNoBufferId);
  for (NodeId id : facts_.step_order()) {
    if (poll_.Tick()) return Stopped();
    if (!runs_[id]) {
      // Its memory is resident anyway.
      if (facts_.placement().node(id) != kHostPlace && facts_.buffers().num_outputs(id) > 0 &&
          facts_.buffers().storage({id, 0}) == Storage::kVariable &&
          facts_.buffers().alias_input({id, 0}) == kNoAlias) {
        AddBuffer(facts_.placement().node(id), facts_.buffers().bytes({id, 0}), true, {id, 0});
      }
      continue;
    }
    const size_t linked =
        overlay_.Inputs(id).size() + static_cast<size_t>(facts_.buffers().num_outputs(id));
    if (poll_.Tick(static_cast<int64_t>(linked))) return Stopped();
    LinkNode(id, op_of_[id]);
    for (int32_t i = overlay_.first_swap_node(id); i >= 0; i = overlay_.swap_nodes()[i].next) {
      const NodeId swap_node = overlay_.id(i);
      if (runs_[swap_node]) LinkNode(swap_node, op_of_[swap_node]);
    }
  }
  AddFusionBuffers();
  if (absl::Status status = HoldInLoops(); !status.ok()) return status;
  if (absl::Status status = Finish(keeps_all); !status.ok()) return status;
  return std::move(workload_);
}

WorkloadTrace Builder::TakeTrace() {
  WorkloadTrace trace;
  for (const CopyKey& key : copy_keys_) {
    trace.copy_uses.push_back(copies_.find({key.tensor, key.want})->second.uses);
  }
  for (std::vector<BufferId>* ids : {&buffer_of_, &candidates_}) ids->shrink_to_fit();
  readers_.shrink_to_fit();
  reuses_.shrink_to_fit();
  trace.op_of = std::move(op_of_);
  trace.buffer_of = std::move(buffer_of_);
  trace.copies = std::move(copy_keys_);
  trace.readers = std::move(readers_);
  trace.is_larger = std::move(is_larger_);
  trace.travels = std::move(travels_);
  trace.reuses = std::move(reuses_);
  trace.candidates = std::move(candidates_);
  return trace;
}

}  // namespace

absl::StatusOr<Workload> BuildWorkload(const StepFacts& facts, const SwapPlan* plan,
                                       WorkloadNotes* notes, const StopToken& stop) {
  PlanOverlay overlay(facts);
  StopPoller poll(stop);
  if (plan != nullptr && !overlay.Set(*plan, &poll)) return stop.status("workload");
  Builder builder(facts, overlay, stop);
  auto workload = builder.Build(/*keeps_all=*/false);
  if (notes != nullptr) *notes = builder.notes();
  return workload;
}

absl::StatusOr<Workload> BuildTracedWorkload(const StepFacts& facts, WorkloadNotes* notes,
                                             WorkloadTrace* trace, const StopToken& stop) {
  const PlanOverlay overlay(facts);
  Builder builder(facts, overlay, stop);
  auto workload = builder.Build(/*keeps_all=*/true);
  if (!workload.ok()) return workload.status();
  *notes = builder.notes();
  *trace = builder.TakeTrace();
  return workload;
}

std::vector<OpId> LayoutOf(const StepFacts& facts, const Workload& workload,
                           const WorkloadTrace& trace) {
  std::vector<OpId> layout;
  layout.reserve(workload.ops.size());
  for (NodeId id : facts.step_order()) {
    if (trace.op_of[id] != kNoOp) layout.push_back(trace.op_of[id]);
  }
  // The copies follow.
  const int32_t num_ops = static_cast<int32_t>(workload.ops.size());
  for (OpId id(layout.size()); id < num_ops; ++id) layout.push_back(id);
  return layout;
}

}  // namespace spillway::core
