// The cache of rewritten graphs of `spillway run`, so that the tasks of a node, and later jobs with
// the same graph, share one rewrite.
//
// An entry consists of the files `KEY*` of a folder, where KEY is the digest of everything that
// determines the result:
//
//   KEY.entry      the lock; once the entry is complete, the digests of its files and a note; or
//                  why the last attempt to complete it failed
//   KEY.pb, ...    the stored files; .KEY.pb.tmp if a kill interrupted storing (files/folder.h)
//
// A process that works on an entry holds the lock of its `.entry`, which ends with the process: a
// killed one leaves an empty entry to the next. Files are checked against their digests at each
// use, and damaged entries are remade. Storing an entry deletes those that were not used for
// kUnusedDays, and the remains of killed processes. Other files in the folder are not touched: the
// user may have specified a folder that has them.
//
// Waits here are unbounded: run it in a child (run_child.h).
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_CACHE_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_CACHE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/cli/files/folder.h"

namespace spillway::cli {

// Longer than batch systems let a job run: a job may open its graph again at any time.
inline constexpr int kUnusedDays = 30;

// Opens the folder `path`, or if it is empty, the first usable one of `spillway-UID` in
// $SLURM_TMPDIR, in $TMPDIR, in /tmp. It is created (mode 0700) if its parent exists.
//
// The folder must belong to the user and be writable by no one else: another user who can replace a
// graph can run a program in this user's job. Otherwise, and if there is no usable folder:
// FileError.
absl::StatusOr<Folder> OpenCacheFolder(const std::string& path);

// Deletes the entries of `folder` that were last used before `time`, and all temporary files,
// except those of locked entries.
void PruneCache(const Folder& folder, absl::Time time);

// One file of an entry.
struct CacheFile {
  std::string suffix;  // The part of its name after the key.
  std::string bytes;
};

// An entry, locked from Lock to the destructor. Not thread-safe.
class CacheEntry {
 public:
  // The contents of a complete entry.
  struct Contents {
    std::vector<std::string> suffixes;
    std::string note;
  };

  // Waits until no other process works on it. `folder` must outlive the entry.
  static absl::StatusOr<CacheEntry> Lock(const Folder& folder, const std::string& key);

  // Stores why the entry was not completed, for the processes that wait for it. Replaces the
  // contents; nothing is stored on a full disk.
  void StoreFailure(const std::string& note) const;

  // Returns the note of a failure that another process stored while Lock was waiting.
  std::optional<std::string> FailureWhileWaiting() const;

  // Returns the contents and marks the entry as used; nothing if it is incomplete or damaged.
  std::optional<Contents> Load() const;

  // Replaces the contents. Load returns `note`.
  absl::Status Store(const std::vector<CacheFile>& files, const std::string& note) const;

  std::string PathOf(const std::string& suffix) const { return folder_->PathOf(key_ + suffix); }

 private:
  CacheEntry(const Folder& folder, const std::string& key, UniqueFd fd, std::string before)
      : folder_(&folder), key_(key), fd_(std::move(fd)), before_(std::move(before)) {}

  const Folder* folder_;
  std::string key_;
  UniqueFd fd_;
  std::string before_;  // The content of its file when Lock was called.
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_CACHE_H_
