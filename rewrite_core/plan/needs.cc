#include "rewrite_core/plan/needs.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/flow/training_ops.h"

namespace spillway::core {
namespace {

// ScatterNd writes nothing, but counts as a write: chains have always avoided it.
bool IsWrite(absl::string_view op) {
  return WriteOf(op) != Write::kNone || absl::StartsWith(op, "ScatterNd");
}

enum Kind : uint8_t { kOtherOp, kConstOp, kVariableOp, kWriteOp };

Kind KindOf(absl::string_view op) {
  if (op == "Const" || op == "NoOp") return kConstOp;
  if (IsVariableOp(op)) return kVariableOp;
  return IsWrite(op) ? kWriteOp : kOtherOp;
}

}  // namespace

absl::StatusOr<Needs> Needs::Find(const StepFacts& facts, const StopToken& stop) {
  const Graph& graph = facts.graph();
  Needs needs;
  std::vector<Kind> kinds;  // By Graph::op_id.
  for (int32_t op = 0; op < graph.num_ops(); ++op) kinds.push_back(KindOf(graph.op_name(op)));
  const auto kind_of = [&](NodeId id) {
    const bool is_captured = facts.shapes().captured_variable(id) != kDtInvalid;
    return is_captured ? kVariableOp : kinds[graph.op_id(id)];
  };
  StopPoller poll(stop);
  // Whether the node has its own bit: the writes that most steps end with have no readers.
  const auto is_distinct = [&](NodeId id) {
    const Kind kind = kind_of(id);
    if (kind == kWriteOp) return graph.readers(id).size() > 0;
    if (kind != kOtherOp) return false;
    for (Tensor input : graph.inputs(id)) {
      if (!input.is_control()) return false;
    }
    return true;
  };
  size_t num_needs = 0;
  for (NodeId id : facts.topology().order()) {
    if (poll.Tick()) return stop.status("strategy");
    num_needs += is_distinct(id);
  }
  const auto nodes = static_cast<size_t>(std::max(1, graph.num_nodes()));
  const size_t bits = kFirstBit + std::min(num_needs, kMaxNeeds);
  needs.words_ =
      std::min((bits + kBitsPerWord - 1) / kBitsPerWord, std::max<size_t>(1, kMaxWords / nodes));
  needs.bits_.assign(needs.words_ * nodes, 0);
  size_t next_bit = kFirstBit;
  for (NodeId id : facts.topology().order()) {
    uint64_t* own = &needs.bits_[needs.words_ * id];
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      const uint64_t* of_input = &needs.bits_[needs.words_ * input.node];
      for (size_t i = 0; i < needs.words_; ++i) own[i] |= of_input[i];
    }
    if (kind_of(id) == kVariableOp) own[0] |= kVariables;
    if (!is_distinct(id)) {
      if (kind_of(id) == kWriteOp) own[0] |= kTooMany;  // No node may wait for it.
      continue;
    }
    if (next_bit < needs.words_ * kBitsPerWord) {
      own[next_bit / kBitsPerWord] |= uint64_t{1} << next_bit % kBitsPerWord;
      ++next_bit;
    } else {
      own[0] |= kTooMany;
    }
  }
  return needs;
}

bool Needs::MayGradientWait(const StepFacts& facts, NodeId v, NodeId u, StopPoller* poll) const {
  if (MayWait(v, u)) return true;
  if (!facts.backward_part().ops[v]) return false;
  const Graph::Readers readers = facts.graph().readers(v);
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (poll->Tick() || !MayWait(readers[i].node, u)) return false;
  }
  return !readers.empty();
}

}  // namespace spillway::core
