#include "client_lib/text/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/plain_text.h"

namespace spillway::text {

namespace {

using Rows = std::vector<std::vector<std::string>>;

// Cells may have untrusted text.
Rows Plain(Rows rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = core::PlainText(cell);
  }
  return rows;
}

constexpr size_t kIndent = 2;    // Before each column.
constexpr size_t kMinText = 20;  // However narrow the line.

std::vector<size_t> Widths(const Rows& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

// Shrinks the widest columns until the row fits a line.
void FitLine(size_t width, std::vector<size_t>* widths) {
  size_t total = 0;
  for (const size_t column : *widths) total += kIndent + column;
  for (; total > width; --total) --*std::max_element(widths->begin(), widths->end());
}

// Shortens each word of `text` to at most `width`.
std::string WithShortWords(absl::string_view text, size_t width) {
  return absl::StrJoin(absl::StrSplit(text, ' '), " ",
                       [width](std::string* out, absl::string_view word) {
                         absl::StrAppend(out, Shortened(word, width));
                       });
}

std::string FormatTableRow(const std::vector<std::string>& cells,
                           const std::vector<size_t>& widths) {
  std::string line;
  for (size_t column = 0; column < cells.size(); ++column) {
    const std::string& cell = cells[column];
    const std::string fill(widths[column] - std::min(widths[column], cell.size()), ' ');
    absl::StrAppend(&line, std::string(kIndent, ' '), column == 0 ? cell : fill,
                    column == 0 ? fill : cell);
  }
  absl::StripTrailingAsciiWhitespace(&line);
  return line;
}

}  // namespace

std::string FormatTable(const Rows& given, Style style) {
  const Rows rows = Plain(given);
  std::vector<size_t> widths = Widths(rows);
  FitLine(style.width(), &widths);
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells = rows[i];
    for (size_t column = 0; column < cells.size(); ++column) {
      cells[column] = Shortened(cells[column], widths[column]);
    }
    const std::string line = FormatTableRow(cells, widths);
    absl::StrAppend(&text, i == 0 ? style.Heading(line) : line, "\n");
  }
  return text;
}

std::string FormatFacts(const Rows& given, Style style) {
  const Rows rows = Plain(given);
  const std::vector<size_t> widths = Widths(rows);
  const size_t label_width = widths.empty() ? 0 : widths[0];
  const size_t margin = 2 * kIndent + label_width;
  const size_t text_width = std::max(style.width(), margin + kMinText) - margin;
  std::string text;
  std::string label;  // An empty label repeats that of the previous row.
  for (const auto& row : rows) {
    if (!row[0].empty()) label = row[0];
    std::string lines = row[0];
    const std::string wrapped = Wrap(WithShortWords(row[1], text_width), text_width);
    for (absl::string_view line : absl::StrSplit(wrapped, '\n')) {
      std::string whole =
          absl::StrCat(std::string(kIndent, ' '), lines,
                       std::string(label_width - lines.size() + kIndent, ' '), line);
      absl::StripTrailingAsciiWhitespace(&whole);
      absl::StrAppend(&text, label == "warning" ? style.Warning(whole) : whole, "\n");
      lines.clear();
    }
  }
  return text;
}

std::string Shortened(absl::string_view text, size_t width) {
  constexpr absl::string_view kMark = "...";
  if (text.size() <= width) return std::string(text);
  if (width <= kMark.size()) return std::string(kMark.substr(0, width));
  const size_t front = (width - kMark.size() + 1) / 2;
  const size_t back = width - kMark.size() - front;
  return absl::StrCat(text.substr(0, front), kMark, text.substr(text.size() - back));
}

std::string Paragraph(absl::string_view text, size_t indent, Style style) {
  constexpr size_t kHanging = 2;
  const std::string margin(indent, ' ');
  const size_t width = std::max(style.width(), indent + kHanging + kMinText) - indent - kHanging;
  const std::string lines = Wrap(WithShortWords(core::PlainText(text), width), width);
  return absl::StrCat(
      margin,
      absl::StrReplaceAll(lines, {{"\n", absl::StrCat("\n", margin, std::string(kHanging, ' '))}}),
      "\n");
}

std::string FormatCount(int64_t count, absl::string_view noun) {
  return core::CountText(count, noun);
}

std::string KnownBytes(int64_t bytes, int64_t unknown) {
  if (bytes == 0 && unknown > 0) return "-";
  return absl::StrCat(unknown > 0 ? ">= " : "", core::BytesText(bytes));
}

std::string Wrap(absl::string_view text, size_t width) {
  std::string wrapped;
  size_t column = 0;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped += '\n';
      column = 0;
    }
    if (column > 0) {
      wrapped += ' ';
      ++column;
    }
    absl::StrAppend(&wrapped, word);
    column += word.size();
  }
  return wrapped;
}

}  // namespace spillway::text
