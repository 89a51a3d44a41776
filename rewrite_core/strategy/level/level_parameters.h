// The parameters of the strategy `level` with the defaults of TFLMS v2 filled in (as options.proto
// documents them), and checked.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// The options give memory in GiB.
inline constexpr double kBytesPerGib = double{1 << 30};

// Of swapout_threshold, swapin_ahead and swapin_groupby: to be tuned.
inline constexpr int32_t kAuto = -1;

// What one plan is made with. `ahead` has no effect in modes 2 and 3.
struct LevelSetting {
  int32_t threshold = 1;  // Edges longer than this are swapped.
  int32_t ahead = 1;      // A swap-in's trigger is more than this before its first consumer.
  int32_t groupby = 0;    // Consumers at most this far from the next share a swap-in; 0: one each.
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

  // With kAuto for what is to be tuned; sync_mode is then the least that is tried.
  LevelSetting setting;
  bool is_training;

  // Whether something is to be tuned. With a given threshold, modes 2 and 3 leave nothing: TFLMS v2
  // then has no use for `ahead` and takes groupby -1 for 0.
  bool is_auto() const {
    return setting.threshold == kAuto || setting.groupby == kAuto ||
           (setting.ahead == kAuto && !setting.syncs_swap_ins());
  }
};

// INVALID_ARGUMENT (BAD_OPTION) naming the option and its value, if a number is out of its range.
// The graph is not looked at.
absl::Status CheckLevelOptions(const v1::LevelStrategy& options);

// options.step with level.autotune_gpu_mem as the GPUs' memory, if it is given. REQUIRES: the
// options were checked.
v1::Step LevelStep(const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PARAMETERS_H_
