#include "client_lib/internal/program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spillway::internal {
namespace {

constexpr size_t kMaxOutput = 64 << 10;

// Where `name` may be found. Relative folders of PATH are skipped: a program that happens to lie in
// the working directory must not be run.
std::vector<std::string> Candidates(const std::string& name) {
  std::vector<std::string> paths;
  const char* path = getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path != nullptr ? path : "", ':')) {
    if (absl::StartsWith(folder, "/")) paths.push_back(absl::StrCat(folder, "/", name));
  }
  return paths;
}

// Called after fork in a process with threads: only async-signal-safe functions are allowed.
// `input` -1: none.
[[noreturn]] void Exec(int input, int output, const std::vector<std::string>& paths,
                       char** arguments) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  // If this process has no standard streams, the pipe may have got the number of one.
  output = fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (input >= 0) input = fcntl(input, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(input >= 0 ? input : null_fd, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(null_fd, STDERR_FILENO);
  for (const std::string& path : paths) execve(path.c_str(), arguments, environ);
  _exit(127);
}

// Returns an in-memory file with these bytes, positioned at its start; -1: no memory. With a file,
// the program may read and write in any order, and never blocks on us.
int FileWith(absl::string_view bytes) {
  const int fd = memfd_create("spillway", MFD_CLOEXEC);
  if (fd < 0) return -1;
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  if (bytes.empty() && lseek(fd, 0, SEEK_SET) == 0) return fd;
  close(fd);
  return -1;
}

// `input` -1: none. It is not closed.
absl::optional<std::string> Run(const std::vector<std::string>& command, int input,
                                size_t max_output, const Deadline& deadline) {
  const std::vector<std::string> paths = Candidates(command[0]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::nullopt;
  const pid_t child = fork();
  if (child == 0) Exec(input, fds[1], paths, arguments.data());
  close(fds[1]);
  if (child < 0) {
    close(fds[0]);
    return absl::nullopt;
  }
  setpgid(child, child);  // Here too: the child may not have done so before it is killed.
  std::string output;
  const bool complete = ReadUntil(deadline, fds[0], max_output, &output);
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

}  // namespace

absl::optional<std::string> OutputOf(const std::vector<std::string>& command,
                                     const Deadline& deadline) {
  return Run(command, /*input=*/-1, kMaxOutput, deadline);
}

absl::optional<std::string> FilteredBy(const std::vector<std::string>& command,
                                       absl::string_view input, size_t max_output,
                                       const Deadline& deadline) {
  const int file = FileWith(input);
  if (file < 0) return absl::nullopt;
  absl::optional<std::string> output = Run(command, file, max_output, deadline);
  close(file);
  return output;
}

bool IsProgramInPath(const std::string& name) {
  for (const std::string& path : Candidates(name)) {
    struct stat info;
    const bool is_file = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    if (is_file && access(path.c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace spillway::internal
