#include "rewrite_core/strategy/common/device_fit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/memory/unknown_memory.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::core {
namespace {

int64_t Margin(const v1::DeviceFit& fit) { return fit.budget_bytes() - fit.unswapped_peak_bytes(); }

}  // namespace

v1::DeviceFit FitOfUnswapped(const StepResult& unswapped, GpuIndex gpu, int64_t budget_bytes,
                             const StepFacts& facts) {
  v1::DeviceFit fit;
  fit.set_device(facts.placement().devices()[gpu]);
  fit.set_budget_bytes(budget_bytes);
  fit.set_budget_source(facts.HardwareOf(gpu).gpu_memory_source);
  fit.set_unswapped_peak_bytes(unswapped.peak_bytes(gpu));
  fit.set_full_speed_step_time_ns(unswapped.step_time_ns());
  return fit;
}

absl::Status AddPlanned(const SwapPlan& plan, const StepResult& outcome, GpuIndex gpu,
                        const StepFacts& facts, PlanSimulator* simulator, const StopToken& stop,
                        v1::DeviceFit* fit) {
  SetFit(/*fits=*/true,
         outcome.unknown == nullptr ? std::vector<v1::FitUnknown>()
                                    : DescribeUnknown(facts.graph(), *outcome.unknown, gpu),
         fit);
  fit->set_step_time_ns(outcome.step_time_ns());
  fit->set_synchronous_step_time_ns(outcome.synchronous_step_time_ns());
  fit->set_peak_bytes(outcome.peak_bytes(gpu));
  // If it is unknown whether the budget suffices, the need is unknown, too.
  if (fit->fit() != v1::FIT_FITS || simulator == nullptr) return absl::OkStatus();
  auto need = FindNeed(simulator, plan, StepTerms::OneGpu(gpu, 0), fit->peak_bytes(), stop);
  if (!need.ok()) return need.status();
  // The budget suffices, although a larger one may not.
  if (*need > 0) fit->set_need_bytes(std::min(*need, fit->budget_bytes()));
  return absl::OkStatus();
}

std::string NotNeededText(const google::protobuf::RepeatedPtrField<v1::DeviceFit>& fits,
                          const StepFacts& facts) {
  const v1::DeviceFit* tightest = nullptr;
  for (const v1::DeviceFit& fit : fits) {
    if (!fit.not_needed()) return "";
    // A GPU about which something is unknown takes precedence over a tight one.
    const auto rank = [](const v1::DeviceFit& f) {
      return std::make_pair(f.fit() != v1::FIT_UNKNOWN, Margin(f));
    };
    if (tightest == nullptr || rank(fit) < rank(*tightest)) tightest = &fit;
  }
  if (tightest == nullptr) return "";
  Hardware hardware = facts.hardware();
  hardware.gpu_memory_source = tightest->budget_source();
  const std::string taken = absl::StrCat(BytesText(tightest->unswapped_peak_bytes()), " of the ",
                                         BytesText(tightest->budget_bytes()), " of a GPU (",
                                         hardware.MemoryOrigin(), ")");
  if (tightest->fit() == v1::FIT_UNKNOWN) {
    std::string text = absl::StrCat(
        "unknown whether swapping is needed: the known part of a step takes at most ", taken);
    for (int i = 0; i < tightest->fit_unknown_size(); ++i) {
      absl::StrAppend(&text, i == 0 ? ", but " : "; and ", tightest->fit_unknown(i).message());
    }
    return text;
  }
  const std::string of = absl::StrCat("no swapping is needed: a step takes at most ", taken);
  return Margin(*tightest) >= 0
             ? absl::StrCat(of, ", which leaves ", BytesText(Margin(*tightest)))
             : absl::StrCat(of, " if nothing waits for memory, and fits if ops wait");
}

}  // namespace spillway::core
