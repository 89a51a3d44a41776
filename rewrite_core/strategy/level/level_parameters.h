// The parameters of the strategy `level`, checked, with the defaults of TFLMS v2 (documented in
// options.proto) filled in.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// The options give memory in GiB.
inline constexpr double kBytesPerGib = double{1 << 30};

// The value of swapout_threshold, swapin_ahead or swapin_groupby that asks for tuning.
inline constexpr int32_t kAuto = -1;

// The parameters of one plan. `ahead` has no effect in modes 2 and 3.
struct LevelSetting {
  int32_t threshold = 1;  // Edges longer than this are swapped.
  int32_t ahead = 1;      // Triggers are more than this many levels before the first consumer.
  int32_t groupby = 0;    // Adjacent consumers at most this far apart share a swap-in; 0: one each.
  int32_t sync_mode = 0;

  bool syncs_swap_outs() const { return sync_mode == 1 || sync_mode == 3; }
  bool syncs_swap_ins() const { return sync_mode == 2 || sync_mode == 3; }
  friend bool operator==(const LevelSetting& a, const LevelSetting& b) {
    return a.threshold == b.threshold && a.ahead == b.ahead && a.groupby == b.groupby &&
           a.sync_mode == b.sync_mode;
  }
};

struct LevelParameters {
  explicit LevelParameters(const v1::LevelStrategy& options);

  // kAuto for values to tune; sync_mode is then the lowest that is tried.
  LevelSetting setting;
  bool is_training;

  // Whether anything must be tuned. With a given threshold, modes 2 and 3 leave nothing to tune:
  // TFLMS v2 then ignores `ahead` and treats groupby -1 as 0.
  bool is_auto() const {
    return setting.threshold == kAuto || setting.groupby == kAuto ||
           (setting.ahead == kAuto && !setting.syncs_swap_ins());
  }
};

// INVALID_ARGUMENT (BAD_OPTION) naming the option and its value, if a number is out of its range.
// Does not depend on the graph.
absl::Status CheckLevelOptions(const v1::LevelStrategy& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_
