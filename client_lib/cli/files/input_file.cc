#include "client_lib/cli/files/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "client_lib/cli/files/fd_wait.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kAdvice[] = "give the path of a graph";
constexpr char kDirectoryAdvice[] =
    "give the path of a graph, or the directory of a SavedModel, with its saved_model.pb";
// The size of one read: few system calls, and a quick reaction to a cancellation.
constexpr size_t kReadBytes = 4 << 20;

constexpr int64_t kMiB = int64_t{1} << 20;

// The limits of files, by FileKind, and their origin.
constexpr struct {
  absl::string_view name;
  int64_t max_bytes;
} kFileLimits[] = {
    {"a graph", format::kMaxFileBytes},  // Protobuf's, and so TensorFlow's.
    {"a graph", format::kMaxFileBytes},  // Or a report, once it begins as one.
    // As JSON, 150 bytes for each node of a traced step; so three times a million nodes.
    {"a report", 512 * kMiB},
    // A node of a plan takes 250 bytes, so a million nodes fit.
    {"a plan", 256 * kMiB},
    // TensorFlow writes 200 bytes for each node that runs on a CPU, several times that on a GPU: a
    // million nodes fit.
    {"a profile", 1024 * kMiB},
    // Of one file: 32 times spillwayd's default for one (--journal-file-bytes).
    {"a journal", 2048 * kMiB},
};

int64_t MaxBytesOf(FileKind kind) { return kFileLimits[static_cast<size_t>(kind)].max_bytes; }

std::string NameOf(const InputPath& input) {
  return input.is_standard_input() ? "standard input" : core::Quoted(input.path());
}

absl::Status TooLarge(const InputPath& input, FileKind kind) {
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
      absl::StrCat(NameOf(input), " has more bytes than ",
                   kFileLimits[static_cast<size_t>(kind)].name, " may have, ", MaxBytesOf(kind),
                   " (", core::BytesText(MaxBytesOf(kind)), "); give the file that is meant"));
}

absl::StatusOr<std::string> ReadAll(const InputPath& input, FileKind kind, absl::string_view advice,
                                    const CancellationToken& token) {
  const std::string& path = input.path();
  // Without O_NONBLOCK, opening a named pipe would wait for a writer and ignore cancellation.
  const int fd = input.is_standard_input() ? STDIN_FILENO
                                           : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(errno, "read", path, advice);
  absl::Cleanup close_fd = [fd] {
    if (fd != STDIN_FILENO) close(fd);
  };
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, "read", path, advice);
  if (S_ISDIR(info.st_mode)) return FileError(EISDIR, "read", path, advice);

  std::string bytes;
  if (S_ISREG(info.st_mode) && info.st_size > MaxBytesOf(kind)) return TooLarge(input, kind);
  // One byte more than the size, so that the end is detected without growing.
  if (S_ISREG(info.st_mode)) bytes.reserve(static_cast<size_t>(info.st_size) + 1);
  FdWaiter waiter(token);
  while (true) {
    if (!waiter.Wait(fd, POLLIN)) {
      return core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
                         absl::StrCat("interrupted while reading ", NameOf(input)));
    }
    const size_t size = bytes.size();
    const size_t room = bytes.capacity() - size;
    const size_t most = static_cast<size_t>(MaxBytesOf(kind)) + 1 - size;
    bytes.resize(size + std::min(room > 0 ? std::min(room, kReadBytes) : kReadBytes, most));
    const ssize_t count = read(fd, &bytes[size], bytes.size() - size);
    const int error = errno;
    bytes.resize(size + std::max<ssize_t>(count, 0));
    if (count == 0) break;
    if (kind == FileKind::kGraphOrReport && IsJson(bytes)) kind = FileKind::kReport;
    if (bytes.size() > static_cast<size_t>(MaxBytesOf(kind))) return TooLarge(input, kind);
    if (count < 0 && error != EINTR && error != EAGAIN) {
      return FileError(error, "read", path, advice);
    }
  }
  return bytes;
}

}  // namespace

bool IsJson(absl::string_view bytes) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes.substr(0, 4096)), "{");
}

InputPath::InputPath(std::string name) : name_(std::move(name)), path_(name_) {
  is_standard_input_ = name_ == "-";
}

InputPath InputPath::Graph(const std::string& name) {
  InputPath input(name);
  std::error_code error;
  if (input.is_standard_input_ || !std::filesystem::is_directory(name, error)) return input;
  input.is_folder_ = true;
  for (const char* file : {"saved_model.pb", "saved_model.pbtxt"}) {
    const std::filesystem::path path = std::filesystem::path(name) / file;
    if (!std::filesystem::exists(path, error)) continue;
    input.path_ = path.string();
    break;
  }
  return input;
}

std::string InputPath::Folder() const {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  return folder.empty() ? "." : folder.string();
}

absl::StatusOr<std::string> ReadBytes(const InputPath& input, FileKind kind,
                                      absl::string_view advice, const CancellationToken& token) {
  try {
    return ReadAll(input, kind, advice, token);
  } catch (const std::bad_alloc&) {
    return FileError(ENOMEM, "read", input.path(), kOutOfMemory);
  }
}

absl::StatusOr<std::string> ReadInput(const InputPath& graph, const CancellationToken& token,
                                      FileKind kind) {
  auto bytes = ReadBytes(graph, kind, graph.is_folder() ? kDirectoryAdvice : kAdvice, token);
  if (bytes.ok() && bytes->empty()) {
    return core::InvalidError(
        v1::ERROR_REASON_EMPTY_GRAPH,
        absl::StrCat(NameOf(graph),
                     " is empty; write the graph to it, e.g. with SerializeToString"));
  }
  return bytes;
}

absl::StatusOr<format::GraphFile> ReadGraphFile(const InputPath& graph,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token) {
  absl::StatusOr<std::string> bytes = ReadInput(graph, token);
  if (!bytes.ok()) return bytes.status();
  auto file = format::GraphFile::Read(*std::move(bytes), format);
  if (!file.ok()) return WithInputName(file.status(), graph);
  return file;
}

absl::Status WithInputName(const absl::Status& status, const InputPath& graph) {
  if (ExitCodeOf(status) != ExitCode::kBadGraph) return status;
  absl::Status named(status.code(),
                     absl::StrCat(graph.is_standard_input() ? "standard input" : graph.name(), ": ",
                                  status.message()));
  status.ForEachPayload([&named](absl::string_view type_url, const absl::Cord& payload) {
    named.SetPayload(type_url, payload);
  });
  return named;
}

}  // namespace spillway::cli
