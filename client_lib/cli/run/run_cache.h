// Where `spillway run` keeps rewritten graphs, so that the tasks of a node, and the next job with
// the same graph, share one rewrite.
//
// An entry is the files `KEY*` of a folder, KEY being the digest of all that decides the result:
//
//   KEY.entry      the lock, and once the entry is complete the digests of its files, and a note;
//                  or why the last one who tried could not complete it
//   KEY.pb, ...    what was stored; .KEY.pb.tmp where a kill ended that (files/folder.h)
//
// Whoever works on an entry holds the lock of its `.entry`, which ends with the process: a killed
// one leaves an empty entry to the next. Files are checked against their digests at each use: what
// a crash or a program has damaged is made again. Entries that nobody used for kUnusedDays are
// deleted when another is stored, and so is what kills have left. Other files in the folder are not
// touched: the user may have given one that has them.
//
// Nothing here waits with a limit: run it in a child (run_child.h).
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

// The folder for `path`, or without one the first of these that can be used: `spillway-UID` in
// $SLURM_TMPDIR, in $TMPDIR, in /tmp. Created (mode 0700) if its parent is there.
//
// It must belong to the user, and nobody else may write to it: a graph that another user can
// exchange is a program of theirs that this user's job runs. Otherwise, and where there is no
// usable folder: FileError.
absl::StatusOr<Folder> OpenCacheFolder(const std::string& path);

// Deletes the entries of `folder` that were last used before `time` and that nobody works on, and
// temporary files of any entry that nobody works on.
void PruneCache(const Folder& folder, absl::Time time);

// One file of an entry.
struct CacheFile {
  std::string suffix;  // Of its name, after the key.
  std::string bytes;
};

// An entry, locked from Lock to the destructor. Not thread-safe.
class CacheEntry {
 public:
  // What is known of a complete entry.
  struct Contents {
    std::vector<std::string> suffixes;
    std::string note;
  };

  // Waits for whoever works on it. `folder` must outlive the entry.
  static absl::StatusOr<CacheEntry> Lock(const Folder& folder, const std::string& key);

  // Tells those who wait for the entry why it was not completed. In place of what is there; on a
  // full disk they get nothing.
  void StoreFailure(const std::string& note) const;

  // The note of a failure since Lock was called, by whoever had the entry meanwhile.
  std::optional<std::string> FailureWhileWaiting() const;

  // What was stored, and marks it as used; nothing if that was never completed, or is damaged.
  std::optional<Contents> Load() const;

  // Replaces what is there. `note` is given back by Load.
  absl::Status Store(const std::vector<CacheFile>& files, const std::string& note) const;

  std::string PathOf(const std::string& suffix) const { return folder_->PathOf(key_ + suffix); }

 private:
  CacheEntry(const Folder& folder, const std::string& key, UniqueFd fd, std::string before)
      : folder_(&folder), key_(key), fd_(std::move(fd)), before_(std::move(before)) {}

  const Folder* folder_;
  std::string key_;
  UniqueFd fd_;
  std::string before_;  // What its file said when Lock was called.
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_CACHE_H_
