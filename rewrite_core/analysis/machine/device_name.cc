#include "rewrite_core/analysis/machine/device_name.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"

namespace spillway::core {
namespace {

// Whether two parts may be the same: one that is not given may be any.
bool Agree(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

std::string TaskOf(const DeviceName& name) {
  std::string task;
  if (!name.job.empty()) absl::StrAppend(&task, "/job:", name.job);
  if (!name.replica.empty()) absl::StrAppend(&task, "/replica:", name.replica);
  if (!name.task.empty()) absl::StrAppend(&task, "/task:", name.task);
  return task;
}

// Which parts a name has, of those that are compared only if both names have them: one bit each.
size_t GivenParts(const DeviceName& name) {
  return size_t{!name.job.empty()} | size_t{!name.replica.empty()} << 1 |
         size_t{!name.task.empty()} << 2;
}

// The text that two names with these parts must share, after the parts. No part contains a slash.
std::string CommonKey(const DeviceName& name, size_t wanted_parts, size_t device_parts) {
  const size_t both = wanted_parts & device_parts;
  return absl::StrCat(wanted_parts, "/", device_parts, "/", name.type, "/", name.index, "/",
                      both & 1 ? name.job : "", "/", both & 2 ? name.replica : "", "/",
                      both & 4 ? name.task : "");
}

constexpr char kAny[] = "*";

// As TensorFlow reads a job's or a type's name.
bool ReadWord(absl::string_view text, std::string* word) {
  *word = std::string(text);
  return text == kAny || (!text.empty() && absl::ascii_isalpha(text[0]) &&
                          std::all_of(text.begin(), text.end(), [](unsigned char c) {
                            return absl::ascii_isalnum(c) || c == '_';
                          }));
}

bool ReadNumber(absl::string_view text, std::string* number) {
  *number = std::string(text);
  if (text == kAny) return true;
  int32_t value = 0;
  const bool digits = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &value)) return false;
  *number = absl::StrCat(value);  // Without leading zeros.
  return true;
}

bool ReadPart(const std::vector<absl::string_view>& words, DeviceName* name) {
  const absl::string_view what = words[0];
  if (what == "device") {
    name->index.clear();
    return words.size() >= 2 && words.size() <= 3 && ReadWord(words[1], &name->type) &&
           (words.size() == 2 || ReadNumber(words[2], &name->index));
  }
  if (words.size() != 2) return false;
  if (what == "job") return ReadWord(words[1], &name->job);
  if (what == "replica") return ReadNumber(words[1], &name->replica);
  if (what == "task") return ReadNumber(words[1], &name->task);
  if (what != "cpu" && what != "CPU" && what != "gpu" && what != "GPU") return false;
  name->type = absl::AsciiStrToUpper(what);
  return ReadNumber(words[1], &name->index);
}

// The parts of a device's name as DeviceNameUtils::ParseFullName of TensorFlow reads them; a part
// may be kAny. nullopt: TensorFlow does not know the name, or no machine has so many devices.
absl::optional<DeviceName> ParseStrictly(absl::string_view device) {
  DeviceName name;
  if (device.empty() || device == "/") return name;
  if (!absl::ConsumePrefix(&device, "/")) return absl::nullopt;
  for (absl::string_view part : absl::StrSplit(device, '/')) {
    if (!ReadPart(absl::StrSplit(part, ':'), &name)) return absl::nullopt;
  }
  return name;
}

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

std::string MergedDevice(absl::string_view device, absl::string_view call_device) {
  if (device.empty() || device == call_device) return std::string(call_device);
  absl::optional<DeviceName> name = ParseStrictly(device);
  const absl::optional<DeviceName> call = ParseStrictly(call_device);
  if (!name.has_value() || !call.has_value()) return std::string(device);
  for (std::string DeviceName::*part : {&DeviceName::job, &DeviceName::replica, &DeviceName::task,
                                        &DeviceName::type, &DeviceName::index}) {
    for (const std::string& given : {*name.*part, *call.*part}) {
      *name.*part = given == kAny ? "" : given;
      if (!(*name.*part).empty()) break;
    }
  }
  std::string merged = TaskOf(*name);
  if (name->type.empty()) return merged;
  absl::StrAppend(&merged, "/device:", name->type, ":", name->index.empty() ? kAny : name->index);
  return merged;
}

bool IsNameOfCpu(absl::string_view device) {
  absl::ConsumePrefix(&device, "/");
  const absl::optional<DeviceName> name = ParseStrictly(absl::StrCat("/", device));
  if (!name.has_value() || (name->type != "CPU" && name->type != "cpu")) return false;
  // Forms that ParseFullName takes and Python's importer refuses: a part twice, any replica or
  // task, no index.
  const std::array<const std::string*, 4> parts = {&name->job, &name->replica, &name->task,
                                                   &name->type};
  const auto given = std::count_if(parts.begin(), parts.end(), [](const std::string* part) {
    return !part->empty() && *part != kAny;
  });
  return !name->index.empty() && given == std::count(device.begin(), device.end(), '/') + 1;
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

NameKeys WantedKeys(const DeviceName& wanted) {
  NameKeys keys;
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = CommonKey(wanted, GivenParts(wanted), i);
  return keys;
}

NameKeys DeviceKeys(const DeviceName& device) {
  NameKeys keys;
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = CommonKey(device, i, GivenParts(device));
  return keys;
}

bool AreOtherDevices(absl::string_view a, absl::string_view b) {
  if (a == b) return false;
  const DeviceName x = ParseDeviceName(a), y = ParseDeviceName(b);
  return !Agree(x.job, y.job) || !Agree(x.replica, y.replica) || !Agree(x.task, y.task) ||
         !Agree(x.type, y.type) || !Agree(x.index, y.index);
}

std::string HostDeviceOf(absl::string_view device) {
  return absl::StrCat(TaskOf(ParseDeviceName(device)), "/device:CPU:0");
}

}  // namespace spillway::core
