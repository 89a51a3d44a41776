// Environment settings of the program's TensorFlow that plans do not assume: by default memory is
// one piece, an operation waits for it while others run, cuDNN's workspaces are optional, XLA is
// off and TF32 on. And the setting of plans there: the limit of these workspaces.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_TENSORFLOW_SETTINGS_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_TENSORFLOW_SETTINGS_H_

#include <stdlib.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "client_lib/internal/gpu_allocator.h"

namespace spillway::internal {

// As TensorFlow reads it (ReadBoolFromEnvVar in tsl/util/env_var.cc): a non-bool value means the
// default.
inline bool BoolVariable(const char* name, bool otherwise) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return otherwise;
  std::string text(value);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text == "0" || text == "false") return false;
  return text == "1" || text == "true" || otherwise;
}

inline bool VariableIs(const char* name, std::string_view wanted) {
  const char* const value = std::getenv(name);
  return value != nullptr && value == wanted;
}

// Whether TF_XLA_FLAGS lets XLA choose clusters to compile (SetterForXlaAutoJitFlag in
// compiler/jit/flags.cc): a level above 0, for all graphs or those of one GPU, or `fusible`; the
// last flag counts. A value without a leading `-` names a file, which is not read here.
inline bool XlaClusters() {
  constexpr std::string_view kFlag = "--tf_xla_auto_jit=", kOneGpu = "single-gpu(";
  const char* const flags = std::getenv("TF_XLA_FLAGS");
  std::istringstream words(flags == nullptr ? "" : flags);
  bool clusters = false;
  std::string word;
  for (bool first = true; words >> word; first = false) {
    if (first && word[0] != '-') return false;
    if (word.compare(0, kFlag.size(), kFlag) != 0) continue;
    std::string level = word.substr(kFlag.size());
    if (level.compare(0, kOneGpu.size(), kOneGpu) == 0) level.erase(0, kOneGpu.size());
    clusters = level == "fusible" || std::atoi(level.c_str()) > 0;
  }
  return clusters;
}

inline constexpr char kWorkspaceLimit[] = "TF_CUDNN_WORKSPACE_LIMIT_IN_MB";
// `spillway run` sets both to the same: the limit is a plan's then, not the job's own.
inline constexpr char kLimitOfRun[] = "SPILLWAY_WORKSPACE_LIMIT_IN_MB";

// Of one of Advice.environment, which a server may have sent: the limit that it sets, in MiB; 0 if
// it is another variable, or no such number (1 to 2^30).
inline int WorkspaceLimitMib(std::string_view variable) {
  constexpr std::string_view kName = kWorkspaceLimit;
  if (variable.substr(0, kName.size()) != kName) return 0;
  variable.remove_prefix(kName.size());
  if (variable.size() < 2 || variable[0] != '=') return 0;
  int64_t mib = 0;
  for (char digit : variable.substr(1)) {
    if (digit < '0' || digit > '9' || mib > (1 << 30)) return 0;
    mib = 10 * mib + (digit - '0');
  }
  return mib > (1 << 30) ? 0 : static_cast<int>(mib);
}

// Whether convolutions run without a workspace if none is free. Otherwise a limit makes them fail.
inline bool WorkspacesAreOptional() {
  return !BoolVariable("TF_DETERMINISTIC_OPS", false) &&
         BoolVariable("TF_CUDNN_USE_AUTOTUNE", true);
}

// Reserves the limit's place in the environment; TensorFlow takes it for unset
// (GetDnnWorkspaceLimit in core/kernels/gpu_utils.cc).
inline void ReserveWorkspaceLimit() { setenv(kWorkspaceLimit, "", /*overwrite=*/0); }

