#include "client_lib/text/level_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
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
      return "";  // From a newer server.
  }
}

std::string SearchText(const v1::LevelTuning& tuning) {
  return absl::StrCat(FormatCount(tuning.setting_count(), "setting"), " simulated",
                      tuning.exhaustive() ? " (all that differ), " : ", ",
                      tuning.fitting_setting_count(), " fitting");
}

// As TFLMS: "Added N operations to the model (A swap-out operations (x GiB) and ...)".
std::string AddedText(const v1::RewriteReport& report) {
  int64_t outs = 0, ins = 0, out_bytes = 0, in_bytes = 0, unknown = 0;
  for (const v1::DeviceReport& device : report.devices()) {
    outs += device.swap_out_count();
    ins += device.swap_in_count();
    out_bytes += device.swap_out_bytes();
    in_bytes += device.swap_in_bytes();
    unknown += device.unknown_size_count();
  }
  return absl::StrCat(FormatCount(outs + ins, "node"), " (", FormatCount(outs, "swap-out"), " (",
                      KnownBytes(out_bytes, unknown), ") and ", FormatCount(ins, "swap-in"), " (",
                      KnownBytes(in_bytes, unknown), "))");
}

}  // namespace

std::string LevelSettingText(const v1::LevelDevice& device) {
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

std::vector<std::vector<std::string>> LevelFacts(const v1::RewriteReport& report) {
  if (!report.has_level()) return {};
  const v1::LevelReport& level = report.level();
  Rows facts;
  std::string graph = absl::StrCat(FormatCount(report.node_count_before(), "node"), ", ",
                                   FormatCount(level.edge_count(), "edge"), ", ",
                                   FormatCount(level.level_count(), "level"));
  if (level.unleveled_op_count() > 0) {
    absl::StrAppend(&graph, "; ", FormatCount(level.unleveled_op_count(), "node"),
                    " without a level, behind loops");
  }
  if (level.inactive_op_count() > 0) {
    absl::StrAppend(&graph, "; ", FormatCount(level.inactive_op_count(), "node"),
                    " left alone, in another mode or in loops");
  }
  facts.push_back({"graph", graph});
  if (level.serialized_level_count() > 0) {
    facts.push_back({"serialized",
                     absl::StrCat(FormatCount(level.serialized_level_count(), "level"), ", with ",
                                  FormatCount(level.serialization_edge_count(), "control edge"))});
  }
  if (report.devices_size() > 0) facts.push_back({"added", AddedText(report)});
  if (level.paced()) {
    facts.push_back({"paced", "ops launched after a swap-in's trigger wait for the swap-in"});
  }
  return facts;
}

void AddLevelSetting(const v1::LevelDevice& device, std::vector<std::vector<std::string>>* facts) {
  facts->push_back({"setting", LevelSettingText(device)});
  if (device.tuning().setting_count() > 0)
    facts->push_back({"search", SearchText(device.tuning())});
}

}  // namespace spillway::text
