#include "rewrite_core/analysis/machine/device_name.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spillway::core {
namespace {

// Whether two parts may be the same: one that is not given may be any.
bool Agree(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

}  // namespace

DeviceName ParseDeviceName(absl::string_view device) {
  DeviceName name;
  for (absl::string_view part : absl::StrSplit(device, '/', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, ':');
    if (words.size() == 2 && words[0] == "job") {
      name.job = std::string(words[1]);
    } else if (words.size() == 2 && words[0] == "replica") {
      name.replica = std::string(words[1]);
    } else if (words.size() == 2 && words[0] == "task") {
      name.task = std::string(words[1]);
    } else if (words.size() == 3 && words[0] == "device") {
      name.type = absl::AsciiStrToUpper(words[1]);
      name.index = std::string(words[2]);
    } else if (words.size() == 2 && words[0] == "device") {  // Any index.
      name.type = absl::AsciiStrToUpper(words[1]);
    } else if (words.size() == 2) {  // The old form: `gpu:0`.
      name.type = absl::AsciiStrToUpper(words[0]);
      name.index = std::string(words[1]);
    }
  }
  return name;
}

bool IsCpuDevice(absl::string_view device) { return ParseDeviceName(device).type == "CPU"; }

bool NamesDevice(absl::string_view wanted, absl::string_view device) {
  if (wanted == device) return true;
  return NamesDevice(ParseDeviceName(wanted), ParseDeviceName(device));
}

bool NamesDevice(const DeviceName& a, const DeviceName& b) {
  return a.type == b.type && a.index == b.index && Agree(a.job, b.job) &&
         Agree(a.replica, b.replica) && Agree(a.task, b.task);
}

bool AreOtherDevices(absl::string_view a, absl::string_view b) {
  if (a == b) return false;
  const DeviceName x = ParseDeviceName(a), y = ParseDeviceName(b);
  return !Agree(x.job, y.job) || !Agree(x.replica, y.replica) || !Agree(x.task, y.task) ||
         !Agree(x.type, y.type) || !Agree(x.index, y.index);
}

std::string HostDeviceOf(absl::string_view device) {
  const DeviceName name = ParseDeviceName(device);
  std::string host;
  if (!name.job.empty()) absl::StrAppend(&host, "/job:", name.job);
  if (!name.replica.empty()) absl::StrAppend(&host, "/replica:", name.replica);
  if (!name.task.empty()) absl::StrAppend(&host, "/task:", name.task);
  return absl::StrCat(host, "/device:CPU:0");
}

}  // namespace spillway::core
