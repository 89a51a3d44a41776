#include "tests/server/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace spillway::server {
namespace {

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  return text;
}

std::string ReadOneLine(int fd) {
  std::string line;
  for (char c; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  signal(SIGPIPE, SIG_IGN);  // The child may end before it has read everything.
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  stdin_ = in[1];
  stdout_ = out[0];
  stderr_ = err[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  for (const int fd : {stdin_, stdout_, stderr_}) {
    if (fd >= 0) close(fd);
  }
}

std::string ChildProcess::ReadLine() { return ReadOneLine(stdout_); }
std::string ChildProcess::ReadErrorLine() { return ReadOneLine(stderr_); }

std::string ChildProcess::ReadStdout() { return ReadAll(stdout_); }
std::string ChildProcess::ReadStderr() { return ReadAll(stderr_); }

void ChildProcess::WriteStdin(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(stdin_, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += n;
  }
  close(stdin_);
  stdin_ = -1;
}

void ChildProcess::Signal(int number) {
  if (pid_ > 0) kill(pid_, number);
}

int ChildProcess::Wait() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return -1000;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace spillway::server
