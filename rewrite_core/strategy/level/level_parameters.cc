#include "rewrite_core/strategy/level/level_parameters.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// The maximum of serialization_by_size and autotune_gpu_mem, in GiB: bytes fit in 63 bits.
constexpr double kMaxGib = double{int64_t{1} << 32};

absl::Status BadOption(absl::string_view option, absl::string_view value,
                       absl::string_view remedy) {
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat(option, " is ", value, "; ", remedy),
                      {{"option", option}, {"value", value}});
}

}  // namespace

LevelParameters::LevelParameters(const v1::LevelStrategy& options)
    : is_training(!options.has_is_training() || options.is_training()) {
  setting.threshold = options.has_swapout_threshold() ? options.swapout_threshold() : kAuto;
  setting.ahead = options.has_swapin_ahead() ? options.swapin_ahead() : kAuto;
  setting.groupby = options.has_swapin_groupby() ? options.swapin_groupby() : kAuto;
  setting.sync_mode = options.sync_mode();
  if (setting.threshold != kAuto && setting.syncs_swap_ins() && setting.groupby == kAuto) {
    setting.groupby = 0;
  }
}

absl::Status CheckLevelOptions(const v1::LevelStrategy& options) {
  const auto check = [](absl::string_view option, bool has, int32_t value, bool may_be_zero) {
    if (!has || value == kAuto || value > 0 || (value == 0 && may_be_zero)) return absl::OkStatus();
    return BadOption(option, absl::StrCat(value),
                     absl::StrCat("give a number of levels, ", may_be_zero ? 0 : 1,
                                  " or more, or -1 to have it tuned"));
  };
  if (absl::Status s = check("swapout_threshold", options.has_swapout_threshold(),
                             options.swapout_threshold(), /*may_be_zero=*/false);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = check("swapin_ahead", options.has_swapin_ahead(), options.swapin_ahead(),
                             /*may_be_zero=*/false);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = check("swapin_groupby", options.has_swapin_groupby(),
                             options.swapin_groupby(), /*may_be_zero=*/true);
      !s.ok()) {
    return s;
  }
  if (options.sync_mode() < 0 || options.sync_mode() > 3) {
    return BadOption("sync_mode", absl::StrCat(options.sync_mode()),
                     "give 0 (nothing waits for copies), 1 (for swap-outs), 2 (for swap-ins) or 3 "
                     "(for both)");
  }
  const double by_size = options.serialization_by_size();
  if (!(by_size >= 0 && by_size <= kMaxGib)) {
    return BadOption("serialization_by_size", absl::StrCat(by_size),
                     "give a size in GiB, 0 (none) or more");
  }
  const double memory = options.autotune_gpu_mem();
  if (options.has_autotune_gpu_mem() &&
      !(memory <= kMaxGib && std::floor(memory * kBytesPerGib) >= 1)) {
    return BadOption("autotune_gpu_mem", absl::StrCat(memory),
                     "give the GPU's memory in GiB, above 0, or leave it out for that of the "
                     "hardware");
  }
  return absl::OkStatus();
}

v1::Step LevelStep(const v1::RewriteOptions& options) {
  v1::Step step = options.step();
  if (options.level().has_autotune_gpu_mem()) {
    v1::Hardware& hardware = *step.mutable_hardware();
    hardware.set_gpu_memory_bytes(
        static_cast<int64_t>(options.level().autotune_gpu_mem() * kBytesPerGib));
    hardware.set_gpu_memory_source(v1::MEMORY_SOURCE_AUTOTUNE_GPU_MEM);
  }
  return step;
}

}  // namespace spillway::core
