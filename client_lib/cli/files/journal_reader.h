// Reads a server's journal (spillwayd --journal), line by line. The file is untrusted: an invalid
// line is counted and skipped.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "client_lib/cli/files/folder.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// Longer lines are invalid and are not buffered. A server's lines have a few hundred bytes.
inline constexpr size_t kMaxJournalLine = 1 << 20;

// A line: the fields of journal_fields.h that are used for statistics. Missing fields are empty or
// absent.
struct JournalEntry {
  absl::Time time;
  std::string strategy, code, reason, outcome, machine;
  std::string caller, job, user, queue, model;
  absl::optional<int64_t> swapped_tensors, swap_out_bytes, swap_in_bytes;
  absl::optional<int64_t> peak_before_bytes, peak_after_bytes, budget_bytes, need_bytes;
  absl::optional<int64_t> host_peak_bytes, step_before_ns, step_after_ns;
};

// Parses a line. Returns nothing if `line` is invalid: not a JSON object, without a time, or with a
// field above of the wrong type. Names are truncated to the server's limit.
absl::optional<JournalEntry> ParseJournalLine(absl::string_view line);

// The lines that were skipped.
struct DamagedLines {
  int64_t count = 0;
  std::string file;  // Of the first one; "-": standard input.
  int64_t line = 0;  // From 1.
};

class JournalReader {
 public:
  // Opens files, the journals in folders (oldest file first), and standard input ("-"). A file that
  // is given twice is read once. FileError for unreadable files and folders without a journal.
  static absl::StatusOr<JournalReader> Open(const std::vector<std::string>& paths,
                                            const CancellationToken& token);

  // Copies inputs that can be read only once, such as pipes, to an unnamed file, so that everything
  // can be read again.
  absl::Status KeepForAnotherRead();

  // Calls `take` with each entry, in order, from the beginning. CANCELLED if the token is.
  absl::Status Read(const std::function<void(const JournalEntry&)>& take);

  // The lines that the last Read skipped.
  const DamagedLines& damaged() const { return damaged_; }

 private:
  struct File {
    std::string path;
    UniqueFd fd;
  };

  explicit JournalReader(const CancellationToken& token) : token_(token) {}
  absl::Status Add(const std::string& path);
  absl::Status AddFolder(const std::string& path);
  absl::Status ReadFile(const File& file, const std::function<void(const JournalEntry&)>& take);
  absl::Status ReadPieces(const File& file,
                          const std::function<absl::Status(absl::string_view)>& take);

  CancellationToken token_;
  std::vector<File> files_;
  DamagedLines damaged_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_
