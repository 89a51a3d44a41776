#include "rewrite_core/strategy/apply/apply_strategy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/base/message_cost.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/simulate/step_subject.h"
#include "rewrite_core/strategy/apply/bad_plan.h"
#include "rewrite_core/strategy/apply/clone_reader.h"
#include "rewrite_core/strategy/apply/plan_reader.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {
namespace {

constexpr size_t kSha256Digits = 64;

// Twice the size of a plan that swaps all tensors of a graph with a million nodes.
constexpr int64_t kMaxPlanMemoryBytes = int64_t{1} << 30;

absl::Status PlanSettles(absl::string_view option) {
  return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                      absl::StrCat(option,
                                   " was settled when the plan was made; leave it out, or make "
                                   "another plan with it"),
                      {{"option", option}});
}

absl::StatusOr<v1::Plan> ParsePlan(const std::string& bytes) {
  v1::Plan plan;
  if (bytes.empty()) return BadPlanError("there is no plan in it");
  // Three bytes on the wire may become an entry of a hundred in memory.
  if (const int64_t memory_bytes = CostOf(*v1::Plan::descriptor(), bytes).memory_bytes;
      memory_bytes > kMaxPlanMemoryBytes) {
    return BadPlanError(absl::StrCat("it takes ", BytesText(memory_bytes),
                                     " of memory, and a plan may take ",
                                     BytesText(kMaxPlanMemoryBytes)));
  }
  if (!plan.ParseFromString(bytes)) {
    return BadPlanError("the bytes are not a serialized spillway.v1.Plan");
  }
  return plan;
}

// Parses the plan without its swaps, clones and edges, which are most of it. Reads malformed bytes
// as far as possible: ParsePlan has reported them.
v1::Plan ParseHead(const std::string& bytes) {
  std::string head;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == v1::Plan::kSwapsFieldNumber ||
        reader.field() == v1::Plan::kClonesFieldNumber ||
        reader.field() == v1::Plan::kMovedGroupsFieldNumber ||
        reader.field() == v1::Plan::kControlsFieldNumber) {
      continue;
    }
    head.append(reader.whole().data(), reader.whole().size());
  }
  v1::Plan plan;
  (void)plan.ParseFromString(head);
  return plan;
}

