#include "client_lib/internal/program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

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

// The attributes of a program that is started in a process group of its own, with the signals of a
// fresh process.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Starts `command` and returns its process; -1: there is no such program. `input` -1: none.
// posix_spawn neither copies the page tables of a large process nor runs the handlers that
// libraries register for fork.
pid_t Start(const std::vector<std::string>& command, int input, int output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  if (input >= 0) posix_spawn_file_actions_adddup2(&streams, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, output, STDOUT_FILENO);
  if (input < 0) posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const SpawnAttributes attributes;
  pid_t child = -1;
  for (const std::string& path : Candidates(command[0])) {
    if (posix_spawn(&child, path.c_str(), &streams, attributes.get(), arguments.data(), environ) ==
        0) {
      break;
    }
    child = -1;
  }
  posix_spawn_file_actions_destroy(&streams);
  return child;
}

// Moves the descriptor above those of the standard streams, of which this process may have none.
int AboveStandardStreams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return moved;
}

// Returns an in-memory file with these bytes, positioned at its start; -1: no memory. With a file,
// the program may read and write in any order, and never blocks on us.
int FileWith(absl::string_view bytes) {
  const int fd = AboveStandardStreams(memfd_create("spillway", MFD_CLOEXEC));
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
ProgramRun Run(const std::vector<std::string>& command, int input, size_t max_output,
               const Deadline& deadline) {
  using End = ProgramRun::End;
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {End::kFailed, ""};
  const int write_end = AboveStandardStreams(fds[1]);
  const pid_t child = write_end < 0 ? -1 : Start(command, input, write_end);
  if (write_end >= 0) close(write_end);
  if (child < 0) {
    close(fds[0]);
    return {write_end < 0 ? End::kFailed : End::kNoProgram, ""};
  }
  std::string output;
  const bool complete = ReadUntil(deadline, fds[0], max_output, &output);
  close(fds[0]);
  int status = complete ? Reap(deadline, child) : -1;
  if (status < 0) {
    kill(-child, SIGKILL);
    Reap(Deadline(kReapTime), child);
    return {deadline.Remaining() > absl::ZeroDuration() ? End::kFailed : End::kLate, output};
  }
  return {status != 0 ? End::kFailed : End::kDone, output};
}

absl::optional<std::string> IfDone(ProgramRun run) {
  if (run.end != ProgramRun::End::kDone) return absl::nullopt;
  return std::move(run.output);
}

}  // namespace

ProgramRun RunProgram(const std::vector<std::string>& command, const Deadline& deadline) {
  return Run(command, /*input=*/-1, kMaxOutput, deadline);
}

absl::optional<std::string> OutputOf(const std::vector<std::string>& command,
                                     const Deadline& deadline) {
  return IfDone(RunProgram(command, deadline));
}

absl::optional<std::string> FilteredBy(const std::vector<std::string>& command,
                                       absl::string_view input, size_t max_output,
                                       const Deadline& deadline) {
  const int file = FileWith(input);
  if (file < 0) return absl::nullopt;
  absl::optional<std::string> output = IfDone(Run(command, file, max_output, deadline));
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
