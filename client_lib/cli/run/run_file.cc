#include "client_lib/cli/run/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/file_error.h"
#include "client_lib/cli/files/output_file.h"

namespace spillway::cli {
namespace {

constexpr char kNothingKept[] = "nothing was kept of it";
constexpr char kFolderAdvice[] = "give a folder that exists and that you may write to";
constexpr mode_t kUserFileMode = 0666;  // Less the umask, as for every file that programs create.
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

// The name is cut, so that the whole stays below the 255 bytes that file systems allow.
std::string OwnTemporaryName(const std::string& name) {
  constexpr size_t kMaxStem = 150, kMaxHost = 64;
  char host[kMaxHost + 1] = {};
  gethostname(host, kMaxHost);
  return absl::StrCat(".", name.substr(0, kMaxStem), ".spillway-", host, "-", getpid());
}

// Writes the bytes to a file without a name and gives it the first of `names` that is free, which
// `*given` then is. False: this file system has none, or /proc is not there; nothing was done.
// `*error` is an errno or 0.
bool WriteNameless(const Folder& folder, const std::vector<std::string>& names,
                   absl::string_view bytes, mode_t mode, std::string* given, int* error) {
  const UniqueFd fd(openat(folder.fd.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd.get() < 0 || access(LinkSource(fd).c_str(), F_OK) != 0) return false;
  *error = WriteAndSync(fd, bytes, mode);
  if (*error != 0) return true;
  for (const std::string& name : names) {
    *given = name;
    const bool done = linkat(AT_FDCWD, LinkSource(fd).c_str(), folder.fd.get(), name.c_str(),
                             AT_SYMLINK_FOLLOW) == 0;
    *error = done ? 0 : errno;
    if (*error != EEXIST) break;
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

// By way of `temporary`, or with `direct` without one where nothing has the name.
absl::Status WriteBy(const Folder& folder, const std::string& name, const std::string& temporary,
                     bool direct, absl::string_view bytes, mode_t mode) {
  const int folder_fd = folder.fd.get();
  unlinkat(folder_fd, temporary.c_str(), 0);  // What a killed run left.
  std::vector<std::string> names = {temporary};
  if (direct) names.insert(names.begin(), name);
  std::string given = temporary;
  int error = 0;
  if (!WriteNameless(folder, names, bytes, mode, &given, &error)) {
    error = WriteNamed(folder, temporary, bytes, mode);
  }
  if (error == 0 && given != name &&
      renameat(folder_fd, temporary.c_str(), folder_fd, name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlinkat(folder_fd, temporary.c_str(), 0);
    return FileError(error, "write", folder.PathOf(name), kNothingKept);
  }
  fsync(folder_fd);  // So that the name, too, survives a crash, where folders can be synced.
  return absl::OkStatus();
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
  return WriteBy(folder, name, TemporaryName(name), /*direct=*/false, bytes, mode);
}

absl::Status WriteUserFile(const std::string& path, absl::string_view bytes) {
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    const auto file = OutputFile::Create(path, CancellationToken());
    return file.ok() ? (*file)->Write(bytes) : file.status();
  }
  // A rename would replace a file that is write-protected; its owner meant it to stay.
  if (exists && access(path.c_str(), W_OK) != 0) {
    return FileError(errno, "write", path, "give a path that you may write to");
  }
  std::error_code error;
  const std::filesystem::path resolved =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return FileError(error.value(), "write", path, kFolderAdvice);
  const absl::StatusOr<Folder> folder = OpenFolder(resolved.parent_path());
  if (!folder.ok()) return folder.status();
  const std::string name = resolved.filename();
  const mode_t mask = umask(0);
  umask(mask);
  return WriteBy(*folder, name, OwnTemporaryName(name), /*direct=*/true, bytes,
                 exists ? info.st_mode & 07777 : kUserFileMode & ~mask);
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
