// The files of a journal: DIR/journal.jsonl, to which lines are appended, and those that were full,
// journal-TIME.jsonl. Made with mode 0640. The oldest goes when there would be too many.
//
// A line is there as a whole or not at all: what was written of one that did not fit on the disk is
// cut off again, or closed by a line end where that cannot be. A file that was moved or deleted,
// its folder with it, is made anew as soon as that can be. A lock on DIR/journal.lock keeps other
// servers out. Nothing is synchronized: a machine that loses power loses the last lines.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_JOURNAL_FILE_H_
#define SPILLWAY_SERVER_JOURNAL_FILE_H_

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
#include "server/journal.h"

namespace spillway::server {

class JournalFile : public JournalSink {
 public:
  struct Settings {
    std::string folder;
    int64_t file_bytes = 0;  // The most of each file, unless one line is longer.
    int files = 1;           // The most files, the one that is written to included.
  };
  using Clock = std::function<absl::Time()>;

  // Errors, UNAVAILABLE: the folder is not there or cannot be written to, journal.jsonl is no plain
  // file, or another server has the folder.
  static absl::StatusOr<std::unique_ptr<JournalFile>> Open(Settings settings,
                                                           Clock clock = &absl::Now);
  // Whether it could be opened so, but for another server. Makes no file.
  static absl::Status Check(const std::string& folder);

  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;
  ~JournalFile() override;

  absl::Status Append(absl::string_view line) override;

 private:
  JournalFile(Settings settings, Clock clock)
      : settings_(std::move(settings)), clock_(std::move(clock)) {}

  std::string Path(absl::string_view name) const;
  // Takes the lock, unless it is there already.
  absl::Status Lock();
  // Opens the file, or makes it.
  absl::Status OpenFile();
  void CloseFile();
  // Notes how long the file is. False: it is not the one at its path any more.
  bool IsInPlace();
  // Puts the file with those that are full, of which it deletes the oldest, and makes a new one.
  absl::Status Rotate();
  // The names of those that are full, by time.
  absl::StatusOr<std::vector<std::string>> FullFiles() const;
  absl::Status Write(absl::string_view bytes);

  const Settings settings_;
  const Clock clock_;
  int lock_ = -1;
  int file_ = -1;
  int64_t size_ = 0;
  bool is_torn_ = false;  // The file ends within a line.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_JOURNAL_FILE_H_
