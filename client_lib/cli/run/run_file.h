// Files that `spillway run` leaves: each appears whole or not at all, whenever the program is
// killed, and nothing temporary piles up.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_FILE_H_

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

// Writes `folder`/`name`: brought to the disk, then named, in place of what had that name. Where
// the file system has files without a name (O_TMPFILE), a kill leaves nothing behind, except in the
// moment between two system calls; otherwise at most one file `.NAME.tmp`, which the next write of
// that name takes away (in the cache, also PruneCache). Two writers of one name at once need a lock
// around this. Errors: FileError.
absl::Status WriteWholeFile(const Folder& folder, const std::string& name, absl::string_view bytes,
                            mode_t mode);

// Writes a file of the user's: a link is followed, a mode stays, pipes and devices are written
// directly, as OutputFile does it. But after a kill nothing is left of it, where there is O_TMPFILE
// and `path` is new; otherwise, or in the moment between two system calls, a file
// `.NAME.spillway-HOST-PID`. Several, also on several machines, may write one `path` at once: one
// of them stays, whole. Errors: FileError.
absl::Status WriteUserFile(const std::string& path, absl::string_view bytes);

// The whole of `folder`/`name`, not followed if it is a link; at most `max_bytes`. Errors:
// FileError; EFBIG where it is larger.
absl::StatusOr<std::string> ReadWholeFile(const Folder& folder, const std::string& name,
                                          size_t max_bytes);

// Waits until `fd` is this process's alone; a lock ends with its process. A FileError where the
// file system has no locks.
absl::Status LockFile(const UniqueFd& fd, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_FILE_H_
