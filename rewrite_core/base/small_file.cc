#include "rewrite_core/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

absl::Status ErrnoFault() {
  return absl::Status(absl::ErrnoToStatusCode(errno), std::strerror(errno));
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& name, int64_t max_bytes) {
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return ErrnoFault();
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat info = {};
  if (fstat(fd, &info) != 0) return ErrnoFault();
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("it is not a regular file");
  std::string content;
  char bytes[64 << 10];
  // Until the end, not for as many bytes as it has: it may grow, and files of /proc say 0.
  while (content.size() <= static_cast<size_t>(max_bytes)) {
    const ssize_t count = read(fd, bytes, sizeof(bytes));
    if (count == 0) return content;
    if (count < 0 && errno != EINTR) return ErrnoFault();
    if (count > 0) content.append(bytes, static_cast<size_t>(count));
  }
  return absl::FailedPreconditionError(absl::StrCat("it has more than ", max_bytes, " bytes"));
}

}  // namespace spillway::core
