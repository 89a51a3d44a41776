// Statistics of the lines of a journal: swaps and their costs by job, user, model and the like.
// Pure sums: no file, no clock.
//
// Memory is bounded by a number of names, not by the journal's length: names beyond the bound are
// counted as "others". Sums saturate rather than overflow. Ties break by name.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_STATS_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_STATS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "client_lib/cli/files/journal_reader.h"

namespace spillway::cli {

// For each dimension. With names of 128 bytes, about 40 MB.
inline constexpr size_t kMaxJournalNames = 100'000;

// Names in a journal contain no space, so these are unambiguous.
inline constexpr char kNoName[] = "(not given)";
inline constexpr char kOtherNames[] = "(all others)";

// A field by which lines are grouped.
struct JournalDimension {
  const char* name;  // As in `--by`.
  std::string JournalEntry::*field;
};
// job, user, queue, model, machine, strategy, caller.
absl::Span<const JournalDimension> JournalDimensions();

// Sums over some lines. Bytes and times are those of one step of each request.
struct JournalSums {
  int64_t requests = 0;
  int64_t rewritten = 0;
  int64_t nothing_to_do = 0;
  int64_t does_not_fit = 0;
  int64_t failed = 0;       // For other reasons.
  int64_t swapping = 0;     // Those of `rewritten` that swap. The sums below are of these only.
  int64_t swap_bytes = 0;   // Both ways.
  int64_t saved_bytes = 0;  // Peaks before less peaks after, of each graph's fullest GPU.
  int64_t most_host_bytes = 0;
  // Of those for which both are known.
  int64_t step_before_ns = 0;
  int64_t step_after_ns = 0;
  // Of does_not_fit: the largest need, and the budget of the same request.
  absl::optional<int64_t> need_bytes;
  absl::optional<int64_t> need_budget_bytes;

  int64_t other() const { return requests - rewritten - nothing_to_do - does_not_fit - failed; }
  absl::optional<double> slowdown() const;
  void Add(const JournalEntry& entry);
  void Add(const JournalSums& sums);
};

using NamedSums = std::pair<std::string, JournalSums>;

// Sums over time, in columns of one width.
class JournalTimeline {
 public:
  // Few enough to keep, and ten times the number that is drawn.
  static constexpr size_t kMaxColumns = 4096;

  void Add(const JournalEntry& entry);
  // Returns the columns from the first to the last that has a line, including empty ones in
  // between, at most `most` (> 0); none if there are no lines.
  struct Columns {
    int64_t start_s = 0;  // Unix time, of the first one.
    int64_t width_s = 1;
    std::vector<JournalSums> columns;
  };
  Columns In(size_t most) const;

 private:
  size_t width_index_ = 0;
  std::map<int64_t, JournalSums> columns_;  // By time / width.
};

class JournalStats {
 public:
  // `dimensions`: a selection of JournalDimensions.
  explicit JournalStats(std::vector<const JournalDimension*> dimensions);

  void Add(const JournalEntry& entry);

  const JournalSums& totals() const { return totals_; }
  absl::Time first() const { return first_; }
  absl::Time last() const { return last_; }
  const JournalTimeline& timeline() const { return timeline_; }
  const std::vector<const JournalDimension*>& dimensions() const { return dimensions_; }

  // Returns the names of dimensions()[index], most swapped bytes first; kNoName and kOtherNames are
  // ordered like the others.
  std::vector<NamedSums> BySwapBytes(size_t index) const;
  // Returns the names with requests that did not fit, most first.
  std::vector<NamedSums> ByDoesNotFit(size_t index) const;

 private:
  const std::vector<const JournalDimension*> dimensions_;
  std::vector<std::map<std::string, JournalSums>> sums_;
  JournalSums totals_;
  absl::Time first_ = absl::InfiniteFuture();
  absl::Time last_ = absl::InfinitePast();
  JournalTimeline timeline_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_JOURNAL_STATS_H_
