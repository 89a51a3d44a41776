#include "client_lib/tensorflow_plugin/report.h"

#include <unistd.h>

#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace spillway::tensorflow_plugin {
namespace {

// Longer names of nodes are cut: a file's name has at most 255 bytes.
constexpr size_t kMaxName = 100;

std::string FileName(const std::string& name) {
  std::string text;
  for (const unsigned char c : name.substr(0, kMaxName)) {
    text.push_back(std::isalnum(c) || c == '_' || c == '-' ? static_cast<char>(c) : '_');
  }
  return text;
}

}  // namespace

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
