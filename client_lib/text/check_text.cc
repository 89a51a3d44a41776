#include "client_lib/text/check_text.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

// The maximum number of names in a line of text; JSON lists all.
constexpr int kNamesShown = 5;

std::string Some(const Names& names) {
  const int shown = std::min(kNamesShown, names.size());
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// "103.2 %", "12 times"; empty if either is unknown.
std::string Share(const v1::CheckedFigure& figure) {
  if (!figure.has_planned() || !figure.has_seen() || figure.planned() <= 0) return "";
  const double share = static_cast<double>(figure.seen()) / static_cast<double>(figure.planned());
  return share < 10 ? absl::StrFormat("%.1f %%", 100 * share)
                    : absl::StrFormat("%.0f times", share);
}

using Format = std::function<std::string(int64_t)>;

std::vector<std::string> Row(const std::string& name, const v1::CheckedFigure& figure,
                             const Format& format) {
  return {name, figure.has_planned() ? format(figure.planned()) : "-",
          figure.has_seen() ? format(figure.seen()) : "-", Share(figure)};
}

std::string Plain(int64_t number) { return absl::StrCat(number); }

std::string Headline(const v1::RunCheck& check) {
  const int64_t outs = check.swap_outs().planned(), ins = check.swap_ins().planned();
  if (outs == 0) {
    return check.unplanned().empty() ? "this graph has no swaps" : "not all as planned";
  }
  if (check.missing().empty() && check.unmoved().empty() && check.unplanned().empty()) {
    return absl::StrCat("as planned: ", FormatCount(outs, "swap-out"), " and ",
                        FormatCount(ins, "swap-in"), " ran, and moved their tensors");
  }
  return absl::StrCat("not all as planned: ", check.swap_outs().seen(), " of ",
                      FormatCount(outs, "swap-out"), " and ", check.swap_ins().seen(), " of ",
                      FormatCount(ins, "swap-in"), " ran");
}

std::vector<std::vector<std::string>> Notes(const v1::RunCheck& check) {
  std::vector<std::vector<std::string>> notes;
  if (!check.missing().empty()) {
    notes.push_back({"did not run", absl::StrCat(Some(check.missing()),
                                                 ": pruned because no fetch needs their readers, "
                                                 "or in a branch that was not taken")});
  }
  if (!check.unmoved().empty()) {
    notes.push_back(
        {"moved nothing",
         absl::StrCat(Some(check.unmoved()), ": ran on the device where the tensor already was")});
  }
  if (!check.unplanned().empty()) {
    notes.push_back({"not in the graph", Some(check.unplanned())});
  }
  if (check.unknown_size_count() > 0) {
    notes.push_back({"sizes", absl::StrCat("planned bytes do not include ",
                                           FormatCount(check.unknown_size_count(), "tensor"),
                                           " of unknown size")});
  }
  for (const v1::CheckedDevice& device : check.devices()) {
    if (device.seen_as().empty()) {
      notes.push_back(
          {"device", absl::StrCat(device.device().empty() ? "the graph's device" : device.device(),
                                  " is not in the trace")});
    } else if (absl::StrContains(device.seen_as(), "CPU:")) {
      notes.push_back({"device", absl::StrCat("the step ran on ", device.seen_as(),
                                              ": CPUs of one process share buffers, so that swaps "
                                              "between them free no memory")});
    }
  }
  if (check.has_corrected_step_time_ns()) {
    notes.push_back(
        {"with the trace",
         absl::StrCat("the forecast with the times, workspaces and sizes of the trace: a step of ",
                      core::DurationText(absl::Nanoseconds(check.corrected_step_time_ns())))});
  }
  return notes;
}

}  // namespace

std::string FormatCheck(const v1::RunCheck& check, Style style) {
  std::vector<std::vector<std::string>> rows = {{"", "planned", "seen", "share"}};
  if (check.swap_outs().planned() > 0) {
    rows.push_back(Row("swap-outs", check.swap_outs(), Plain));
    rows.push_back(Row("swap-ins", check.swap_ins(), Plain));
    rows.push_back(Row("copied out", check.copy_out_bytes(), core::BytesText));
    rows.push_back(Row("copied in", check.copy_in_bytes(), core::BytesText));
  }
  rows.push_back(Row("step, launched ahead", check.step_time_ns(),
                     [](int64_t ns) { return core::DurationText(absl::Nanoseconds(ns)); }));
  for (const v1::CheckedDevice& device : check.devices()) {
    if (device.seen_as().empty()) continue;
    const std::string name = check.devices_size() == 1 ? "" : absl::StrCat(device.device(), ": ");
    rows.push_back(Row(name + "peak of the step", device.step_peak_bytes(), core::BytesText));
    if (device.in_use_peak_bytes().has_seen()) {
      rows.push_back(
          Row(name + "peak, resident included", device.in_use_peak_bytes(), core::BytesText));
    }
  }
  return absl::StrCat(style.Heading(Headline(check)), "\n", FormatTable(rows, style),
                      FormatFacts(Notes(check), style));
}

}  // namespace spillway::text
