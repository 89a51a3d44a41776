// A program started by a test, with its output.
#ifndef SPILLWAY_TESTS_SERVER_CHILD_PROCESS_H_
#define SPILLWAY_TESTS_SERVER_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace spillway::server {

class ChildProcess {
 public:
  // Starts `arguments[0]` (found in PATH if it has no slash).
  explicit ChildProcess(const std::vector<std::string>& arguments);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line of its standard output without the line end; "" at its end.
  std::string ReadLine();
  // The same of its standard error.
  std::string ReadErrorLine();
  // All that is left of its output, once it has closed it.
  std::string ReadStdout();
  std::string ReadStderr();

  // Writes to its standard input and closes it.
  void WriteStdin(const std::string& text);
  void Signal(int number);
  // -1 once it has ended.
  pid_t pid() const { return pid_; }
  // Waits for its end: its exit code, or minus the signal that killed it.
  int Wait();

 private:
  pid_t pid_ = -1;
  int stdin_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_CHILD_PROCESS_H_
