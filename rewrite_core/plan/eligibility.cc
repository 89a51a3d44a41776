#include "rewrite_core/plan/eligibility.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

struct Subject {
  const StepFacts& facts;
  Tensor tensor;
  OutputType type;
};

// The rules that need no options, in the order in which they are tried. Each returns true for the
// tensors that it forbids.
struct Rule {
  v1::Reason reason;
  bool (*forbids)(const Subject&);
};

constexpr Rule kRules[] = {
    {v1::REASON_SWAP_NODE,
     [](const Subject& s) {
       const absl::string_view op = s.facts.graph().op(s.tensor.node);
       return (op == "Identity" || absl::StartsWith(op, "_CopyFrom")) &&
              absl::StrContains(s.facts.graph().name(s.tensor.node), kSwapNodeMark);
     }},
    {v1::REASON_FED, [](const Subject& s) { return s.facts.shapes().IsFed(s.tensor.node); }},
    {v1::REASON_REFERENCE, [](const Subject& s) { return s.type.is_ref; }},
    // For a call by name, the type is only known from the function: no single node's bytes prove a
    // swap of it sound.
    {v1::REASON_UNKNOWN_DTYPE,
     [](const Subject& s) {
       return s.type.dtype == kDtInvalid || !s.facts.graph().op_info(s.tensor.node).known;
     }},
    {v1::REASON_RESOURCE,
     [](const Subject& s) { return s.type.dtype == kDtResource || s.type.dtype == kDtVariant; }},
    // Strings, shapes, int32 that kernels keep there, and all outputs of ops without a GPU kernel;
    // outputs that the graph itself puts on a CPU have another reason, below. Also int32 that a
    // kernel keeps in GPU memory (Cast, for example): the swap-in is an Identity, whose GPU kernel
    // for int32 has its output in host memory (TensorFlow, core/kernels/identity_op.cc).
    {v1::REASON_HOST_MEMORY,
     [](const Subject& s) {
       if (s.type.dtype == kDtInt32) return true;
       const Placement& placement = s.facts.placement();
       return placement.output(s.tensor) == kHostPlace &&
              placement.device(s.facts.graph().device_id(s.tensor.node)) != kHostPlace;
     }},
    {v1::REASON_VARIABLE_ALIAS,
     [](const Subject& s) { return bool{s.facts.variable_aliases()[s.tensor.node]}; }},
    {v1::REASON_IN_LOOP,
     [](const Subject& s) {
       return s.facts.control_flow().output_frame(s.tensor.node) != kRootFrame;
     }},
};

}  // namespace

absl::StatusOr<Eligibility> Eligibility::Create(const StepFacts& facts,
                                                const v1::RewriteOptions& options,
                                                const StopToken& stop) {
  if (absl::Status s = facts.Compute({Fact::kShapes, Fact::kControlFlow, Fact::kVariableAliases,
                                      Fact::kPlacement, Fact::kLoops, Fact::kActiveNodes},
                                     stop);
      !s.ok()) {
    return s;
  }
  Eligibility result(facts);
  result.min_tensor_bytes_ = options.min_tensor_bytes();
  const Graph& graph = facts.graph();
  absl::flat_hash_map<std::string, bool> keys;  // Of those wanted: whether a device has it.
  StopPoller poll(stop);
  for (const std::string& device : options.devices()) {
    for (std::string& key : WantedKeys(ParseDeviceName(device))) {
      if (poll.Tick()) return stop.status("analysis");
      keys.try_emplace(std::move(key), false);
    }
  }
  for (DeviceId device(0); device < graph.num_devices(); ++device) {
    if (poll.Tick()) return stop.status("analysis");
    bool wanted = options.devices().empty();
    const DeviceName own = ParseDeviceName(graph.device_name(device));
    if (!wanted) {
      for (const std::string& key : DeviceKeys(own)) {
        if (poll.Tick()) return stop.status("analysis");
        const auto found = keys.find(key);
        if (found != keys.end()) wanted = found->second = true;
      }
    }
    const bool is_cpu = own.type == "CPU";
    result.device_rule_.push_back(is_cpu    ? v1::REASON_CPU_PRODUCER
                                  : !wanted ? v1::REASON_OTHER_DEVICE
                                            : kWanted);
  }
  for (int i = 0; i < options.devices_size(); ++i) {
    bool used = false;
    for (const std::string& key : WantedKeys(ParseDeviceName(options.devices(i)))) {
      if (poll.Tick()) return stop.status("analysis");
      used = used || keys.at(key);
    }
    if (used) continue;
    return InvalidError(v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                        absl::StrCat("devices has ", Quoted(options.devices(i)),
                                     ", but no node is on it; spell it as the graph does, or leave "
                                     "devices out for all"),
                        {{"option", "devices"}, {"value", options.devices(i)}});
  }
  return result;
}

v1::Reason Eligibility::ReasonFor(Tensor tensor) const {
  const Subject subject{*facts_, tensor, facts_->shapes().type(tensor)};
  for (const Rule& rule : kRules) {
    if (rule.forbids(subject)) return rule.reason;
  }
  const v1::Reason device = device_rule_[facts_->graph().device_id(tensor.node)];
  return device != kWanted ? device : ReasonOfSize(tensor);
}

v1::Reason Eligibility::ReasonOnHost(Tensor tensor) const {
  const Subject subject{*facts_, tensor, facts_->shapes().type(tensor)};
  if (facts_->placement().output(tensor) != kHostPlace || subject.type.dtype == kDtInt32) {
    return v1::REASON_HOST_MEMORY;
  }
  // A value fed to a placeholder is in host memory, too.
  const bool is_placeholder = facts_->graph().op(tensor.node) == "Placeholder";
  for (const Rule& rule : kRules) {
    if (rule.reason == v1::REASON_HOST_MEMORY || rule.reason == v1::REASON_VARIABLE_ALIAS ||
        (rule.reason == v1::REASON_FED && is_placeholder)) {
      continue;
    }
    if (rule.forbids(subject)) return rule.reason;
  }
  if (!facts_->variable_aliases()[tensor.node]) return ReasonOfSize(tensor);
  // Memory that may be a variable's, or not: its updates are not known.
  const BufferIndex buffer = facts_->buffers().buffer_of(tensor);
  const bool is_variable =
      buffer != kNoBuffer && facts_->buffers().buffers()[buffer].storage == Storage::kVariable;
  return is_variable ? ReasonOfSize(tensor) : v1::REASON_VARIABLE_ALIAS;
}

v1::Reason Eligibility::ReasonOfSize(Tensor tensor) const {
  const int64_t size_bytes = facts_->shapes().size_bytes(tensor);
  if (size_bytes != kUnknownSize && size_bytes < min_tensor_bytes_) {
    return v1::REASON_TOO_SMALL;
  }
  return v1::REASON_SWAPPED;
}

}  // namespace spillway::core
