#include "client_lib/text/capabilities_text.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/text_table.h"
#include "client_lib/text/value_name.h"
#include "google/protobuf/descriptor.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/names.h"

namespace spillway::text {
namespace {

// One row per limit that is set, by reflection: a new limit appears without a change here.
void AddLimits(const v1::Limits& limits, std::vector<std::vector<std::string>>* rows) {
  const google::protobuf::Reflection* reflection = limits.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(limits, &fields);
  for (const auto* field : fields) {
    const int64_t value = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32
                              ? reflection->GetInt32(limits, field)
                              : reflection->GetInt64(limits, field);
    std::string text = absl::StrCat(value);
    if (absl::EndsWith(field->name(), "_bytes"))
      absl::StrAppend(&text, " (", core::BytesText(value), ")");
    rows->push_back({field->name(), text});
  }
}

// Aligned to the left in a column that is aligned to the right.
constexpr int kAboutWidth = 44;

std::string PresetTable(const v1::GetCapabilitiesResponse& response, Style style) {
  if (response.hardware_presets().empty()) return "";  // An older server.
  std::vector<std::vector<std::string>> rows = {
      {"machine", "GPU memory", "TFLOP/s", "GB/s", "to host", "description"}};
  for (const v1::HardwareReport& machine : response.hardware_presets()) {
    const v1::Hardware& preset = machine.hardware();
    rows.push_back({preset.preset(), core::BytesText(preset.gpu_memory_bytes()),
                    absl::StrFormat("%.1f", preset.peak_flops() / 1e12),
                    absl::StrFormat("%.0f", preset.mem_bytes_per_s() / 1e9),
                    absl::StrFormat("%.0f", preset.d2h_bytes_per_s() / 1e9),
                    absl::StrFormat("%-*s", kAboutWidth, machine.about())});
  }
  return absl::StrCat("\n", FormatTable(rows, style),
                      "  GB/s: of GPU memory, and to the host in each direction. Figures are from "
                      "data sheets, named\n  by --json; only p100_pcie is fitted to a measured "
                      "run.\n");
}

}  // namespace

std::string FormatCapabilities(const v1::GetCapabilitiesResponse& response, Style style,
                               absl::string_view asked_by) {
  std::vector<std::vector<std::string>> rows = {
      {"version", asked_by.empty()
                      ? response.version()
                      : absl::StrCat(response.version(), " (this program: ", asked_by, ")")},
      {"strategies", absl::StrJoin(response.strategies(), ", ",
                                   [](std::string* out, int strategy) {
                                     const auto value = static_cast<v1::Strategy>(strategy);
                                     absl::StrAppend(
                                         out, NameOrNumber(core::StrategyName(value), value));
                                   })},
  };
  if (response.dry_run()) {
    rows.push_back({"dry run", "every rewrite: the graph is returned unchanged"});
  }
  AddLimits(response.limits(), &rows);
  return absl::StrCat(FormatFacts(rows, style), PresetTable(response, style));
}

}  // namespace spillway::text
