#include "rewrite_core/request_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::core {
namespace {

// Enums to which a newer API may add values.
absl::Status CheckValues(const v1::RewriteOptions& options) {
  if (!v1::AlreadyRewritten_IsValid(options.already_rewritten())) {
    return UnknownValueError("already_rewritten", options.already_rewritten());
  }
  if (!v1::DecisionDetail_IsValid(options.decision_detail())) {
    return UnknownValueError("decision_detail", options.decision_detail());
  }
  if (!v1::Simulation_IsValid(options.simulation())) {
    return UnknownValueError("simulation", options.simulation());
  }
  if (!v1::InlineCalls_IsValid(options.inline_calls())) {
    return UnknownValueError("inline_calls", options.inline_calls());
  }
  for (int output : options.outputs()) {
    if (!v1::Output_IsValid(output) || output == v1::OUTPUT_UNSPECIFIED) {
      return UnknownValueError("outputs", output);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptions(const v1::RewriteOptions& options, const StopToken& stop) {
  if (absl::Status status = CheckKnownFields(options); !status.ok()) return status;
  if (absl::Status status = CheckValues(options); !status.ok()) return status;
  // Not left to the strategy, which does not run if the graph stays unchanged.
  if (const PlanningStrategy* strategy = FindStrategy(options)) {
    if (absl::Status status = strategy->check(options, stop); !status.ok()) return status;
  }
  if (options.dry_run() && options.has_strip()) {
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        "dry_run is true, and the strategy is strip, which plans nothing; leave one "
        "of them out",
        {{"option", "dry_run"}, {"other_option", "strip"}});
  }
  if (options.inline_calls() == v1::INLINE_CALLS_ALWAYS && AsksFor(v1::OUTPUT_PATCH, options)) {
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        "inline_calls is ALWAYS, and a patch is asked for, which a live graph could "
        "not follow; leave one of them out",
        {{"option", "inline_calls"}, {"other_option", "outputs"}});
  }
  if (options.budget().offload() == v1::OFFLOAD_OPTIMIZER && AsksFor(v1::OUTPUT_PATCH, options)) {
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        "offload is OPTIMIZER, and a patch is asked for, which has no devices of a live graph's "
        "nodes; rewrite the GraphDef, or leave one of them out",
        {{"option", "offload"}, {"other_option", "outputs"}});
  }
  if (options.min_tensor_bytes() < 0) {
    return BadOptionError("min_tensor_bytes", options.min_tensor_bytes(),
                          "give a size in bytes, 0 or more");
  }
  // The result must be a graph that TensorFlow imports, and that has its swap nodes on a CPU.
  const std::string& cpu = options.cpu_device();
  if (!cpu.empty() && !IsNameOfCpu(cpu)) {
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("cpu_device is ", Quoted(cpu),
                                     ", which is no name of a CPU; give one like /device:CPU:0"),
                        {{"option", "cpu_device"}, {"value", cpu}});
  }
  // Not left to the simulation, which may be disabled.
  return CheckStep(options.step());
}

bool AsksFor(v1::Output output, const v1::RewriteOptions& options) {
  const auto& outputs = options.outputs();
  if (outputs.empty()) return output == v1::OUTPUT_GRAPH || output == v1::OUTPUT_REPORT;
  return std::find(outputs.begin(), outputs.end(), output) != outputs.end();
}

}  // namespace spillway::core
