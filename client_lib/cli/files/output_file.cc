#include "client_lib/cli/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/fd_wait.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kOutputAdvice[] = "give a path in a directory that exists and that you may write to";
constexpr char kWriteAdvice[] = "no part of it was kept";
// The size of one write to a file.
constexpr size_t kFileWriteBytes = 4 << 20;
constexpr mode_t kNewFileMode = 0666;  // Minus the umask, as for every new file.

// Returns `path` without symbolic links, even if its last part does not exist yet.
std::string Resolved(const std::string& path) {
  std::error_code error;
  // Absolute first: weakly_canonical leaves a relative path unchanged if no part of it exists.
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

OutputPath::OutputPath(const std::string& name, absl::string_view flag)
    : name_(name), path_(name), flag_(flag), is_standard_output_(name == "-") {
  if (given() && !is_standard_output_) path_ = Resolved(name);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const OutputPath& output,
                                                               const CancellationToken& token) {
  std::unique_ptr<OutputFile> file(new OutputFile(output.path(), token));
  if (output.is_standard_output()) {
    file->fd_ = STDOUT_FILENO;
    return file;
  }
  const std::string& path = output.name();
  struct stat info;
  const bool exists = stat(file->path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return FileError(EISDIR, "write", path, kOutputAdvice);
  if (exists && !S_ISREG(info.st_mode)) {
    file->fd_ = open(file->path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->fd_ < 0) return FileError(errno, "write", path, kOutputAdvice);
    return file;
  }
  // A rename would replace a write-protected file, against its owner's intention.
  if (exists && access(file->path_.c_str(), W_OK) != 0) {
    return FileError(errno, "write", path, kOutputAdvice);
  }
  file->mode_ = exists ? info.st_mode & 07777 : kNewFileMode & ~CurrentUmask();
  if (absl::Status status = file->Begin(); !status.ok()) return status;
  return file;
}

absl::Status OutputFile::Begin() {
  folder_.path = ParentOf(path_).string();
  // A folder that is writable but not readable can only be opened with O_PATH.
  for (const int how : {O_RDONLY, O_PATH}) {
    folder_.fd = UniqueFd(open(folder_.path.c_str(), how | O_DIRECTORY | O_CLOEXEC));
    if (folder_.fd.get() >= 0 || errno != EACCES) break;
  }
  if (folder_.fd.get() < 0) return FileError(errno, "write", path_, kOutputAdvice);
  const std::string name = fs::path(path_).filename().string();
  absl::StatusOr<PendingFile> pending =
      PendingFile::Begin(folder_, name, OwnTemporaryName(name), kOutputAdvice);
  if (!pending.ok()) return pending.status();
  pending_.emplace(*std::move(pending));
  return absl::OkStatus();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  FdWaiter waiter(token_);
  // A pipe that polls as writable takes PIPE_BUF bytes without blocking.
  const size_t piece = direct() ? PIPE_BUF : kFileWriteBytes;
  while (!bytes.empty()) {
    if (!waiter.Wait(fd(), POLLOUT)) {
      return core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
                         "interrupted while writing the output");
    }
    const ssize_t count = write(fd(), bytes.data(), std::min(bytes.size(), piece));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return FileError(errno, "write", path_, direct() ? "the output is incomplete" : kWriteAdvice);
    }
    bytes.remove_prefix(std::max<ssize_t>(count, 0));
  }
  if (!direct() && fsync(fd()) != 0) return FileError(errno, "write", path_, kWriteAdvice);
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() { return direct() ? absl::OkStatus() : pending_->Commit(mode_); }

absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateOutputs(
    const std::vector<OutputPath>& outputs, const CancellationToken& token) {
  std::vector<std::unique_ptr<OutputFile>> files;
  for (const OutputPath& output : outputs) {
    if (!output.given()) continue;
    auto file = OutputFile::Create(output, token);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  return files;
}

absl::Status WriteOutputs(const std::vector<std::unique_ptr<OutputFile>>& outputs,
                          const std::vector<std::string>& contents) {
  for (const bool direct : {false, true}) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]->direct() != direct) continue;
      absl::Status status = outputs[i]->Write(contents[i]);
      // If other files are also written, the error must say that these were not kept.
      if (IsClosedPipe(status) && outputs.size() > 1) {
        return FileError(EIO, "write", "-", "its reader has closed it, and no file was kept");
      }
      if (!status.ok()) return status;
    }
  }
  for (const auto& output : outputs) {
    if (absl::Status status = output->Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckNotBinaryOnTerminal(const OutputPath& output, absl::string_view what) {
  if (!output.is_standard_output() || isatty(STDOUT_FILENO) != 1) return absl::OkStatus();
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                            absl::StrCat("-o -: the ", what,
                                         " is binary, and standard output is a terminal; give -o "
                                         "FILE, or redirect it with > FILE or | PROGRAM"),
                            {{"flag", "-o"}, {"value", "-"}});
}

absl::Status WriteUserFile(const OutputPath& output, absl::string_view bytes) {
  const auto file = OutputFile::Create(output, CancellationToken());
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Write(bytes); !status.ok()) return status;
  return (*file)->Commit();
}

bool SameFile(const OutputPath& a, const OutputPath& b) {
  if (a.is_standard_output() || b.is_standard_output()) return false;
  std::error_code error;
  if (fs::equivalent(a.path(), b.path(), error) && !error) return true;
  return a.path() == b.path();
}

}  // namespace spillway::cli
