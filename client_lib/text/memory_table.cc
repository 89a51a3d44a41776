#include "client_lib/text/memory_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

// As many as leave a short answer short.
constexpr size_t kShownGpus = 4;

std::vector<std::string> CellsOf(const std::string& name,
                                 const std::vector<std::optional<int64_t>>& bytes) {
  std::vector<std::string> cells = {name};
  for (const std::optional<int64_t>& value : bytes) {
    cells.push_back(value.has_value() ? core::BytesText(*value) : "-");
  }
  return cells;
}

}  // namespace

std::string FormatMemoryTable(const std::vector<std::string>& heading,
                              const std::vector<MemoryRow>& gpus,
                              const std::vector<std::optional<int64_t>>& host, Style style) {
  std::vector<std::vector<std::string>> rows = {heading};
  const size_t shown = gpus.size() > kShownGpus ? kShownGpus - 1 : gpus.size();
  for (size_t i = 0; i < shown; ++i) {
    rows.push_back(CellsOf(gpus[i].name.empty() ? "GPU" : gpus[i].name, gpus[i].bytes));
  }
  if (shown < gpus.size()) {
    std::vector<std::optional<int64_t>> most = gpus[shown].bytes;
    for (size_t i = shown + 1; i < gpus.size(); ++i) {
      for (size_t column = 0; column < most.size(); ++column) {
        most[column] = std::max(most[column], gpus[i].bytes[column]);
      }
    }
    rows.push_back(CellsOf(absl::StrCat(gpus.size() - shown, " others, at most"), most));
  }
  if (!host.empty()) rows.push_back(CellsOf("host", host));
  return FormatTable(rows, style);
}

}  // namespace spillway::text
