// The files of a journal: DIR/journal.jsonl, to which lines are appended, and the full ones,
// journal-TIME.jsonl. Created with mode 0640. The oldest file is deleted if there would be too
// many.
//
// Lines are written completely or not at all: if the disk is full, a partial line is truncated
// again, or terminated by a line end if that fails. A file that was moved or deleted, even with its
// folder, is recreated as soon as possible. A lock on DIR/journal.lock keeps other servers out.
// Nothing is synced to disk: the last lines are lost if the machine loses power.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_OBSERVE_JOURNAL_FILE_H_
#define SPILLWAY_SERVER_OBSERVE_JOURNAL_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observe/journal.h"

namespace spillway::server {

class JournalFile : public JournalSink {
 public:
  struct Settings {
    std::string folder;
    int64_t file_bytes = 0;  // Maximum size of a file, unless one line is longer.
    int files = 1;           // Maximum number of files, including the current one.
  };
  using Clock = std::function<absl::Time()>;

  // Error: UNAVAILABLE if the folder does not exist or is not writable, journal.jsonl is not a
  // regular file, or another server uses the folder.
  static absl::StatusOr<std::unique_ptr<JournalFile>> Open(Settings settings,
                                                           Clock clock = &absl::Now);
  // Checks whether it could be opened, regardless of another server. Creates no file.
  static absl::Status Check(const std::string& folder);

  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;
  ~JournalFile() override;

  absl::Status Append(absl::string_view line) override;

 private:
  JournalFile(Settings settings, Clock clock)
      : settings_(std::move(settings)), clock_(std::move(clock)) {}

  std::string Path(absl::string_view name) const;
  // Takes the lock, unless it is already held.
  absl::Status Lock();
  // Opens or creates the file.
  absl::Status OpenFile();
  void CloseFile();
  // Updates the file's size. Returns false if it is no longer the file at its path.
  bool IsInPlace();
  // Renames the file as a full one, deletes the oldest full ones, and creates a new file.
  absl::Status Rotate();
  // Returns the names of the full files, by time.
  absl::StatusOr<std::vector<std::string>> FullFiles() const;
  absl::Status Write(absl::string_view bytes);

  const Settings settings_;
  const Clock clock_;
  int lock_ = -1;
  int file_ = -1;
  int64_t size_ = 0;
  bool is_torn_ = false;  // The file ends in a partial line.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_JOURNAL_FILE_H_
