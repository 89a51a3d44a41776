// Folders that are held open, and whole files in them.
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

// A folder that is held open: what is at its path later does not matter.
struct Folder {
  std::string path;  // For messages, and for whoever opens what is in it.
  UniqueFd fd;

  std::string PathOf(const std::string& name) const;
};

// The folder at `path`, followed if it is a link. A FileError if there is none.
absl::StatusOr<Folder> OpenFolder(const std::string& path);

// Writes `folder`/`name`: brought to the disk, then named, in place of what had that name
// (pending_file.h). Where a kill can leave something behind, it is a file `.NAME.tmp`, which the
// next write of that name takes away (in the cache, also PruneCache). Two writers of one name at
// once need a lock around this. Errors: FileError.
absl::Status WriteWholeFile(const Folder& folder, const std::string& name, absl::string_view bytes,
                            mode_t mode);

// The whole of `folder`/`name`, not followed if it is a link; at most `max_bytes`. Errors:
// FileError; EFBIG where it is larger.
absl::StatusOr<std::string> ReadWholeFile(const Folder& folder, const std::string& name,
                                          size_t max_bytes);

// Waits until `fd` is this process's alone; a lock ends with its process. A FileError where the
// file system has no locks.
absl::Status LockFile(const UniqueFd& fd, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_FOLDER_H_
