#include "client_lib/cli/level_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/text_table.h"

namespace spillway::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

const char* SyncModeText(int32_t mode) {
  switch (mode) {
    case 0:
      return "nothing waits for copies";
    case 1:
      return "the other consumers of a tensor wait until it is out";
    case 2:
      return "a swap-in waits for the other inputs of its consumer";
    case 3:
      return "other consumers and swap-ins wait";
    default:
      return "";  // Of a newer server.
  }
}

std::string SettingText(const v1::LevelDevice& device) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, bool has, int32_t value) {
    if (has) parts.push_back(absl::StrCat(name, " ", value));
  };
  add("swapout_threshold", device.has_swapout_threshold(), device.swapout_threshold());
  add("swapin_ahead", device.has_swapin_ahead(), device.swapin_ahead());
  add("swapin_groupby", device.has_swapin_groupby(), device.swapin_groupby());
  add("sync_mode", device.has_sync_mode(), device.sync_mode());
  if (parts.empty()) return "none: nothing is swapped";
  const std::string mode = device.has_sync_mode() ? SyncModeText(device.sync_mode()) : "";
  return absl::StrCat(absl::StrJoin(parts, ", "), mode.empty() ? "" : ": ", mode,
                      device.has_tuning() ? "" : " (all as given)");
}

std::string SourceText(v1::MemorySource source, const v1::Hardware& hardware) {
  switch (source) {
    case v1::MEMORY_SOURCE_PRESET:
      return absl::StrCat(", from the preset", hardware.preset().empty() ? "" : " ",
                          hardware.preset());
    case v1::MEMORY_SOURCE_OPTION:
      return ", from --gpu-memory-bytes";
    case v1::MEMORY_SOURCE_AUTOTUNE_GPU_MEM:
      return ", from --autotune-gpu-mem";
    case v1::MEMORY_SOURCE_NVIDIA_SMI:
      return ", from nvidia-smi";
    default:
      return "";
  }
}

std::string ReserveText(const v1::Hardware& hardware) {
  if (hardware.allocator_reserve() == 0) return "";
  return absl::StrFormat(", less %.3g%% for TensorFlow's allocator",
                         100 * hardware.allocator_reserve());
}

std::string UnswappedText(const v1::DeviceFit& fit, const v1::LevelTuning& tuning) {
  const int64_t margin = fit.budget_bytes() - fit.unswapped_peak_bytes();
  return absl::StrCat(FormatBytes(fit.unswapped_peak_bytes()), " at the peak, ",
                      FormatBytes(margin < 0 ? -margin : margin), margin < 0 ? " more" : " less",
                      " than the budget",
                      fit.not_needed() && fit.fit() == v1::FIT_UNKNOWN
                          ? ": as far as is known, no swapping is needed"
                      : fit.not_needed()                          ? ": no swapping is needed"
                      : margin >= 0 && tuning.setting_count() > 0 ? ", but does not fit as it came"
                                                                  : "");
}

std::string SearchText(const v1::LevelTuning& tuning) {
  return absl::StrCat(FormatCount(tuning.setting_count(), "setting"), " played",
                      tuning.exhaustive() ? " (all that differ), " : ", ",
                      tuning.fitting_setting_count(), " fitting");
}

std::string StepText(const v1::DeviceFit& fit) {
  std::vector<std::string> parts;
  if (fit.has_step_time_ns()) {
    std::string step = FormatMilliseconds(fit.step_time_ns());
    if (fit.full_speed_step_time_ns() > 0 && fit.step_time_ns() > 0) {
      absl::StrAppendFormat(&step, " (%.0f%% of full speed)",
                            100.0 * fit.full_speed_step_time_ns() / fit.step_time_ns());
    }
    parts.push_back(std::move(step));
  }
  if (fit.has_synchronous_step_time_ns()) {
    parts.push_back(
        absl::StrCat(FormatMilliseconds(fit.synchronous_step_time_ns()), " synchronously"));
  }
  if (fit.has_peak_bytes()) {
    parts.push_back(absl::StrCat(FormatBytes(fit.peak_bytes()), " at the peak"));
  }
  if (fit.has_need_bytes() && fit.need_bytes() > fit.peak_bytes()) {
    parts.push_back(absl::StrCat(FormatBytes(fit.need_bytes()), " needed, placed"));
  }
  return absl::StrJoin(parts, ", ");
}

