#include "client_lib/cli/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/fd_wait.h"
#include "client_lib/cli/files/file_error.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kOutputAdvice[] = "give a path in a directory that exists and that you may write to";
constexpr char kWriteAdvice[] = "nothing was kept of it";
// Of one write to a file.
constexpr size_t kFileWriteBytes = 4 << 20;
constexpr mode_t kNewFileMode = 0666;  // Less the umask, as for every file that programs create.

// `path` without symbolic links, also if its last part does not exist yet.
std::string Resolved(const std::string& path) {
  std::error_code error;
  // Absolute first: weakly_canonical leaves a relative path as it is where nothing of it exists.
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : resolved.string();
}

fs::path ParentOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

mode_t CurrentUmask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               const CancellationToken& token) {
  std::unique_ptr<OutputFile> file(new OutputFile(path, token));
  if (path == "-") {
    file->fd_ = STDOUT_FILENO;
    return file;
  }
  file->path_ = Resolved(path);
  struct stat info;
  const bool exists = stat(file->path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return FileError(EISDIR, "write", path, kOutputAdvice);
  if (exists && !S_ISREG(info.st_mode)) {
    file->fd_ = open(file->path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->fd_ < 0) return FileError(errno, "write", path, kOutputAdvice);
    return file;
  }
  // A rename would replace a file that is write-protected; its owner meant it to stay.
  if (exists && access(file->path_.c_str(), W_OK) != 0) {
    return FileError(errno, "write", path, kOutputAdvice);
  }
  const mode_t mode = exists ? info.st_mode & 07777 : kNewFileMode & ~CurrentUmask();
  if (absl::Status status = file->OpenTemporary(mode); !status.ok()) return status;
  return file;
}

absl::Status OutputFile::OpenTemporary(unsigned mode) {
  const fs::path name = fs::path(path_).filename();
  // In the same directory: a rename does not cross file systems. The name is cut, so that the whole
  // stays below the 255 bytes that file systems allow.
  constexpr size_t kMaxStem = 200;
  std::string pattern =
      (ParentOf(path_) / absl::StrCat(".", name.string().substr(0, kMaxStem), ".spillway-XXXXXX"))
          .string();
  fd_ = mkostemp(pattern.data(), O_CLOEXEC);
  if (fd_ < 0) return FileError(errno, "write", path_, kOutputAdvice);
  temporary_path_ = std::move(pattern);
  if (fchmod(fd_, mode) != 0) return FileError(errno, "write", path_, kOutputAdvice);
  return absl::OkStatus();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  FdWaiter waiter(token_);
  // A pipe that polls as writable takes PIPE_BUF bytes without blocking.
  const size_t piece = direct() ? PIPE_BUF : kFileWriteBytes;
  while (!bytes.empty()) {
    if (!waiter.Wait(fd_, POLLOUT)) {
      return core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
                         "interrupted while writing the output");
    }
    const ssize_t count = write(fd_, bytes.data(), std::min(bytes.size(), piece));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return FileError(errno, "write", path_, direct() ? "the output is incomplete" : kWriteAdvice);
    }
    bytes.remove_prefix(std::max<ssize_t>(count, 0));
  }
  if (!direct() && fsync(fd_) != 0) return FileError(errno, "write", path_, kWriteAdvice);
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  if (direct()) return absl::OkStatus();
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FileError(errno, "write", path_, kWriteAdvice);
  }
  temporary_path_.clear();
  // So that the new name, too, survives a crash. Some file systems cannot sync a directory: then
  // there is nothing more to do.
  const int directory = open(ParentOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateOutputs(
    const std::vector<std::string>& paths, const CancellationToken& token) {
  std::vector<std::unique_ptr<OutputFile>> outputs;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    auto file = OutputFile::Create(path, token);
    if (!file.ok()) return file.status();
    outputs.push_back(*std::move(file));
  }
  return outputs;
}

absl::Status WriteOutputs(const std::vector<std::unique_ptr<OutputFile>>& outputs,
                          const std::vector<std::string>& contents) {
  for (const bool direct : {false, true}) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]->direct() != direct) continue;
      absl::Status status = outputs[i]->Write(contents[i]);
      // With files beside it, that these were not kept has to be told.
      if (IsClosedPipe(status) && outputs.size() > 1) {
        return FileError(EIO, "write", "-", "nobody reads it any more, and no file was kept");
      }
      if (!status.ok()) return status;
    }
  }
  for (const auto& output : outputs) {
    if (absl::Status status = output->Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckNotBinaryOnTerminal(const std::string& path, bool is_text,
                                      absl::string_view what) {
  if (path != "-" || is_text || isatty(STDOUT_FILENO) != 1) return absl::OkStatus();
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                            absl::StrCat("-o -: the ", what,
                                         " is binary, and standard output is a terminal; give -o "
                                         "FILE, or send it on with > FILE or | PROGRAM"),
                            {{"flag", "-o"}, {"value", "-"}});
}

bool SameFile(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return false;
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  return Resolved(a) == Resolved(b);
}

}  // namespace spillway::cli
