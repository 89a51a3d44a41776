#include "client_lib/cli/files/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/pending_file.h"

namespace spillway::cli {
namespace {

constexpr char kNothingKept[] = "no part of it was kept";
constexpr char kFolderAdvice[] = "give a folder that exists and that you may write to";
// The size of one read or write.
constexpr size_t kPieceBytes = 4 << 20;

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
  absl::StatusOr<PendingFile> file =
      PendingFile::Begin(folder, name, absl::StrCat(".", name, ".tmp"), kNothingKept);
  if (!file.ok()) return file.status();
  while (!bytes.empty()) {
    const ssize_t count = write(file->fd(), bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (count < 0 && errno != EINTR) {
      return FileError(errno, "write", folder.PathOf(name), kNothingKept);
    }
    bytes.remove_prefix(std::max<ssize_t>(count, 0));
  }
  return file->Commit(mode);
}

absl::StatusOr<std::string> ReadWholeFile(const Folder& folder, const std::string& name,
                                          size_t max_bytes) {
  const auto error = [&](int number) {
    return FileError(number, "read", folder.PathOf(name), "remove it");
  };
  // O_NONBLOCK: do not wait for a writer if a named pipe has taken its place.
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