// Limits cuDNN's workspaces in this process to a plan's limit, `mib` (0: it has no limit), unless
// the site or the job did (`spillway run` is neither). TensorFlow reads it once, before its first
// convolution: for a later plan with a smaller one, returns a warning, otherwise "". Python has the
// same in spillway/tensorflow/_settings.py. Thread safety: any number of calls at once; as setenv,
// not beside a getenv, unless ReserveWorkspaceLimit was called before there were threads.
inline std::string LimitWorkspaces(int mib) {
  static std::mutex mutex;
  static int limit = 0;  // Set here before.
  const std::lock_guard<std::mutex> lock(mutex);
  if (mib <= 0 || !WorkspacesAreOptional()) return "";
  const char* const set = std::getenv(kWorkspaceLimit);
  if (limit == 0 && set != nullptr && *set != '\0') {
    if (VariableIs(kLimitOfRun, set))
      limit = WorkspaceLimitMib(std::string(kWorkspaceLimit) + "=" + set);
    if (limit == 0) return "";
  }
  const int earlier = limit;
  if (earlier != 0 && mib >= earlier) return "";
  limit = mib;
  setenv(kWorkspaceLimit, std::to_string(mib).c_str(), /*overwrite=*/1);
  if (earlier == 0) return "";
  return "a plan limits cuDNN's workspaces to " + std::to_string(mib) +
         " MiB, and an earlier one " + "of this process to " + std::to_string(earlier) +
         " MiB, which TensorFlow may have read: " + "set " + kWorkspaceLimit + "=" +
         std::to_string(mib) + " before the program starts";
}

// Returns a warning, one sentence, for each: its effect on a plan, and a remedy. Python has the
// same in spillway/tensorflow/_settings.py; tests/testing/tensorflow_settings.txt binds both.
inline std::vector<std::string> SettingWarnings() {
  // AllocateScratchOrFallback and AutotuneUnfusedConv in kernels/conv_ops_gpu.{h,cc}: without a
  // measurement, or if the first algorithm that works is taken, none works without a workspace.
  constexpr char kWorkspaces[] =
      ": cuDNN's convolutions then fail if memory for their workspaces is short, which plans "
      "treat as optional, so a plan that fits may run out of memory; unset it, or plan for the "
      "workspaces by convolution_workspace_bytes (--convolution-workspace-bytes)";
  std::vector<std::string> warnings;
  if (std::string allocator = AllocatorWarning(); !allocator.empty()) warnings.push_back(allocator);
  // GetAllowGrowthValue in core/common_runtime/gpu/gpu_bfc_allocator.cc takes no other spelling;
  // BFCAllocator::Extend makes regions that double in size.
  if (VariableIs("TF_FORCE_GPU_ALLOW_GROWTH", "true")) {
    warnings.push_back(
        "TF_FORCE_GPU_ALLOW_GROWTH is true: TensorFlow then takes the GPU's memory in pieces that "
        "it never merges, and plans are made for memory in one piece, so a plan that fits may run "
        "out of memory; unset it");
  }
  if (BoolVariable("TF_DETERMINISTIC_OPS", false)) {
    warnings.push_back(std::string("TF_DETERMINISTIC_OPS is on") + kWorkspaces);
  }
  if (!BoolVariable("TF_CUDNN_USE_AUTOTUNE", true)) {
    warnings.push_back(std::string("TF_CUDNN_USE_AUTOTUNE is off") + kWorkspaces);
  }
  if (XlaClusters()) {
    warnings.push_back(
        "TF_XLA_FLAGS has --tf_xla_auto_jit: XLA then compiles clusters of operations after the "
        "plan is made, and knows no swaps, so memory and times differ from the forecast; take "
        "the flag out");
  }
  // NVIDIA's libraries read it, TensorFlow does not.
  if (VariableIs("NVIDIA_TF32_OVERRIDE", "0")) {
    warnings.push_back(
        "NVIDIA_TF32_OVERRIDE is 0: matrix products and convolutions of float32 are then up to 8 "
        "times as slow on GPUs that have TF32, which plans are made for, so times differ from "
        "the forecast; unset it, or give peak_flops (--peak-flops) without TF32");
  }
  // NumInterOpThreadsFromSessionOptions in core/common_runtime/process_util.cc. The thread of a
  // kernel that waits for memory is blocked (AllocatorRetry); by the simulator one kernel of each
  // GPU waits at a time, and rarely a copy in.
  if (VariableIs("TF_NUM_INTEROP_THREADS", "1")) {
    warnings.push_back(
        "TF_NUM_INTEROP_THREADS is 1: an operation that waits for memory blocks a thread, and none "
        "is left for those that free memory, so a plan that fits may run out of memory; unset it, "
        "or give at least one more than there are GPUs");
  }
  return warnings;
}

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_TENSORFLOW_SETTINGS_H_
