#include "client_lib/cli/files/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/exit_code.h"
#include "client_lib/cli/files/fd_wait.h"
#include "client_lib/cli/files/file_error.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kAdvice[] = "give the path of a graph";
constexpr char kDirectoryAdvice[] =
    "give the path of a graph, or the directory of a SavedModel, with its saved_model.pb";
// The size of one read: few system calls, and a quick reaction to a cancellation.
constexpr size_t kReadBytes = 4 << 20;

std::string NameOf(const std::string& path) {
  return path == "-" ? "standard input" : core::Quoted(path);
}

absl::Status TooLarge(const std::string& path) {
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
      absl::StrCat(NameOf(path), " has more than 2 GiB, and protobuf reads no more"));
}

}  // namespace

std::string ResolveInput(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) return path;
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    const std::filesystem::path file = std::filesystem::path(path) / name;
    if (std::filesystem::exists(file, error)) return file.string();
  }
  return path;
}

absl::StatusOr<std::string> ReadBytes(const std::string& path, absl::string_view advice,
                                      const CancellationToken& token) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer and ignore cancellation.
  const int fd = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(errno, "read", path, advice);
  absl::Cleanup close_fd = [fd] {
    if (fd != STDIN_FILENO) close(fd);
  };
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, "read", path, advice);
  if (S_ISDIR(info.st_mode)) return FileError(EISDIR, "read", path, advice);

  std::string bytes;
  if (S_ISREG(info.st_mode) && info.st_size > format::kMaxFileBytes) return TooLarge(path);
  // One byte more than the size, so that the end is detected without growing.
  if (S_ISREG(info.st_mode)) bytes.reserve(static_cast<size_t>(info.st_size) + 1);
  FdWaiter waiter(token);
  while (true) {
    if (!waiter.Wait(fd, POLLIN)) {
      return core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
                         absl::StrCat("interrupted while reading ", NameOf(path)));
    }
    const size_t size = bytes.size();
    const size_t room = bytes.capacity() - size;
    bytes.resize(size + (room > 0 ? std::min(room, kReadBytes) : kReadBytes));
    const ssize_t count = read(fd, &bytes[size], bytes.size() - size);
    const int error = errno;
    bytes.resize(size + std::max<ssize_t>(count, 0));
    if (count == 0) break;
    if (bytes.size() > format::kMaxFileBytes) return TooLarge(path);
    if (count < 0 && error != EINTR && error != EAGAIN) {
      return FileError(error, "read", path, advice);
    }
  }
  return bytes;
}

absl::StatusOr<std::string> ReadInput(const std::string& given, const CancellationToken& token) {
  const std::string path = ResolveInput(given);
  std::error_code error;
  const bool is_directory = path != "-" && std::filesystem::is_directory(path, error);
  auto bytes = ReadBytes(path, is_directory ? kDirectoryAdvice : kAdvice, token);
  if (bytes.ok() && bytes->empty()) {
    return core::InvalidError(
        v1::ERROR_REASON_EMPTY_GRAPH,
        absl::StrCat(NameOf(path),
                     " is empty; write the graph to it, e.g. with SerializeToString"));
  }
  return bytes;
}

absl::StatusOr<format::GraphFile> ReadGraphFile(const std::string& path,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token) {
  absl::StatusOr<std::string> bytes = ReadInput(path, token);
  if (!bytes.ok()) return bytes.status();
  auto file = format::GraphFile::Read(*std::move(bytes), format);
  if (!file.ok()) return WithInputName(file.status(), path);
  return file;
}

absl::Status WithInputName(const absl::Status& status, const std::string& path) {
  if (ExitCodeOf(status) != ExitCode::kBadGraph) return status;
  absl::Status named(status.code(),
                     absl::StrCat(path == "-" ? "standard input" : path, ": ", status.message()));
  status.ForEachPayload([&named](absl::string_view type_url, const absl::Cord& payload) {
    named.SetPayload(type_url, payload);
  });
  return named;
}

}  // namespace spillway::cli
