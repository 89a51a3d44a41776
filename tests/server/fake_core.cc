#include "tests/server/fake_core.h"

#include <string>

#include "absl/time/clock.h"

namespace spillway::server {

absl::StatusOr<v1::RewriteResponse> FakeRewrite(absl::string_view graph_def,
                                                const v1::RewriteOptions&, const v1::Limits&,
                                                const core::StopToken&, core::PlanReuse*) {
  v1::RewriteResponse response;
  response.set_graph_def(std::string(graph_def));
  v1::RewriteReport& report = *response.mutable_report();
  report.set_outcome(v1::OUTCOME_REWRITTEN);
  report.set_strategy(v1::STRATEGY_SCOPE);
  report.set_node_count_before(100);
  report.set_node_count_after(117);
  for (int i = 0; i < 2; ++i) {  // Two devices, whose figures are summed.
    v1::DeviceReport& device = *report.add_devices();
    device.set_swapped_tensor_count(2 + i);  // 5
    device.set_swap_out_count(3 + i);        // 7
    device.set_swap_in_count(5 + i);         // 11
    device.set_swap_out_bytes(1000 + i);     // 2001
    device.set_swap_in_bytes(3000 + i);      // 6001
    device.set_unknown_size_count(1);        // 2
  }
  v1::StageTiming& stage = *report.add_stages();
  stage.set_stage(v1::STAGE_APPLY);
  stage.set_duration_ns(250'000'000);
  return response;
}

RewriteFunction Gate::AsFunction() {
  return [this](absl::string_view graph_def, const v1::RewriteOptions& options,
                const v1::Limits& limits, const core::StopToken& stop,
                core::PlanReuse* reuse) -> absl::StatusOr<v1::RewriteResponse> {
    ++running_;
    while (!open_) {
      if (stop.ShouldStop(1)) {
        --running_;
        ++stopped_;
        return stop.status("strategy");
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    --running_;
    return FakeRewrite(graph_def, options, limits, stop, reuse);
  };
}

void Gate::Open() { open_ = true; }

}  // namespace spillway::server
