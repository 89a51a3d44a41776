// Writes a file atomically: it appears whole or not at all, whenever the program is killed.
//
// If the file system supports O_TMPFILE, the file has no name until it is complete, so that a kill
// leaves nothing behind. Otherwise, and between the two system calls that replace another file, it
// has a temporary name.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_PENDING_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_PENDING_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/files/folder.h"

namespace spillway::cli {

// Without a Commit nothing is left of it. Not thread-safe.
class PendingFile {
 public:
  // Begins `folder`/`name`; `folder` must outlive it. `temporary`: the name, in the same folder,
  // that it may have meanwhile; an existing file of that name is removed. `advice` is for errors,
  // which are FileErrors.
  static absl::StatusOr<PendingFile> Begin(const Folder& folder, std::string name,
                                           std::string temporary, std::string advice);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  // To write to.
  int fd() const { return fd_.get(); }

  // Syncs the file to disk and gives it `mode` and its name, replacing any file of that name.
  // Called once. Errors: FileErrors.
  absl::Status Commit(mode_t mode);

 private:
  PendingFile(const Folder& folder, std::string name, std::string temporary, std::string advice);
  // Returns 0 or an errno.
  int TakeName(mode_t mode);

  const Folder* folder_;
  std::string name_;
  std::string temporary_;
  std::string advice_;
  UniqueFd fd_;
  bool has_temporary_ = false;  // Whether it has the temporary name now.
};

// Returns a temporary name for `name` that is unique among processes and machines.
std::string OwnTemporaryName(const std::string& name);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_PENDING_FILE_H_
