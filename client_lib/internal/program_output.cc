#include "client_lib/internal/program_output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spillway::internal {
namespace {

constexpr size_t kMaxOutput = 64 << 10;

// Where `name` may be. A relative folder of PATH is none of them: what lies in the folder that
// someone happens to be in is not for us to run.
std::vector<std::string> Candidates(const std::string& name) {
  std::vector<std::string> paths;
  const char* path = getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path != nullptr ? path : "", ':')) {
    if (absl::StartsWith(folder, "/")) paths.push_back(absl::StrCat(folder, "/", name));
  }
  return paths;
}

// After fork in a process with threads: nothing but what signal handlers may call.
[[noreturn]] void Exec(int output, const std::vector<std::string>& paths, char** arguments) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  // Where this process has no standard streams, the pipe may have taken the number of one.
  output = fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null_fd, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(null_fd, STDERR_FILENO);
  for (const std::string& path : paths) execve(path.c_str(), arguments, environ);
  _exit(127);
}

}  // namespace

absl::optional<std::string> OutputOf(const std::vector<std::string>& command,
                                     const Deadline& deadline) {
  const std::vector<std::string> paths = Candidates(command[0]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::nullopt;
  const pid_t child = fork();
  if (child == 0) Exec(fds[1], paths, arguments.data());
  close(fds[1]);
  if (child < 0) {
    close(fds[0]);
    return absl::nullopt;
  }
  setpgid(child, child);  // Here, too: it may not have come so far when it is to be killed.
  std::string output;
  const bool complete = ReadUntil(deadline, fds[0], kMaxOutput, &output);
  close(fds[0]);
  int status = complete ? Reap(deadline, child) : -1;
  if (status < 0) {
    kill(-child, SIGKILL);
    Reap(Deadline(kReapTime), child);
    return absl::nullopt;
  }
  if (status != 0) return absl::nullopt;
  return output;
}

}  // namespace spillway::internal
