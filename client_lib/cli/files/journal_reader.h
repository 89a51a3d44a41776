// Reads a server's journal (spillwayd --journal), line by line. The file is untrusted: an invalid
// line is counted and skipped.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// Longer lines are invalid. A server's lines have a few hundred bytes.
inline constexpr size_t kMaxJournalLine = 1 << 20;

// A line: its values by the names of journal_fields.h, as far as statistics use them.
struct JournalEntry {
  absl::Time time;
  std::map<absl::string_view, std::string> texts;
  std::map<absl::string_view, int64_t> numbers;

  std::string Text(absl::string_view name) const { return texts.count(name) ? texts.at(name) : ""; }
  absl::optional<int64_t> Number(absl::string_view name) const {
    return numbers.count(name) ? absl::make_optional(numbers.at(name)) : absl::nullopt;
  }
};

// Parses a line. Returns nothing if `line` is invalid: not a JSON object, without a time, or with a
// used field of the wrong type. Names are truncated to the server's limit.
absl::optional<JournalEntry> ParseJournalLine(absl::string_view line);

class JournalReader {
 public:
  // The lines that the last Read skipped.
  struct Damage {
    int64_t count = 0;
    std::string first;  // `line 4 of 'journal.jsonl'`.
  };

  // Reads files, the journals in folders (oldest file first), and standard input ("-"). A file that
  // is given twice is read once. FileError for a folder without a journal.
  static absl::StatusOr<JournalReader> Open(const std::vector<std::string>& paths,
                                            const CancellationToken& token);

  // Calls `take` with each entry, in order; again from the beginning if called again. Errors: those
  // of ReadBytes (input_file.h).
  absl::Status Read(const std::function<void(const JournalEntry&)>& take);

  const Damage& damage() const { return damage_; }

 private:
  explicit JournalReader(const CancellationToken& token) : token_(token) {}

  CancellationToken token_;
  std::vector<std::string> paths_;
  std::map<std::string, std::string> kept_;  // Of files readable only once, such as pipes.
  Damage damage_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_READER_H_
