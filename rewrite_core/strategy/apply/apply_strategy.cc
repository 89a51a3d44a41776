#include "rewrite_core/strategy/apply/apply_strategy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/base/message_cost.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/canonical_form.h"
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
  if (plan.format_version() == kPlanFormatVersion && !plan.clones().empty()) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("format_version of the plan is ", kPlanFormatVersion,
                     ", which has no clones, and the plan has ", plan.clones_size(),
                     "; give it as it was saved"),
        {{"option", "format_version"}, {"value", absl::StrCat(kPlanFormatVersion)}});
  }
  if (plan.format_version() < kPlanFormatVersion ||
      plan.format_version() > kClonePlanFormatVersion) {
    const std::string value = absl::StrCat(plan.format_version());
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("format_version of the plan is ", value, ", and this server knows ",
                     kPlanFormatVersion, " and ", kClonePlanFormatVersion,
                     " (with clones); save the plan again with this version"),
        {{"option", "format_version"}, {"value", value}});
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

// Reads the swaps and edges on the graph with the clones.
absl::StatusOr<SwapPlan> ReadOnClones(const v1::Plan& plan, const ClonePlan& clones,
                                      const StrategyInput& input) {
  const Graph& graph = input.facts.graph();
  v1::Step step = input.facts.step();
  // Nodes that clones leave unread are not targets.
  if (const ActiveNodes& active = input.facts.active_nodes();
      active.source == TargetSource::kUpdates) {
    for (NodeId target : active.targets) step.add_targets(std::string(graph.name(target)));
  }
  auto subject = StepSubject::WithClones(graph, clones, step, input.limits, input.stop);
  if (!subject.ok()) return subject.status();
  const StepFacts& facts = (*subject)->facts();
  if (absl::Status s = facts.Compute({Fact::kTopology}, input.stop); !s.ok()) {
    if (!absl::IsInvalidArgument(s)) return s;
    return BadPlanError(absl::StrCat("with its clones, ", s.message()));
  }
  auto eligibility = Eligibility::Create(facts, input.options, input.stop);
  if (!eligibility.ok()) return eligibility.status();
  return ReadPlan(plan, {facts, *eligibility, input.options, input.limits, nullptr, input.stop});
}

absl::StatusOr<StrategyResult> PlanApply(const StrategyInput& input) {
  absl::StatusOr<v1::Plan> plan = ParsePlan(input.options.apply().plan());
  if (!plan.ok()) return plan.status();
  StrategyResult result;
  auto clones = ReadClones(*plan, input);
  if (!clones.ok()) return clones.status();
  result.clones = *std::move(clones);
  auto read = result.clones.clones.empty() ? ReadPlan(*plan, input)
                                           : ReadOnClones(*plan, result.clones, input);
  if (!read.ok()) return read.status();
  result.plan = *std::move(read);
  if (result.plan.empty() && result.clones.clones.empty()) {
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
