#include "client_lib/tensorflow_plugin/settings.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace spillway::tensorflow_plugin {
namespace {

using nlohmann::json;

constexpr char kFileVariable[] = "SPILLWAY_SETTINGS";
// No hand-written settings file is larger.
constexpr std::streamoff kMaxFileBytes = 1 << 20;
constexpr int64_t kMaxBatch = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxTimeoutS = int64_t{24} * 3600;

// One setting: its sources, and the parser of its text. `take` returns the requirement on the
// value, or "" if it is valid.
struct Setting {
  const char* key;       // In the file.
  const char* variable;  // In the environment.
  std::string (*take)(const std::string& text, Settings* settings);
};

template <std::string Settings::*field>
std::string TakeText(const std::string& text, Settings* settings) {
  settings->*field = text;
  return "";
}

template <bool Settings::*field>
std::string TakeBool(const std::string& text, Settings* settings) {
  const bool yes = text == "1" || text == "true" || text == "on" || text == "yes";
  const bool no = text == "0" || text == "false" || text == "off" || text == "no";
  if (!yes && !no) return "has to be 1 or 0 (true or false, on or off, yes or no)";
  settings->*field = yes;
  return "";
}

// A whole number; `rest`: the text after it.
bool Number(const std::string& text, int64_t* value, std::string* rest) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  errno = 0;
  *value = std::strtoll(text.c_str(), &end, 10);
  *rest = end;
  return errno == 0;
}

template <int64_t Settings::*field, const int64_t& most>
std::string TakeNumber(const std::string& text, Settings* settings) {
  int64_t value = 0;
  std::string rest;
  if (!Number(text, &value, &rest) || !rest.empty() || value < 1 || value > most) {
    return "has to be a whole number from 1 to " + std::to_string(most);
  }
  settings->*field = value;
  return "";
}

// A size as all programs of Spillway read it (rewrite_core/base/byte_text.h, which the plug-in does
// not link; tests/testing/sizes.txt binds both): 1536, 1.5GiB, 16 GB. Below 0: not a size.
int64_t Bytes(std::string text) {
  const std::vector<std::pair<std::string, int64_t>> units = {{"", 1},
                                                              {"b", 1},
                                                              {"kb", 1'000},
                                                              {"mb", 1'000'000},
                                                              {"gb", 1'000'000'000},
                                                              {"tb", 1'000'000'000'000},
                                                              {"kib", int64_t{1} << 10},
                                                              {"mib", int64_t{1} << 20},
                                                              {"gib", int64_t{1} << 30},
                                                              {"tib", int64_t{1} << 40}};
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, end);
  std::string name = end == std::string::npos ? "" : text.substr(end);
  name.erase(0, name.find_first_not_of(' '));
  for (const auto& [unit, bytes] : units) {
    if (name != unit) continue;
    int64_t whole = 0;
    std::string rest;
    if (Number(number, &whole, &rest) && rest.empty()) {
      return whole > std::numeric_limits<int64_t>::max() / bytes ? -1 : whole * bytes;
    }
    // A digit on both sides of its only point.
    const size_t point = number.find('.');
    if (point == std::string::npos || point == 0 || point + 1 == number.size() ||
        number.find('.', point + 1) != std::string::npos) {
      return -1;
    }
    const double value = std::strtod(number.c_str(), nullptr) * static_cast<double>(bytes);
    return value < 0x1p63 ? static_cast<int64_t>(value) : -1;
  }
  return -1;
}

std::string TakeMemory(const std::string& text, Settings* settings) {
  const int64_t bytes = Bytes(text);
  if (bytes < 1) return "has to be a number of bytes, above 0, e.g. 17179869184, 16GB or 16GiB";
  settings->gpu_memory_bytes = bytes;
  return "";
}

std::string TakeOptions(const std::string& text, Settings* settings) {
  const json options = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!options.is_object()) {
    return "has to be a JSON object with fields of RewriteOptions, e.g. {\"min_tensor_bytes\": "
           "4096}";
  }
  settings->options_json = text;
  return "";
}

