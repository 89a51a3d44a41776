// Open folders, and reading and writing whole files in them.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_FOLDER_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_FOLDER_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// A file descriptor that closes itself.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }

  int get() const { return fd_; }
  void Reset();

 private:
  int fd_;
};

// An open folder: later changes of its path have no effect.
struct Folder {
  std::string path;  // For messages, and for opening files in it by path.
  UniqueFd fd;

  std::string PathOf(const std::string& name) const;
};

// Opens the folder at `path`, following links. A FileError if it is missing.
absl::StatusOr<Folder> OpenFolder(const std::string& path);

// Writes `folder`/`name`: syncs the file to disk, then gives it its name, replacing any file of
// that name (pending_file.h). If a kill leaves anything behind, it is a file `.NAME.tmp`, which the
// next write of that name removes (in the cache, also PruneCache). Concurrent writers of one name
// need a lock around this. Errors: FileError.
absl::Status WriteWholeFile(const Folder& folder, const std::string& name, absl::string_view bytes,
                            mode_t mode);

// Reads all of `folder`/`name`, without following links; at most `max_bytes`. Errors: FileError,
// with EFBIG if it is larger.
absl::StatusOr<std::string> ReadWholeFile(const Folder& folder, const std::string& name,
                                          size_t max_bytes);

// Waits for an exclusive lock on `fd`; a lock ends with its process. A FileError if the file system
// has no locks.
absl::Status LockFile(const UniqueFd& fd, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_FOLDER_H_
