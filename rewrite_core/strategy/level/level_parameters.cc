#include "rewrite_core/strategy/level/level_parameters.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// The maximum of serialization_by_size, in GiB: bytes fit in 63 bits.
constexpr double kMaxGib = double{int64_t{1} << 32};

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
    return BadOptionError(option, value,
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
    return BadOptionError(
        "sync_mode", options.sync_mode(),
        "give 0 (nothing waits for copies), 1 (for swap-outs), 2 (for swap-ins) or 3 "
        "(for both)");
  }
  const double by_size = options.serialization_by_size();
  if (!(by_size >= 0 && by_size <= kMaxGib)) {
    return BadOptionError("serialization_by_size", by_size, "give a size in GiB, 0 (none) or more");
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
