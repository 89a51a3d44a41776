#include "client_lib/cli/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/file_error.h"

namespace spillway::cli {
namespace {

constexpr char kWriteAdvice[] = "nothing was kept of it";
constexpr char kFolderAdvice[] = "give a folder that exists and that you may write to";
// Of one read or write.
constexpr size_t kPieceBytes = 4 << 20;

std::string TemporaryName(const std::string& name) { return absl::StrCat(".", name, ".tmp"); }

// The name under which an open file without a name is linked.
std::string LinkSource(const UniqueFd& fd) { return absl::StrCat("/proc/self/fd/", fd.get()); }

// 0, or the errno.
int WriteAndSync(const UniqueFd& fd, absl::string_view bytes, mode_t mode) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd.get(), bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (count < 0 && errno != EINTR) return errno;
    bytes.remove_prefix(std::max<ssize_t>(count, 0));
  }
  if (fchmod(fd.get(), mode) != 0 || fsync(fd.get()) != 0) return errno;
  return 0;
}

// Writes the bytes to a file without a name and gives it `temporary`. False: this file system has
// none, or /proc is not there; nothing was done. `*error` is an errno or 0.
bool WriteNameless(const Folder& folder, const std::string& temporary, absl::string_view bytes,
                   mode_t mode, int* error) {
  const UniqueFd fd(openat(folder.fd.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd.get() < 0 || access(LinkSource(fd).c_str(), F_OK) != 0) return false;
  *error = WriteAndSync(fd, bytes, mode);
  if (*error == 0 && linkat(AT_FDCWD, LinkSource(fd).c_str(), folder.fd.get(), temporary.c_str(),
                            AT_SYMLINK_FOLLOW) != 0) {
    *error = errno;
  }
  return true;
}

int WriteNamed(const Folder& folder, const std::string& temporary, absl::string_view bytes,
               mode_t mode) {
  const UniqueFd fd(openat(folder.fd.get(), temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return errno;
  return WriteAndSync(fd, bytes, mode);
}

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string Folder::PathOf(const std::string& name) const { return absl::StrCat(path, "/", name); }

absl::StatusOr<Folder> OpenFolder(const std::string& path) {
  Folder folder{path, UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
  if (folder.fd.get() < 0) return FileError(errno, "open", path, kFolderAdvice);
  return folder;
}

absl::Status WriteWholeFile(const Folder& folder, const std::string& name, absl::string_view bytes,
                            mode_t mode) {
  const std::string temporary = TemporaryName(name);
  const int folder_fd = folder.fd.get();
  unlinkat(folder_fd, temporary.c_str(), 0);  // What a killed run left.
  int error = 0;
  if (!WriteNameless(folder, temporary, bytes, mode, &error)) {
    error = WriteNamed(folder, temporary, bytes, mode);
  }
  if (error == 0 && renameat(folder_fd, temporary.c_str(), folder_fd, name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlinkat(folder_fd, temporary.c_str(), 0);
    return FileError(error, "write", folder.PathOf(name), kWriteAdvice);
  }
  fsync(folder_fd);  // So that the name, too, survives a crash, where folders can be synced.
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const Folder& folder, const std::string& name,
                                          size_t max_bytes) {
  const auto error = [&](int number) {
    return FileError(number, "read", folder.PathOf(name), "take it away");
  };
  // O_NONBLOCK: a named pipe in its place must not be waited for.
  const UniqueFd fd(
      openat(folder.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return error(errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return error(errno);
  if (!S_ISREG(info.st_mode)) return error(EINVAL);
  std::string bytes;
  while (bytes.size() <= max_bytes) {
    const size_t size = bytes.size();
    bytes.resize(size + std::min(kPieceBytes, std::max<size_t>(info.st_size, size) - size + 1));
    const ssize_t count = read(fd.get(), &bytes[size], bytes.size() - size);
    const int number = errno;
    bytes.resize(size + std::max<ssize_t>(count, 0));
    if (count == 0) return bytes;
    if (count < 0 && number != EINTR) return error(number);
  }
  return error(EFBIG);
}

absl::Status LockFile(const UniqueFd& fd, const std::string& path) {
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FileError(errno, "lock", path, "give a folder on a local disk");
  }
  return absl::OkStatus();
}

}  // namespace spillway::cli
