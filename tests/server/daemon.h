// The program spillwayd, started by a test.
#ifndef SPILLWAY_TESTS_SERVER_DAEMON_H_
#define SPILLWAY_TESTS_SERVER_DAEMON_H_

#include <string>
#include <vector>

#include "tests/server/child_process.h"
#include "tests/server/http_get.h"

namespace spillway::server {

inline constexpr char kProgram[] = SPILLWAY_BIN_DIR "/spillwayd";

// A running spillwayd on ports of its own; its two lines are read.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> flags = {});

  const std::string& address() const { return address_; }
  int metrics_port() const { return metrics_port_; }
  ChildProcess& process() { return process_; }
  std::string Scrape() const { return HttpGet(metrics_port_, "/metrics"); }

 private:
  ChildProcess process_;
  std::string address_;
  int metrics_port_ = 0;
};

// Runs it to its end.
struct Finished {
  int exit_code;
  std::string out;
  std::string err;
};
Finished RunToEnd(std::vector<std::string> flags);

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_DAEMON_H_