void AddDevice(const v1::LevelDevice& device, const v1::RewriteReport& report, Rows* facts) {
  facts->push_back({"setting", SettingText(device)});
  const auto found =
      std::find_if(report.fits().begin(), report.fits().end(),
                   [&device](const v1::DeviceFit& fit) { return fit.device() == device.device(); });
  if (!device.has_tuning() || found == report.fits().end()) return;
  const v1::Hardware& hardware = report.hardware().hardware();
  const v1::LevelTuning& tuning = device.tuning();
  const v1::DeviceFit& fit = *found;
  facts->push_back(
      {"budget", absl::StrCat(FormatBytes(fit.budget_bytes()),
                              SourceText(fit.budget_source(), hardware), ReserveText(hardware))});
  facts->push_back({"unswapped", UnswappedText(fit, tuning)});
  if (tuning.setting_count() > 0) facts->push_back({"search", SearchText(tuning)});
  const std::string step = StepText(fit);
  if (!step.empty()) facts->push_back({"foretold", step});
}

// TFLMS's line: "Added N operations to the model (A swap-out operations (x GiB) and ...)".
std::string AddedText(const v1::RewriteReport& report) {
  int64_t outs = 0, ins = 0, out_bytes = 0, in_bytes = 0, unknown = 0;
  for (const v1::DeviceReport& device : report.devices()) {
    outs += device.swap_out_count();
    ins += device.swap_in_count();
    out_bytes += device.swap_out_bytes();
    in_bytes += device.swap_in_bytes();
    unknown += device.unknown_size_count();
  }
  const char* least = unknown > 0 ? ">= " : "";
  return absl::StrCat(FormatCount(outs + ins, "operation"), " (",
                      FormatCount(outs, "swap-out operation"), " (", least, FormatBytes(out_bytes),
                      ") and ", FormatCount(ins, "swap-in operation"), " (", least,
                      FormatBytes(in_bytes), "))");
}

}  // namespace

std::vector<std::vector<std::string>> LevelFacts(const v1::RewriteReport& report) {
  if (!report.has_level()) return {};
  const v1::LevelReport& level = report.level();
  Rows facts;
  std::string graph = absl::StrCat(report.node_count_before(), " vertices, ",
                                   FormatCount(level.edge_count(), "edge"), ", ",
                                   FormatCount(level.level_count(), "level"));
  if (level.unleveled_op_count() > 0) {
    absl::StrAppend(&graph, "; ", FormatCount(level.unleveled_op_count(), "op"),
                    " without a level, behind loops");
  }
  if (level.inactive_op_count() > 0) {
    absl::StrAppend(&graph, "; ", FormatCount(level.inactive_op_count(), "op"),
                    " left alone, of another mode or in loops");
  }
  facts.push_back({"graph", graph});
  if (level.serialized_level_count() > 0) {
    facts.push_back({"serialized",
                     absl::StrCat(FormatCount(level.serialized_level_count(), "level"), ", with ",
                                  FormatCount(level.serialization_edge_count(), "control edge"))});
  }
  if (report.devices_size() > 0) facts.push_back({"added", AddedText(report)});
  if (level.devices_size() == 1) AddDevice(level.devices(0), report, &facts);
  return facts;
}

std::string FormatLevelDevices(const v1::RewriteReport& report, Style style) {
  if (report.level().devices_size() < 2) return "";
  std::string text;
  for (const v1::LevelDevice& device : report.level().devices()) {
    Rows facts;
    AddDevice(device, report, &facts);
    absl::StrAppend(&text, Paragraph(device.device().empty() ? "(none given)" : device.device(), 2),
                    FormatFacts(facts, style));
  }
  return text;
}

}  // namespace spillway::cli
