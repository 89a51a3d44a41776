#include "rewrite_core/strategy/order/step_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

absl::StatusOr<StepOrder> StepOrder::Create(const StepFacts& facts, GpuIndex gpu,
                                            const StepResult& unswapped, const StopToken& stop) {
  const Graph& graph = facts.graph();
  const Buffers& buffers = facts.buffers();
  StepOrder order;
  StopPoller poll(stop);

  order.slots_.assign(graph.num_nodes(), kNoSlot);
  for (OpId op : unswapped.launch_ahead.order) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& info = unswapped.ops[op];
    if (info.device != gpu || !RunsNode(info)) continue;
    order.slots_[info.node] = order.num_slots();
    order.nodes_.push_back(info.node);
    const OpTimes& times = unswapped.launch_ahead.times[op];
    order.given_ns_.push_back(times.given_ns);
    order.begin_ns_.push_back(times.start_ns);
    order.end_ns_.push_back(times.end_ns);
    order.ended_ns_.push_back(
        std::max(times.end_ns, order.ended_ns_.empty() ? 0 : order.ended_ns_.back()));
  }

  // Includes waits through nodes without a slot: on the host, on other GPUs.
  std::vector<Slot> latest(graph.num_nodes(), kNoSlot);
  order.latest_before_.assign(order.num_slots(), kNoSlot);
  for (NodeId id : facts.topology().order()) {
    Slot before = kNoSlot;
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      before = std::max(before, latest[input.node]);
    }
    const Slot own = order.slots_[id];
    // A Const does not delay its readers: no gate waits there (Soundness::IsConstant).
    latest[id] = graph.op(id) == "Const" ? before : std::max(before, own);
    if (own != kNoSlot) order.latest_before_[own] = before;
  }
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    if (order.latest_before_[slot] < slot - 1) order.far_waits_.push_back(slot);
  }
  while (order.num_leaves_ < order.far_waits_.size()) order.num_leaves_ *= 2;
  order.least_before_.assign(2 * order.num_leaves_, Slot(std::numeric_limits<int32_t>::max()));
  for (size_t i = 0; i < order.far_waits_.size(); ++i) {
    order.least_before_[order.num_leaves_ + i] = order.latest_before_[order.far_waits_[i]];
  }
  for (size_t i = order.num_leaves_; --i > 0;) {
    order.least_before_[i] = std::min(order.least_before_[2 * i], order.least_before_[2 * i + 1]);
  }

  // Uses by buffer, those of all its aliases together.
  order.of_graph_ = &buffers;
  std::vector<OrderBuffer>& place = order.place_;
  place.assign(buffers.buffers().size(), kNoOrderBuffer);
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    const NodeId id = order.nodes_[slot];
    if (facts.active_nodes().only_orders[id]) continue;
    for (int32_t port = 0; port < buffers.num_outputs(id); ++port) {
      if (poll.Tick()) return stop.status("strategy");
      const BufferIndex buffer = buffers.buffer_of({id, port});
      if (buffer == kNoBuffer || place[buffer] >= 0) continue;
      const Buffers::Buffer& info = buffers.buffers()[buffer];
      if (info.place != gpu || info.storage != Storage::kAllocated || info.bytes <= 0) continue;
      place[buffer] = order.num_buffers();
      order.buffers_.push_back(buffer);
      order.first_tensors_.push_back(info.first);
      order.bytes_.push_back(AllocatedBytes(info.bytes));
      order.made_.push_back(slot);
    }
  }
  std::vector<std::vector<Use>> uses(order.buffers_.size());
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    const NodeId id = order.nodes_[slot];
    if (facts.active_nodes().ReadsNothing(id)) continue;
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      const BufferIndex buffer = buffers.buffer_of(inputs[i]);
      if (buffer == kNoBuffer || place[buffer] < 0) continue;
      uses[place[buffer]].push_back({slot, {id, static_cast<int32_t>(i)}, inputs[i]});
    }
  }
  order.first_use_.push_back(0);
  for (const std::vector<Use>& of : uses) {
    order.uses_.insert(order.uses_.end(), of.begin(), of.end());
    order.first_use_.push_back(static_cast<int32_t>(order.uses_.size()));
  }

  // Launching runs ahead, and a copy waits for the kernel that makes its tensor.
  absl::flat_hash_map<NodeId, int64_t> copied_ns;  // By producer: when the last copy ends.
  for (size_t i = 0; i < unswapped.ops.size(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& op = unswapped.ops[i];
    if (op.kind != OpKind::kCopyOut || op.device != gpu || op.swap >= 0) continue;
    int64_t& end_ns = copied_ns[op.node];
    end_ns = std::max(end_ns, unswapped.launch_ahead.times[i].end_ns);
  }
  order.copied_until_.assign(order.buffers_.size(), kNoSlot);
  for (OrderBuffer i(0); i < order.num_buffers() && !copied_ns.empty(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const auto copied = copied_ns.find(order.nodes_[order.made_[i]]);
    // Which of a node's outputs is copied is not known: those that no kernel reads.
    if (copied == copied_ns.end() || !uses[i].empty()) continue;
    order.copied_until_[i] =
        Slot(std::lower_bound(order.given_ns_.begin(), order.given_ns_.end(), copied->second) -
             order.given_ns_.begin() - 1);
  }

  // The memory in use changes at the slot that makes a buffer and after the last that uses it.
  std::vector<int64_t> change(order.num_slots() + 1, 0);
  order.resident_bytes_ = unswapped.resident_bytes(gpu);
  order.launch_ns_ = ToNanoseconds(facts.hardware().launch_s);
  change[0] += order.resident_bytes_;
  order.takes_over_.assign(order.buffers_.size(), kNoOrderBuffer);
  for (OrderBuffer i(0); i < order.num_buffers(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    change[order.made_[i]] += order.bytes_[i];
    change[order.last_used(i) + 1] -= order.bytes_[i];
    // An output that reuses an input in place takes no additional memory.
    const Tensor first = buffers.buffers()[order.buffers_[i]].first;
    const uint32_t reusable = buffers.reusable_inputs(first);
    const absl::Span<const Tensor> inputs = graph.inputs(first.node);
    for (size_t k = 0; reusable != 0 && k < inputs.size() && !inputs[k].is_control(); ++k) {
      if (poll.Tick()) return stop.status("strategy");
      if (reusable != Buffers::kAnyInput && (k >= 32 || (reusable >> k & 1) == 0)) continue;
      const BufferIndex input = buffers.buffer_of(inputs[k]);
      if (input == kNoBuffer || place[input] < 0) continue;
      const absl::Span<const Use> others = order.uses(place[input]);
      if (others.empty() || others.back().slot != order.made_[i] ||
          order.bytes_[place[input]] != order.bytes_[i]) {
        continue;
      }
      // A buffer read at two inputs has two holders.
      if (others.size() > 1 && others[others.size() - 2].slot == order.made_[i]) continue;
      change[order.made_[i]] -= order.bytes_[i];
      change[order.made_[i] + 1] += order.bytes_[i];
      order.takes_over_[i] = place[input];
      break;
    }
  }
  if (absl::Status s = order.FindCopiesIn(facts, gpu, unswapped, stop); !s.ok()) return s;
  for (const CopyIn& copy : order.copies_in_) {
    change[copy.first] += copy.bytes;
    change[copy.last + 1] -= copy.bytes;
  }
  int64_t live = 0;
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    live += change[slot];
    const NodeId id = order.nodes_[slot];
    order.workspace_bytes_.push_back(
        facts.active_nodes().only_orders[id] ? 0 : facts.costs()[id].workspace_bytes);
    order.live_bytes_.push_back(live + order.workspace_bytes_.back());
  }
  return order;
}

Slot StepOrder::NextFarWait(Slot from, Slot before) const {
  size_t node = num_leaves_ +
                static_cast<size_t>(std::lower_bound(far_waits_.begin(), far_waits_.end(), from) -
                                    far_waits_.begin());
  if (node == 2 * num_leaves_) return num_slots();
  // Up and to the right until a subtree has one, then down to the first.
  while (least_before_[node] >= before) {
    while (node % 2 == 1) node /= 2;
    if (node == 0) return num_slots();
    ++node;
  }
  while (node < num_leaves_) {
    node *= 2;
    if (least_before_[node] >= before) ++node;
  }
  return far_waits_[node - num_leaves_];
}

absl::Status StepOrder::FindCopiesIn(const StepFacts& facts, GpuIndex gpu,
                                     const StepResult& unswapped, const StopToken& stop) {
  const Graph& graph = facts.graph();
  const Buffers& buffers = facts.buffers();
  StopPoller poll(stop);
  // By producer: when the first copy of its outputs is granted memory.
  absl::flat_hash_map<NodeId, int64_t> given;
  for (size_t i = 0; i < unswapped.ops.size(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& op = unswapped.ops[i];
    if (op.kind != OpKind::kCopyIn || op.device != gpu) continue;
    const int64_t at = unswapped.launch_ahead.times[i].given_ns;
    const auto [it, is_new] = given.try_emplace(op.node, at);
    if (!is_new) it->second = std::min(it->second, at);
  }
  if (given.empty()) return absl::OkStatus();
  // By buffer: the last slot that reads it.
  absl::flat_hash_map<BufferIndex, Slot> last;
  for (Slot slot(0); slot < num_slots(); ++slot) {
    if (facts.active_nodes().ReadsNothing(nodes_[slot])) continue;
    for (Tensor input : graph.inputs(nodes_[slot])) {
      if (poll.Tick()) return stop.status("strategy");
      if (input.is_control()) break;
      if (const BufferIndex buffer = buffers.buffer_of(input); buffer != kNoBuffer)
        last[buffer] = slot;
    }
  }
  for (const WorkloadBuffer& copy : unswapped.buffers) {
    if (poll.Tick()) return stop.status("strategy");
    if (copy.device != gpu || copy.resident || copy.transposed || copy.swap >= 0) continue;
    const auto at = given.find(copy.tensor.node);
    if (at == given.end()) continue;
    const BufferIndex buffer = buffers.buffer_of(copy.tensor);
    if (buffer == kNoBuffer || buffers.buffers()[buffer].place == gpu) continue;
    const Slot made(std::lower_bound(given_ns_.begin(), given_ns_.end(), at->second) -
                    given_ns_.begin());
    const auto use = last.find(buffer);
    const Slot end = std::max(made, use == last.end() ? made : use->second);
    if (made >= num_slots()) continue;
    copies_in_.push_back({made, end, AllocatedBytes(copy.bytes), copy.tensor});
  }
  const auto less = [](const CopyIn& a, const CopyIn& b) { return a.first < b.first; };
  if (!PolledSort(copies_in_.begin(), copies_in_.end(), less, &poll)) {
    return stop.status("strategy");
  }
  for (size_t i = 0; i < copies_in_.size(); ++i) {
    const CopyIn& copy = copies_in_[i];
    copies_of_[{copy.tensor.node, copy.tensor.port}] = copied_in(i);
    first_tensors_.push_back(copy.tensor);
    bytes_.push_back(copy.bytes);
    made_.push_back(copy.first);
  }
  std::vector<std::vector<Use>> uses(copies_in_.size());
  for (Slot slot(0); slot < num_slots(); ++slot) {
    if (facts.active_nodes().ReadsNothing(nodes_[slot])) continue;
    const absl::Span<const Tensor> inputs = graph.inputs(nodes_[slot]);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      const auto copy = copies_of_.find({inputs[i].node, inputs[i].port});
      if (copy == copies_of_.end()) continue;
      uses[copy->second - num_buffers()].push_back(
          {slot, {nodes_[slot], static_cast<int32_t>(i)}, inputs[i]});
    }
  }
  for (const std::vector<Use>& of : uses) {
    uses_.insert(uses_.end(), of.begin(), of.end());
    first_use_.push_back(static_cast<int32_t>(uses_.size()));
  }
  return absl::OkStatus();
}

OrderBuffer StepOrder::Find(Tensor tensor) const {
  const BufferIndex buffer = of_graph_->buffer_of(tensor);
  if (buffer != kNoBuffer && place_[buffer] != kNoOrderBuffer) return place_[buffer];
  const auto copy = copies_of_.find({tensor.node, tensor.port});
  return copy == copies_of_.end() ? kNoOrderBuffer : copy->second;
}

// Ready nodes without a launch come first; of kernels, the one that is launched first.
absl::StatusOr<std::vector<int32_t>> RankByLaunch(const StepFacts& facts, const StepResult& step,
                                                  absl::Span<const ControlEdge> added,
                                                  const StopToken& stop) {
  const Graph& graph = facts.graph();
  const int32_t n = graph.num_nodes();
  StopPoller poll(stop);
  std::vector<int32_t> launched(n, -1);
  for (size_t i = 0; i < step.launch_ahead.order.size(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& op = step.ops[step.launch_ahead.order[i]];
    if (RunsNode(op)) launched[op.node] = static_cast<int32_t>(i);
  }
  std::vector<ControlEdge> sorted(added.begin(), added.end());
  const auto from_less = [](const ControlEdge& a, const ControlEdge& b) { return a.from < b.from; };
  if (!PolledSort(sorted.begin(), sorted.end(), from_less, &poll)) return stop.status("strategy");
  std::vector<int32_t> waiting(n, 0);
  for (const ControlEdge& edge : sorted) ++waiting[edge.to];
  using Ready = std::pair<int32_t, NodeId>;  // By launch, then id.
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (NodeId id(0); id < n; ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      waiting[id] += !IsBackEdge(graph, input.node, id);
    }
    if (waiting[id] == 0) ready.emplace(launched[id], id);
  }
  std::vector<int32_t> ranks(n, 0);
  int32_t rank = 0;
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    ranks[id] = rank++;
    const auto done = [&](NodeId waiter) {
      if (--waiting[waiter] == 0) ready.emplace(launched[waiter], waiter);
    };
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      if (!IsBackEdge(graph, id, readers[i].node)) done(readers[i].node);
    }
    auto it = std::lower_bound(sorted.begin(), sorted.end(), ControlEdge{id, kNoNode}, from_less);
    for (; it != sorted.end() && it->from == id; ++it) done(it->to);
  }
  if (rank < n) ranks.clear();
  return ranks;
}

}  // namespace spillway::core
