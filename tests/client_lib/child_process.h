// Runs a program and collects its output, errors and exit code.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_CHILD_PROCESS_H_
#define SPILLWAY_TESTS_CLIENT_LIB_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace spillway::testing {

// How a child process ended.
struct ChildResult {
  int exit_code = -1;  // -1 if a signal ended it.
  int signal = 0;
  std::string out;
  std::string err;
};

// Descriptors are given to the child as its standard input, output and error; -1: /dev/null.
// Returns its id. The child has the default signal mask.
pid_t StartChild(const std::vector<std::string>& command, int in, int out, int err);

// Waits for the end of `child`; out and err stay empty.
ChildResult WaitForChild(pid_t child);

// Runs `command` with `input` on its standard input.
ChildResult RunChild(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_CLIENT_LIB_CHILD_PROCESS_H_