absl::Status CheckHead(const v1::Plan& plan) {
  const std::string version = absl::StrCat(plan.format_version());
  const bool has_moves = !plan.moved_groups().empty();
  const int needed = has_moves               ? kOffloadPlanFormatVersion
                     : plan.clones().empty() ? kPlanFormatVersion
                                             : kClonePlanFormatVersion;
  if (plan.format_version() < kPlanFormatVersion ||
      plan.format_version() > kOffloadPlanFormatVersion) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("format_version of the plan is ", version, ", and this server knows ",
                     kPlanFormatVersion, " to ", kOffloadPlanFormatVersion,
                     "; save the plan again with this version"),
        {{"option", "format_version"}, {"value", version}});
  }
  if (plan.format_version() < needed) {
    const std::string what = has_moves ? CountText(plan.moved_groups_size(), "moved group")
                                       : CountText(plan.clones_size(), "clone");
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("format_version of the plan is ", version, ", and it has ", what,
                     ", which version ", needed, " brought; give it as it was saved"),
        {{"option", "format_version"}, {"value", version}});
  }
  const std::string& sha256 = plan.graph_sha256();
  if (sha256.size() != kSha256Digits ||
      !std::all_of(sha256.begin(), sha256.end(), absl::ascii_isxdigit)) {
    return BadPlanError(
        absl::StrCat("graph_sha256 is ", Quoted(sha256), ", which is not 64 hexadecimal digits"),
        {{"field", "graph_sha256"}});
  }
  const std::string& cpu = plan.cpu_device();
  if (!cpu.empty() && !IsNameOfCpu(cpu)) {
    return BadPlanError(absl::StrCat("cpu_device is ", Quoted(cpu), ", which is no name of a CPU"),
                        {{"field", "cpu_device"}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckApplyStrategy(const v1::RewriteOptions& options, const StopToken&) {
  if (!options.cpu_device().empty()) return PlanSettles("cpu_device");
  if (options.min_tensor_bytes() != 0) return PlanSettles("min_tensor_bytes");
  if (options.inline_calls() != v1::INLINE_CALLS_UNSPECIFIED) return PlanSettles("inline_calls");
  absl::StatusOr<v1::Plan> plan = ParsePlan(options.apply().plan());
  if (!plan.ok()) return plan.status();
  if (absl::Status s = CheckKnownFields(*plan); !s.ok()) return s;
  if (absl::Status s = CheckHead(*plan); !s.ok()) return s;
  return CheckStep(plan->step());
}

absl::Status CheckApplyGraph(const v1::RewriteOptions& options, const Graph& graph,
                             const StopToken& stop) {
  auto sha256 = CanonicalSha256(graph.bytes(), stop);
  if (!sha256.ok()) return sha256.status();
  const std::string wanted =
      absl::AsciiStrToLower(ParseHead(options.apply().plan()).graph_sha256());
  if (wanted == *sha256) return absl::OkStatus();
  return InvalidError(v1::ERROR_REASON_OTHER_GRAPH,
                      absl::StrCat("the plan was made for another graph: for the one with SHA-256 ",
                                   wanted, ", and this one has ", *sha256,
                                   "; give the graph that it was made for, or make a plan for this "
                                   "one"),
                      {{"graph_sha256", *sha256}, {"plan_graph_sha256", wanted}});
}

bool AppliesInlined(const v1::RewriteOptions& options) {
  return ParseHead(options.apply().plan()).calls_inlined();
}

v1::Step ApplyStep(const v1::RewriteOptions& options) {
  v1::Plan head = ParseHead(options.apply().plan());
  v1::Step step = std::move(*head.mutable_step());
  const v1::Step& given = options.step();
  // Merging would append to lists, and combine the numbers of two machines.
  if (!given.feeds().empty()) step.clear_feeds();
  if (!given.targets().empty()) step.clear_targets();
  if (given.has_hardware()) step.clear_hardware();
  // Of these two only one may be given.
  if (given.convolution_workspace_bytes() > 0) step.clear_convolution_workspace_limit_bytes();
  if (given.has_convolution_workspace_limit_bytes()) step.clear_convolution_workspace_bytes();
  step.MergeFrom(given);
  return step;
}

// The step of a graph that was edited first: nodes that clones leave unread are not targets.
v1::Step EditedStep(const StrategyInput& input) {
  v1::Step step = input.facts.step();
  const ActiveNodes& active = input.facts.active_nodes();
  for (NodeId target : active.targets) {
    if (active.source != TargetSource::kUpdates) break;
    step.add_targets(std::string(input.facts.graph().name(target)));
  }
  return step;
}

// Reads `result`'s clones, swaps and edges on the graph of `input`, whose state moved already.
absl::Status ReadClonesAndSwaps(const v1::Plan& plan, const StrategyInput& input,
                                StrategyResult* result) {
  auto clones = ReadClones(plan, input);
  if (!clones.ok()) return clones.status();
  result->clones = *std::move(clones);
  if (result->clones.clones.empty()) {
    auto read = ReadPlan(plan, input);
    if (read.ok()) result->plan = *std::move(read);
    return read.status();
  }
  const v1::Step step = EditedStep(input);
  auto subject =
      StepSubject::WithClones(input.facts.graph(), result->clones, step, input.limits, input.stop);
  if (!subject.ok()) return subject.status();
  const StepFacts& facts = (*subject)->facts();
  if (absl::Status s = facts.Compute({Fact::kTopology}, input.stop); !s.ok()) {
    if (!absl::IsInvalidArgument(s)) return s;
    return BadPlanError(absl::StrCat("with its clones, ", s.message()));
  }
  auto eligibility = Eligibility::Create(facts, input.options, input.stop);
  if (!eligibility.ok()) return eligibility.status();
  auto read =
      ReadPlan(plan, {facts, *eligibility, input.options, input.limits, nullptr, input.stop});
  if (read.ok()) result->plan = *std::move(read);
  return read.status();
}

absl::StatusOr<OffloadPlan> ReadMoves(const v1::Plan& plan, const StrategyInput& input) {
  OffloadPlan offload;
  if (plan.moved_groups().empty()) return offload;
  auto groups = StateGroups::Find(input.facts, input.stop);
  if (!groups.ok()) return groups.status();
  const Graph& graph = input.facts.graph();
  absl::flat_hash_map<NodeId, size_t> by_first;
  for (size_t i = 0; i < groups->groups().size(); ++i) {
    by_first[groups->groups()[i].variables[0]] = i;
    offload.state_bytes = SaturatingAdd(offload.state_bytes, groups->groups()[i].bytes);
  }
  std::vector<size_t> chosen;
  StopPoller poll(input.stop);
  for (const v1::MovedGroup& from : plan.moved_groups()) {
    std::vector<NodeId> variables;
    for (const std::string& name : from.variables()) {
      if (poll.Tick()) return input.stop.status("strategy");
      variables.push_back(graph.Find(name));
      if (variables.back() == kNoNode) return NoNodeError(name);
    }
    const auto found = by_first.find(variables.empty() ? kNoNode : variables[0]);
    const bool is_group =
        found != by_first.end() && groups->groups()[found->second].variables == variables;
    const std::string first = from.variables().empty() ? "" : from.variables(0);
    if (!is_group) {
      return BadPlanError(absl::StrCat("it moves ", Quoted(first), " with ",
                                       CountText(from.variables_size(), "variable"),
                                       ", which are not all of one group that the step updates"),
                          {{"node", first}});
    }
    const StateGroup& group = groups->groups()[found->second];
    if (group.kept != v1::STATE_KEPT_UNSPECIFIED) {
      return BadPlanError(
          absl::StrCat("it moves ", Quoted(first), ", which cannot move, because of ",
                       Quoted(graph.name(group.in_the_way))),
          {{"node", first}});
    }
    chosen.push_back(found->second);
    by_first.erase(found);  // Not twice.
  }
  std::sort(chosen.begin(), chosen.end());
  for (size_t i : chosen) offload.groups.push_back(groups->groups()[i]);
  auto nodes = groups->NodesOf(chosen, input.stop);
  if (!nodes.ok()) return nodes.status();
  offload.nodes = *std::move(nodes);
  return offload;
}

absl::StatusOr<StrategyResult> PlanApply(const StrategyInput& input) {
  absl::StatusOr<v1::Plan> plan = ParsePlan(input.options.apply().plan());
  if (!plan.ok()) return plan.status();
  StrategyResult result;
  auto offload = ReadMoves(*plan, input);
  if (!offload.ok()) return offload.status();
  result.offload = *std::move(offload);
  absl::Status read;
  if (result.offload.empty()) {
    read = ReadClonesAndSwaps(*plan, input, &result);
  } else {
    auto subject = StepSubject::WithMoves(input.facts.graph(), result.offload.nodes,
                                          input.facts.step(), input.limits, input.stop);
    if (!subject.ok()) return subject.status();
    auto eligibility = Eligibility::Create((*subject)->facts(), input.options, input.stop);
    if (!eligibility.ok()) return eligibility.status();
    read = ReadClonesAndSwaps(
        *plan,
        {(*subject)->facts(), *eligibility, input.options, input.limits, nullptr, input.stop},
        &result);
  }
  if (!read.ok()) return read;
  if (result.offload.empty() && result.plan.empty() && result.clones.clones.empty()) {
    result.why_nothing = "the plan has neither swaps nor control edges: there is nothing to apply";
  }
  if (input.options.decision_detail() != v1::DECISION_DETAIL_NONE) {
    StopPoller poll(input.stop);
    for (const PlannedSwap& swap : result.plan.swaps) {
      if (poll.Tick()) return input.stop.status("strategy");
      if (swap.tensor.node >= input.facts.graph().num_nodes()) continue;  // Of a clone.
      result.decisions.push_back({swap.tensor, v1::REASON_SWAPPED, swap.size_bytes,
                                  swap.size_bytes == kUnknownSize
                                      ? input.facts.shapes().why_unknown(swap.tensor)
                                      : v1::SIZE_UNKNOWN_UNSPECIFIED});
    }
  }
  return result;
}

}  // namespace spillway::core
