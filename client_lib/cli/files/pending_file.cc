#include "client_lib/cli/files/pending_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/file_error.h"

namespace spillway::cli {
namespace {

// Returns the name under which an open unnamed file is linked.
std::string LinkSource(int fd) { return absl::StrCat("/proc/self/fd/", fd); }

}  // namespace

PendingFile::PendingFile(const Folder& folder, std::string name, std::string temporary,
                         std::string advice)
    : folder_(&folder),
      name_(std::move(name)),
      temporary_(std::move(temporary)),
      advice_(std::move(advice)) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : folder_(other.folder_),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      advice_(std::move(other.advice_)),
      fd_(std::move(other.fd_)),
      has_temporary_(std::exchange(other.has_temporary_, false)) {}

PendingFile::~PendingFile() {
  if (has_temporary_) unlinkat(folder_->fd.get(), temporary_.c_str(), 0);
}

absl::StatusOr<PendingFile> PendingFile::Begin(const Folder& folder, std::string name,
                                               std::string temporary, std::string advice) {
  PendingFile file(folder, std::move(name), std::move(temporary), std::move(advice));
  const int folder_fd = folder.fd.get();
  unlinkat(folder_fd, file.temporary_.c_str(), 0);  // Left by a killed process.
  file.fd_ = UniqueFd(openat(folder_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  // Linking goes through /proc, which may not be mounted.
  if (file.fd() >= 0 && access(LinkSource(file.fd()).c_str(), F_OK) == 0) return file;
  file.fd_ = UniqueFd(openat(folder_fd, file.temporary_.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd() < 0) return FileError(errno, "write", folder.PathOf(file.name_), file.advice_);
  file.has_temporary_ = true;
  return file;
}

absl::Status PendingFile::Commit(mode_t mode) {
  if (const int error = TakeName(mode); error != 0) {
    return FileError(error, "write", folder_->PathOf(name_), advice_);
  }
  fsync(folder_->fd.get());  // So that the name also survives a crash, where folders can be synced.
  return absl::OkStatus();
}

int PendingFile::TakeName(mode_t mode) {
  if (fchmod(fd(), mode) != 0 || fsync(fd()) != 0) return errno;
  const int folder_fd = folder_->fd.get();
  const auto link = [&](const std::string& name) {
    return linkat(AT_FDCWD, LinkSource(fd()).c_str(), folder_fd, name.c_str(), AT_SYMLINK_FOLLOW) ==
           0;
  };
  if (!has_temporary_) {
    if (link(name_)) return 0;
    if (errno != EEXIST || !link(temporary_)) return errno;
    has_temporary_ = true;
  }
  if (renameat(folder_fd, temporary_.c_str(), folder_fd, name_.c_str()) != 0) return errno;
  has_temporary_ = false;
  return 0;
}

// The name is truncated to keep the whole below the file systems' limit of 255 bytes.
std::string OwnTemporaryName(const std::string& name) {
  constexpr size_t kMaxStem = 150, kMaxHost = 64;
  char host[kMaxHost + 1] = {};
  gethostname(host, kMaxHost);
  return absl::StrCat(".", name.substr(0, kMaxStem), ".spillway-", host, "-", getpid());
}

}  // namespace spillway::cli
