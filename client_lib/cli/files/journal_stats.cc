#include "client_lib/cli/files/journal_stats.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"

namespace spillway::cli {
namespace {

constexpr JournalDimension kDimensions[] = {
    {"job", &JournalEntry::job},         {"user", &JournalEntry::user},
    {"queue", &JournalEntry::queue},     {"model", &JournalEntry::model},
    {"machine", &JournalEntry::machine}, {"strategy", &JournalEntry::strategy},
    {"caller", &JournalEntry::caller}};

// Each is a multiple of the previous one, so that columns can be merged; from a second to some 3000
// years, longer than any journal's period.
constexpr int64_t kWidths[] = {1,     10,     60,      600,      3600,      21600,
                               86400, 604800, 6048000, 60480000, 604800000, 96768000000};

// The sums of a forged journal may overflow.
void AddTo(int64_t* sum, int64_t value) {
  if (__builtin_add_overflow(*sum, value, sum)) {
    *sum = value > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  }
}

int64_t Column(const JournalEntry& entry, int64_t width) {
  return absl::ToUnixSeconds(entry.time) / width;
}

template <typename Key>
std::vector<NamedSums> Sorted(const std::map<std::string, JournalSums>& sums, const Key& key) {
  std::vector<NamedSums> sorted(sums.begin(), sums.end());
  // Maps are ordered by name.
  std::stable_sort(sorted.begin(), sorted.end(), [&](const NamedSums& a, const NamedSums& b) {
    return key(a.second) > key(b.second);
  });
  return sorted;
}

}  // namespace

absl::Span<const JournalDimension> JournalDimensions() { return kDimensions; }

absl::optional<double> JournalSums::slowdown() const {
  if (step_before_ns <= 0) return absl::nullopt;
  return static_cast<double>(step_after_ns) / static_cast<double>(step_before_ns);
}

void JournalSums::Add(const JournalEntry& entry) {
  ++requests;
  if (absl::EqualsIgnoreCase(entry.outcome, "does_not_fit") ||
      absl::EqualsIgnoreCase(entry.reason, "does_not_fit")) {
    ++does_not_fit;
    if (entry.need_bytes && *entry.need_bytes > need_bytes.value_or(-1)) {
      need_bytes = entry.need_bytes;
      need_budget_bytes = entry.budget_bytes;
    }
    return;
  }
  if (!absl::EqualsIgnoreCase(entry.code, "ok")) {
    ++failed;
    return;
  }
  if (entry.outcome == "nothing_to_do") ++nothing_to_do;
  if (entry.outcome != "rewritten") return;
  ++rewritten;
  if (entry.swapped_tensors.value_or(0) == 0) return;
  ++swapping;
  AddTo(&swap_bytes, entry.swap_out_bytes.value_or(0));
  AddTo(&swap_bytes, entry.swap_in_bytes.value_or(0));
  if (entry.peak_before_bytes && entry.peak_after_bytes) {
    AddTo(&saved_bytes, *entry.peak_before_bytes - *entry.peak_after_bytes);
  }
  most_host_bytes = std::max(most_host_bytes, entry.host_peak_bytes.value_or(0));
  if (entry.step_before_ns.value_or(0) > 0 && entry.step_after_ns.value_or(0) > 0) {
    AddTo(&step_before_ns, *entry.step_before_ns);
    AddTo(&step_after_ns, *entry.step_after_ns);
  }
}

void JournalSums::Add(const JournalSums& sums) {
  for (int64_t JournalSums::*count :
       {&JournalSums::requests, &JournalSums::rewritten, &JournalSums::nothing_to_do,
        &JournalSums::does_not_fit, &JournalSums::failed, &JournalSums::swapping,
        &JournalSums::swap_bytes, &JournalSums::saved_bytes, &JournalSums::step_before_ns,
        &JournalSums::step_after_ns}) {
    AddTo(&(this->*count), sums.*count);
  }
  most_host_bytes = std::max(most_host_bytes, sums.most_host_bytes);
  if (sums.need_bytes && *sums.need_bytes > need_bytes.value_or(-1)) {
    need_bytes = sums.need_bytes;
    need_budget_bytes = sums.need_budget_bytes;
  }
}

void JournalTimeline::Add(const JournalEntry& entry) {
  columns_[Column(entry, kWidths[width_index_])].Add(entry);
  while (columns_.size() > kMaxColumns) {
    const int64_t ratio = kWidths[width_index_ + 1] / kWidths[width_index_];
    ++width_index_;
    std::map<int64_t, JournalSums> wider;
    for (const auto& [column, sums] : columns_) wider[column / ratio].Add(sums);
    columns_ = std::move(wider);
  }
}

JournalTimeline::Columns JournalTimeline::In(size_t most) const {
  Columns result;
  if (columns_.empty()) return result;
  const int64_t first_s = columns_.begin()->first * kWidths[width_index_];
  const int64_t last_s = columns_.rbegin()->first * kWidths[width_index_];
  size_t index = width_index_;
  while (static_cast<size_t>(last_s / kWidths[index] - first_s / kWidths[index]) >= most) ++index;
  result.width_s = kWidths[index];
  const int64_t first = first_s / result.width_s;
  result.start_s = first * result.width_s;
  result.columns.resize(static_cast<size_t>(last_s / result.width_s - first) + 1);
  const int64_t ratio = result.width_s / kWidths[width_index_];
  for (const auto& [column, sums] : columns_) {
    result.columns[static_cast<size_t>(column / ratio - first)].Add(sums);
  }
  return result;
}

JournalStats::JournalStats(std::vector<const JournalDimension*> dimensions)
    : dimensions_(std::move(dimensions)), sums_(dimensions_.size()) {}

void JournalStats::Add(const JournalEntry& entry) {
  totals_.Add(entry);
  first_ = std::min(first_, entry.time);
  last_ = std::max(last_, entry.time);
  timeline_.Add(entry);
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    const std::string& given = entry.*dimensions_[i]->field;
    std::map<std::string, JournalSums>& sums = sums_[i];
    auto found = sums.find(given.empty() ? kNoName : given);
    if (found == sums.end()) {
      const bool full = sums.size() >= kMaxJournalNames;
      found = sums.try_emplace(full ? kOtherNames : given.empty() ? kNoName : given).first;
    }
    found->second.Add(entry);
  }
}

std::vector<NamedSums> JournalStats::BySwapBytes(size_t index) const {
  return Sorted(sums_[index], [](const JournalSums& sums) { return sums.swap_bytes; });
}

std::vector<NamedSums> JournalStats::ByDoesNotFit(size_t index) const {
  std::vector<NamedSums> sorted =
      Sorted(sums_[index], [](const JournalSums& sums) { return sums.does_not_fit; });
  const auto end = std::find_if(sorted.begin(), sorted.end(), [](const NamedSums& named) {
    return named.second.does_not_fit == 0;
  });
  sorted.erase(end, sorted.end());
  return sorted;
}

}  // namespace spillway::cli
