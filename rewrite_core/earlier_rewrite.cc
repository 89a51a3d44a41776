#include "rewrite_core/earlier_rewrite.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/apply/verifier.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/undo.h"

namespace spillway::core {
namespace {

absl::Status BadRecords(absl::string_view why) {
  return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_BAD_UNDO_RECORD,
               absl::StrCat("the undo records do not lead back to a graph: ", why,
                            "; start from the original graph"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepSubject>> ParseStripped(const Graph& edited,
                                                           const v1::Step& step,
                                                           const v1::Limits& limits,
                                                           const StopToken& stop) {
  auto stripped = Strip(edited, stop);
  if (!stripped.ok()) return stripped.status();
  auto subject = StepSubject::ParseOwned(*std::move(stripped), step, limits, stop);
  if (!subject.ok()) {
    if (!absl::IsInvalidArgument(subject.status())) return subject.status();
    return BadRecords(subject.status().message());
  }
  const Graph& original = (*subject)->graph();
  StopPoller poll(stop);
  for (NodeId id(0); id < original.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("parse");
    const NodeId node = edited.Find(original.name(id));
    if (node == kNoNode || (CountDataInputs(edited, node) != CountDataInputs(original, id) &&
                            !IsInlinedCall(edited, node))) {
      return BadRecords(absl::StrCat("node ", Quoted(original.name(id)), " is another"));
    }
  }
  return subject;
}

absl::StatusOr<bool> HasInlinedNodes(const Graph& edited, const StopToken& stop) {
  StopPoller poll(stop);
  // New nodes come last.
  for (NodeId id(edited.num_nodes() - 1); id >= 0; --id) {
    if (poll.Tick()) return stop.status("parse");
    if (IsInlinedNode(edited, id)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<NodeId>> FindMoves(const Graph& edited, const Graph& original,
                                              const StopToken& stop) {
  StopPoller poll(stop);
  std::vector<NodeId> moved;
  for (NodeId id(0); id < original.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("parse");
    const NodeId node = edited.Find(original.name(id));
    if (node != kNoNode && edited.has_undo(node) && edited.device(node) != original.device(id)) {
      moved.push_back(id);
    }
  }
  return moved;
}

absl::Status CheckEarlierEdits(const Graph& edited, const StepSubject& original,
                               const StopToken& stop) {
  const StepFacts& facts = original.facts();
  if (absl::Status s = facts.Compute({Fact::kControlFlow}, stop); !s.ok()) return s;
  absl::Status status =
      VerifyRewrite(original.graph(), facts.control_flow(), edited.bytes(), v1::Step(), stop);
  return absl::IsInternal(status) ? BadRecords(status.message()) : status;
}

absl::StatusOr<bool> IsRewrittenOn(const Graph& edited, const Graph& original,
                                   const Eligibility& eligibility, const StopToken& stop) {
  StopPoller poll(stop);
  // Read once per node: a node's record may be long, and the node may have many readers.
  std::vector<bool> added(edited.num_nodes());
  for (NodeId id(0); id < edited.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    added[id] = IsAddedNode(edited, id);
  }
  absl::flat_hash_set<absl::string_view> wanted;
  for (DeviceId id(0); id < original.num_devices(); ++id) {
    if (eligibility.IsDeviceWanted(id)) wanted.insert(original.device_name(id));
  }
  const auto is_wanted = [&](absl::string_view device) { return wanted.contains(device); };
  bool swaps = false;
  std::vector<bool> seen(edited.num_nodes());  // Swap-ins whose readers were looked at.
  for (NodeId id(0); id < edited.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    const absl::Span<const Tensor> inputs = edited.inputs(id);
    if (inputs.empty() || !added[id]) continue;
    if (IsCloneName(edited.name(id))) {
      swaps = true;
      if (is_wanted(edited.device(id))) return true;
      continue;
    }
    if (added[inputs[0].node] && !IsCloneName(edited.name(inputs[0].node))) continue;
    swaps = true;  // A swap-out.
    const NodeId producer = original.Find(edited.name(inputs[0].node));
    if (producer == kNoNode) continue;
    if (eligibility.IsDeviceWanted(original.device_id(producer))) return true;
    if (!IsCpuDevice(original.device(producer))) continue;
    // Tensors in host memory are swapped for their readers.
    const Graph::Readers swap_ins = edited.readers(id);
    for (uint32_t i = 0; i < swap_ins.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      if (seen[swap_ins[i].node]) continue;
      seen[swap_ins[i].node] = true;
      const Graph::Readers readers = edited.readers(swap_ins[i].node);
      for (uint32_t k = 0; k < readers.size(); ++k) {
        if (poll.Tick()) return stop.status("analysis");
        if (readers[k].port != kControl && is_wanted(edited.device(readers[k].node))) return true;
      }
    }
  }
  return !swaps;
}

}  // namespace spillway::core
