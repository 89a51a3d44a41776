#include "rewrite_core/plan/needs.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/write_ops.h"

namespace spillway::core {
namespace {

// ScatterNd writes nothing, but counts: chains do without it, as they always did.
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

absl::StatusOr<Needs> Needs::Find(const Graph& graph, const Topology& topology,
                                  const StopToken& stop) {
  Needs needs;
  std::vector<Kind> kinds;  // By Graph::op_id.
  for (int32_t op = 0; op < graph.num_ops(); ++op) kinds.push_back(KindOf(graph.op_name(op)));
  needs.bits_.assign(graph.num_nodes(), 0);
  int next_bit = kFirstRoot;
  StopPoller poll(stop);
  for (NodeId id : topology.order()) {
    uint64_t& bits = needs.bits_[id];
    bool has_data = false;
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      bits |= needs.bits_[input.node];
      has_data = has_data || !input.is_control();
    }
    const Kind kind = kinds[graph.op_id(id)];
    if (kind == kWriteOp) bits |= kWrite;
    if (kind == kVariableOp) bits |= kVariables;
    if (kind == kOtherOp && !has_data) {
      bits |= next_bit < 64 ? uint64_t{1} << next_bit++ : kTooMany;
    }
  }
  return needs;
}

}  // namespace spillway::core