constexpr Setting kSettings[] = {
    // First, so that it applies to errors in the others.
    {"fail_closed", "SPILLWAY_FAIL_CLOSED", TakeBool<&Settings::fail_closed>},
    {"enabled", "SPILLWAY_PLUGIN", TakeBool<&Settings::enabled>},
    {"same_bits", "SPILLWAY_SAME_BITS", TakeBool<&Settings::same_bits>},
    {"strategy", "SPILLWAY_STRATEGY", TakeText<&Settings::strategy>},
    {"batch_size", "SPILLWAY_JOB_BATCH_SIZE", TakeNumber<&Settings::batch_size, kMaxBatch>},
    {"gpu_memory_bytes", "SPILLWAY_GPU_MEMORY_BYTES", TakeMemory},
    {"hardware", "SPILLWAY_HARDWARE", TakeText<&Settings::hardware>},
    {"options", "SPILLWAY_OPTIONS", TakeOptions},
    {"server", "SPILLWAY_SERVER", TakeText<&Settings::server>},
    {"token", "SPILLWAY_TOKEN", TakeText<&Settings::token>},
    {"token_file", "SPILLWAY_TOKEN_FILE", TakeText<&Settings::token_file>},
    {"tls", "SPILLWAY_TLS", TakeBool<&Settings::tls>},
    {"tls_ca", "SPILLWAY_TLS_CA", TakeText<&Settings::tls_ca>},
    {"tls_cert", "SPILLWAY_TLS_CERT", TakeText<&Settings::tls_cert>},
    {"tls_key", "SPILLWAY_TLS_KEY", TakeText<&Settings::tls_key>},
    {"tls_server_name", "SPILLWAY_TLS_SERVER_NAME", TakeText<&Settings::tls_server_name>},
    {"timeout_s", "SPILLWAY_TIMEOUT_S", TakeNumber<&Settings::timeout_s, kMaxTimeoutS>},
    {"report_dir", "SPILLWAY_REPORT_DIR", TakeText<&Settings::report_dir>},
    {"gpu_stand_in", "SPILLWAY_GPU_STAND_IN", TakeText<&Settings::gpu_stand_in>},
    {"cpu_device", "SPILLWAY_CPU_DEVICE", TakeText<&Settings::cpu_device>},
};

// Returns the file's object; errors in the file go to `problem`.
json ReadFile(const std::string& path, std::string* problem) {
  const std::string name = std::string(kFileVariable) + " names '" + path + "', ";
  // Opening a pipe would wait.
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path, std::ios::binary);
  std::string bytes;
  if (file.is_open()) {
    char buffer[4096];
    while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
      bytes.append(buffer, static_cast<size_t>(file.gcount()));
      if (static_cast<std::streamoff>(bytes.size()) > kMaxFileBytes) break;
    }
  }
  json object = json::object();
  if (!file.eof()) {
    *problem = name + "which cannot be read; it has to be a file of at most 1 MiB";
  } else {
    object = json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      *problem = name + "which is not a JSON object; write {\"batch_size\": 128} and the like";
      object = json::object();
    }
  }
  return object;
}

// A text as the environment would have it.
std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  std::string first;  // The first problem is reported.
  const auto tell = [&first](const std::string& problem) {
    if (first.empty()) first = problem;
  };
  json file = json::object();
  std::string path;
  if (const char* given = std::getenv(kFileVariable); given != nullptr && *given != '\0') {
    path = given;
    std::string problem;
    file = ReadFile(path, &problem);
    if (!problem.empty()) tell(problem);
  }
  for (const Setting& setting : kSettings) {
    const auto in_file = file.find(setting.key);
    const char* const variable = std::getenv(setting.variable);
    const bool from_variable = variable != nullptr && *variable != '\0';
    if (in_file == file.end() && !from_variable) continue;
    const std::string text = from_variable ? variable : TextOf(*in_file);
    const std::string wanted = setting.take(text, &settings);
    if (in_file != file.end()) file.erase(in_file);
    if (wanted.empty()) continue;
    const std::string where =
        from_variable ? setting.variable : "'" + std::string(setting.key) + "' in '" + path + "'";
    tell(where + " is '" + text + "'; it " + wanted);
  }
  for (const auto& [key, value] : file.items()) {
    tell("'" + path + "' has the setting '" + key +
         "', which does not exist; client_lib/tensorflow_plugin/README.md has the list");
  }
  settings.problem = first;
  return settings;
}

}  // namespace spillway::tensorflow_plugin
