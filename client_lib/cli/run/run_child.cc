#include "client_lib/cli/run/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// The first byte that the child sends.
constexpr char kResult = 'R';
constexpr char kError = 'E';

std::string Encode(const absl::StatusOr<std::string>& result) {
  return result.ok() ? absl::StrCat(std::string(1, kResult), *result)
                     : absl::StrCat(std::string(1, kError), ErrorToBytes(result.status()));
}

void WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return;
    bytes.remove_prefix(std::max<ssize_t>(count, 0));
  }
}

[[noreturn]] void RunChild(pid_t parent, int result_fd, ChildStage& stage, const ChildWork& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // The parent died before the call above.
  // If the parent has no standard input, the pipe may have got its number.
  result_fd = fcntl(result_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null_fd = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null_fd, fd);
  signal(SIGXFSZ, SIG_IGN);  // Exceeding the file size limit is then an ordinary error.
  signal(SIGPIPE, SIG_IGN);
  WriteAll(result_fd, Encode(OrOutOfMemory([&] { return work(stage); })));
  _exit(0);
}

absl::Status NoChildError(const char* call, int error) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot start a child process (", call, ": ",
                                                   strerror(error),
                                                   "); raise the limit of processes or of memory"));
}

}  // namespace

std::string ErrorToBytes(const absl::Status& status) {
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  status.ForEachPayload([&details](absl::string_view type_url, const absl::Cord& value) {
    google::protobuf::Any* detail = details.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(value));
  });
  return details.SerializeAsString();
}

absl::Status ErrorFromBytes(const std::string& bytes) {
  v1::StatusDetails details;
  if (!details.ParseFromString(bytes) || details.code() == 0) {
    return absl::InternalError("another process sent an error that cannot be read");
  }
  absl::Status status(static_cast<absl::StatusCode>(details.code()), details.message());
  for (const google::protobuf::Any& detail : details.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

absl::StatusOr<std::string> RunInChild(const internal::Deadline& deadline, const ChildWork& work) {
  void* shared =
      mmap(nullptr, sizeof(ChildStage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return NoChildError("mmap", errno);
  ChildStage& stage = *new (shared) ChildStage("starting");
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    const int error = errno;
    munmap(shared, sizeof(ChildStage));
    return NoChildError("pipe2", error);
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  const int fork_error = errno;
  if (child == 0) RunChild(parent, fds[1], stage, work);
  close(fds[1]);
  std::string bytes;
  const bool in_time =
      child > 0 && internal::ReadUntil(deadline, fds[0], std::string::npos, &bytes);
  close(fds[0]);
  const std::string last_stage = stage.load();
  if (child > 0 && !in_time) kill(child, SIGKILL);
  const int wait_status =
      child > 0 ? internal::Reap(internal::Deadline(internal::kReapTime), child) : 0;
  munmap(shared, sizeof(ChildStage));

  if (child < 0) return NoChildError("fork", fork_error);
  if (!in_time) {
    return core::Error(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_STOPPED,
                       absl::StrCat("not done after ", absl::FormatDuration(deadline.timeout()),
                                    ", while ", last_stage, "; give a longer --timeout"));
  }
  if (!bytes.empty() && bytes[0] == kError) return ErrorFromBytes(bytes.substr(1));
  if (!bytes.empty() && bytes[0] == kResult && wait_status == 0) return bytes.substr(1);
  if (wait_status > 0 && WIFSIGNALED(wait_status)) {
    return absl::InternalError(absl::StrCat("signal ", WTERMSIG(wait_status), " (",
                                            strsignal(WTERMSIG(wait_status)), ") ended it while ",
                                            last_stage));
  }
  return absl::InternalError(absl::StrCat("the child process ended while ", last_stage));
}

}  // namespace spillway::cli
