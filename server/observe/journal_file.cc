#include "server/observe/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/journal_fields.h"

namespace spillway::server {
namespace {

namespace journal = core::journal;

constexpr char kLockFile[] = "journal.lock";
// Readable by the group, but not by others.
constexpr mode_t kJournalMode = 0640;

// In the name of a full file: names sort by time.
constexpr char kTimeFormat[] = "%Y%m%dT%H%M%E3SZ";
constexpr size_t kTimeBytes = 20;

std::string FullName(absl::Time time) {
  return absl::StrCat(journal::kFullPrefix,
                      absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone()), journal::kSuffix);
}

// Returns the time in the name of a full file. Nothing for any other name, as such files are never
// deleted.
absl::optional<absl::Time> FullTime(absl::string_view name) {
  const absl::string_view digits =
      absl::StripSuffix(absl::StripPrefix(name, journal::kFullPrefix), journal::kSuffix);
  if (digits.size() != kTimeBytes) return absl::nullopt;
  // With separators, so that absl::ParseTime finds each number's end.
  const std::string text =
      absl::StrCat(digits.substr(0, 4), "-", digits.substr(4, 2), "-", digits.substr(6, 5), ":",
                   digits.substr(11, 2), ":", digits.substr(13));
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr) || FullName(time) != name) {
    return absl::nullopt;
  }
  return time;
}

absl::Status JournalError(absl::string_view what, absl::string_view path, int error) {
  return absl::UnavailableError(absl::StrCat(
      "cannot ", what, " ", path, " (--journal): ", std::generic_category().message(error)));
}

// Opens or creates a file; a new one has kJournalMode regardless of the umask. Returns -1 on error:
// see errno.
int OpenOrMake(const std::string& path, int flags) {
  flags |= O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;  // Does not block if it is a pipe.
  const int made = open(path.c_str(), flags | O_CREAT | O_EXCL, kJournalMode);
  if (made >= 0) {
    (void)fchmod(made, kJournalMode);
    return made;
  }
  return errno == EEXIST ? open(path.c_str(), flags) : -1;
}

// Whether `file` is the file at `path`; sets `found` to its status.
bool IsFileAt(int file, const std::string& path, struct stat* found) {
  struct stat ours;
  return file >= 0 && fstat(file, &ours) == 0 && lstat(path.c_str(), found) == 0 &&
         ours.st_dev == found->st_dev && ours.st_ino == found->st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalFile>> JournalFile::Open(Settings settings, Clock clock) {
  if (absl::Status status = Check(settings.folder); !status.ok()) return status;
  std::unique_ptr<JournalFile> made(new JournalFile(std::move(settings), std::move(clock)));
  if (absl::Status status = made->Lock(); !status.ok()) return status;
  if (absl::Status status = made->OpenFile(); !status.ok()) return status;
  return made;
}

absl::Status JournalFile::Check(const std::string& folder) {
  struct stat found;
  if (stat(folder.c_str(), &found) != 0) return JournalError("use the folder", folder, errno);
  if (!S_ISDIR(found.st_mode)) return JournalError("use the folder", folder, ENOTDIR);
  // With the rights of this process, not of the user who started it.
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return JournalError("write into the folder", folder, errno);
  }
  return absl::OkStatus();
}

JournalFile::~JournalFile() {
  CloseFile();
  if (lock_ >= 0) close(lock_);
}

std::string JournalFile::Path(absl::string_view name) const {
  return absl::StrCat(absl::StripSuffix(settings_.folder, "/"), "/", name);
}

absl::Status JournalFile::Lock() {
  const std::string path = Path(kLockFile);
  struct stat found;
  if (IsFileAt(lock_, path, &found)) return absl::OkStatus();
  if (lock_ >= 0) close(lock_);  // From a deleted folder.
  lock_ = OpenOrMake(path, O_RDWR);
  if (lock_ < 0) return JournalError("open", path, errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  const int error = errno;
  close(lock_);
  lock_ = -1;
  if (error != EWOULDBLOCK) return JournalError("lock", path, error);
  return absl::UnavailableError(absl::StrCat("another server keeps its journal in ",
                                             settings_.folder,
                                             " (--journal): give each server a folder of its own"));
}

absl::Status JournalFile::OpenFile() {
  const std::string path = Path(journal::kFile);
  file_ = OpenOrMake(path, O_RDWR | O_APPEND);
  if (file_ < 0) return JournalError("open", path, errno);
  struct stat found;
  if (fstat(file_, &found) != 0 || !S_ISREG(found.st_mode)) {
    CloseFile();
    return absl::UnavailableError(
        absl::StrCat(path, " (--journal) is not a regular file: move it away"));
  }
  size_ = found.st_size;
  char last = '\n';
  // An earlier server may have left a partial line.
  is_torn_ = size_ > 0 && (pread(file_, &last, 1, size_ - 1) != 1 || last != '\n');
  return absl::OkStatus();
}

void JournalFile::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

bool JournalFile::IsInPlace() {
  struct stat found;
  if (!IsFileAt(file_, Path(journal::kFile), &found)) return false;
  size_ = found.st_size;
  return true;
}

absl::StatusOr<std::vector<std::string>> JournalFile::FullFiles() const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(settings_.folder, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (FullTime(name).has_value()) names.push_back(name);
  }
  if (error) return JournalError("read the folder", settings_.folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status JournalFile::Rotate() {
  auto full = FullFiles();
  if (!full.ok()) return full.status();
  // Makes room first: if nothing can be deleted, nothing more is written.
  const size_t kept = static_cast<size_t>(std::max(settings_.files - 2, 0));
  for (size_t i = 0; i + kept < full->size(); ++i) {
    const std::string path = Path((*full)[i]);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return JournalError("delete", path, errno);
  }
  const std::string path = Path(journal::kFile);
  if (settings_.files < 2) {
    if (unlink(path.c_str()) != 0) return JournalError("delete", path, errno);
  } else {
    // Later than all existing ones, even if the clock was set back.
    absl::Time time = clock_();
    if (!full->empty()) {
      time = std::max(time, *FullTime(full->back()) + absl::Milliseconds(1));
    }
    const std::string name = Path(FullName(time));
    if (rename(path.c_str(), name.c_str()) != 0) return JournalError("rename", path, errno);
  }
  CloseFile();
  return OpenFile();
}

absl::Status JournalFile::Append(absl::string_view line) {
  if (!IsInPlace()) {
    CloseFile();
    if (absl::Status status = Lock(); !status.ok()) return status;
    if (absl::Status status = OpenFile(); !status.ok()) return status;
  }
  const int64_t line_bytes = static_cast<int64_t>(line.size()) + 1;
  if (size_ > 0 && size_ + line_bytes > settings_.file_bytes) {
    if (absl::Status status = Rotate(); !status.ok()) return status;
  }
  return Write(absl::StrCat(is_torn_ ? "\n" : "", line, "\n"));
}

absl::Status JournalFile::Write(absl::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = write(file_, bytes.data() + written, bytes.size() - written);
    if (n >= 0) {
      written += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    if (written > 0 && ftruncate(file_, size_) != 0) is_torn_ = true;
    return JournalError("write to", Path(journal::kFile), error);
  }
  size_ += static_cast<int64_t>(written);
  is_torn_ = false;
  return absl::OkStatus();
}

}  // namespace spillway::server
