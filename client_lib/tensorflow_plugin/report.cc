#include "client_lib/tensorflow_plugin/report.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "nlohmann/json.hpp"

namespace spillway::tensorflow_plugin {
namespace {

using nlohmann::json;

// Longer names of nodes are cut: a file's name has at most 255 bytes.
constexpr size_t kMaxName = 100;

// A 64-bit number, which proto3's JSON has as a text; 0 where there is none.
int64_t Number(const json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  return found->is_string() ? std::strtoll(found->get<std::string>().c_str(), nullptr, 10) : 0;
}

std::string Text(const json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

const json& At(const json& message, const char* key) {
  static const json* const none = new json(json::array());
  const auto found = message.find(key);
  return found == message.end() ? *none : *found;
}

std::string Rounded(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
  return text;
}

std::string Bytes(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (value < 1024) return Rounded(value, unit);
    value /= 1024;
  }
  return Rounded(value, "GiB");
}

std::string Milliseconds(int64_t nanoseconds) {
  return Rounded(static_cast<double>(nanoseconds) / 1e6, "ms");
}

// "; GPU:0: peak 211 KiB -> 185 KiB of 200 KiB"
std::string Peaks(const json& report) {
  const json &before = At(At(report, "forecast_before"), "devices"),
             &after = At(At(report, "forecast_after"), "devices"), &fits = At(report, "fits");
  std::string text;
  for (const json& device : after) {
    const std::string name = Text(device, "device");
    const auto same = [&name](const json& other) { return Text(other, "device") == name; };
    const auto was = std::find_if(before.begin(), before.end(), same);
    const auto fit = std::find_if(fits.begin(), fits.end(), same);
    text += ", peak" + (after.size() > 1 ? " of " + name : std::string()) + " ";
    if (was != before.end()) text += Bytes(Number(*was, "peak_bytes")) + " -> ";
    text += Bytes(Number(device, "peak_bytes"));
    if (fit != fits.end()) text += " of " + Bytes(Number(*fit, "budget_bytes"));
  }
  return text;
}

// What the step takes: beside full speed, or the time before.
std::string Cost(const json& report) {
  const int64_t after = Number(At(report, "forecast_after"), "step_time_ns");
  if (after == 0) return "";
  int64_t full = Number(At(report, "forecast_before"), "step_time_ns");
  for (const json& fit : At(report, "fits")) {
    full = std::max(full, Number(fit, "full_speed_step_time_ns"));
  }
  std::string text = ", simulated step " + Milliseconds(after);
  if (full > 0) text += " (" + Milliseconds(full) + " at full speed)";
  return text;
}

std::string FileName(const std::string& name) {
  std::string text;
  for (const unsigned char c : name.substr(0, kMaxName)) {
    text.push_back(std::isalnum(c) || c == '_' || c == '-' ? static_cast<char>(c) : '_');
  }
  return text;
}

}  // namespace

PlanSummary Summarize(const std::string& graph, const std::string& report_json) {
  const json report = json::parse(report_json, nullptr, /*allow_exceptions=*/false);
  PlanSummary summary;
  if (!report.is_object()) {
    summary.line = graph + ": the report cannot be read";
    return summary;
  }
  summary.rewritten = Text(report, "outcome") == "OUTCOME_REWRITTEN";
  if (!summary.rewritten) {
    summary.line = graph + ": " + Text(report, "summary");
    return summary;
  }
  int64_t tensors = 0, out = 0, in = 0;
  for (const json& device : At(report, "devices")) {
    tensors += Number(device, "swapped_tensor_count");
    out += Number(device, "swap_out_bytes");
    in += Number(device, "swap_in_bytes");
  }
  summary.line = graph + ": " + std::to_string(tensors) +
                 " tensors wait on the host in each step (" + Bytes(out) + " out, " + Bytes(in) +
                 " in)" + Peaks(report) + Cost(report);
  for (const json& fit : At(report, "fits")) {
    if (Text(fit, "fit") != "FIT_UNKNOWN") continue;
    summary.line += "; whether it fits is not known";
    for (const json& cause : At(fit, "fit_unknown")) {
      summary.line += ": " + Text(cause, "message");
      break;
    }
    break;
  }
  return summary;
}

std::string WriteReport(const std::string& folder, const std::string& name,
                        const std::string& report_json, std::string* problem) {
  static std::atomic<int> count{0};
  const std::string path = folder + "/" + std::to_string(getpid()) + "-" + std::to_string(++count) +
                           "-" + FileName(name) + ".json";
  const std::string unfinished = path + ".tmp";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  bool written = false;
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << report_json;
    file.close();
    written = !file.fail();
  }
  if (written) std::filesystem::rename(unfinished, path, error);
  if (written && !error) return path;
  std::filesystem::remove(unfinished, error);
  *problem = "the report '" + path +
             "' cannot be written; SPILLWAY_REPORT_DIR has to be a folder "
             "that may be written to";
  return "";
}

}  // namespace spillway::tensorflow_plugin
