#include "client_lib/tensorflow_plugin/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "rewrite_core/base/plain_text.h"

namespace spillway::tensorflow_plugin {
namespace {

// Never freed: threads of TensorFlow may live longer than static objects.
struct Said {
  std::mutex mutex;
  std::set<std::string> lines;
};

Said& TheSaid() {
  static Said* const said = new Said();
  return *said;
}

}  // namespace

void Log(const std::string& line) {
  // One write, so that lines of several threads do not mix.
  const std::string whole = "spillway: " + core::PlainText(line) + "\n";
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

void LogOnce(const std::string& line) {
  {
    const std::lock_guard<std::mutex> lock(TheSaid().mutex);
    if (!TheSaid().lines.insert(line).second) return;
  }
  Log(line);
}

void FailClosed(const std::string& line) {
  Log(line);
  // Not exit(): other threads run, and would use destroyed static objects.
  _exit(EXIT_FAILURE);
}

}  // namespace spillway::tensorflow_plugin
