#include "client_lib/cli/flags/size_list.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/flags/option_value.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// A longer table would take minutes and be of no use.
constexpr int64_t kMaxSizes = 10'000;

absl::Status BadSizes(absl::string_view flag, absl::string_view text) {
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat(
          flag, ": ", core::Quoted(text),
          " is no list of sizes; give whole numbers and ranges FROM:TO or FROM:TO:STEP, at most ",
          kMaxSizes, " sizes: 32,64,128 or 224:1024:32"),
      {{"flag", flag}, {"value", text}});
}

// Appends one item of the list, "32", "32:64" or "32:64:8", to `options`. Returns false if `text`
// is not an item.
bool AddSizes(const std::string& text, v1::ExploreOptions* options) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  int64_t from = 0, to = 0, step = 1;
  if (parts.size() > 3 || !absl::SimpleAtoi(parts[0], &from)) return false;
  to = from;
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &to)) return false;
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &step)) return false;
  if (parts.size() == 1) {
    options->add_sizes(from);
    return options->sizes_size() <= kMaxSizes;
  }
  if (from < 1 || to < from || step < 1) return false;
  if ((to - from) / step >= kMaxSizes - options->sizes_size()) return false;
  const int64_t count = (to - from) / step + 1;
  for (int64_t i = 0; i < count; ++i) options->add_sizes(from + i * step);
  return true;
}

}  // namespace

absl::Status AddSizeLists(const std::string& flag, const std::vector<std::string>& texts,
                          v1::ExploreOptions* options) {
  for (const std::string& text : texts) {
    for (const std::string& item : SplitList(text)) {
      if (!AddSizes(item, options)) return BadSizes(flag, text);
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::cli
