#include "tests/client_lib/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

extern char** environ;

namespace spillway::testing {

pid_t StartChild(const std::vector<std::string>& command, int in, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int fds[] = {in, out, err};
  for (int i = 0; i < 3; ++i) {
    if (fds[i] < 0) {
      posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    }
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  if (posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ) != 0) child = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

ChildResult WaitForChild(pid_t child) {
  ChildResult result;
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

// Through files, not pipes: no process must read while another writes.
ChildResult RunChild(const std::vector<std::string>& command, const std::string& input) {
  const TempDir dir;
  const int in = open(dir.Write("in", input).c_str(), O_RDONLY | O_CLOEXEC);
  const int out = open((dir / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int err = open((dir / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ChildResult result = WaitForChild(StartChild(command, in, out, err));
  for (const int fd : {in, out, err}) close(fd);
  result.out = ReadFile(dir / "out");
  result.err = ReadFile(dir / "err");
  return result;
}

}  // namespace spillway::testing
