#include "tests/testing/text_form.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "tests/testing/attr_text.h"

namespace spillway::testing {
namespace {

using core::AppendNodeField;
using core::AttrEntry;
using core::InvalidError;
using core::NodeSpec;
using core::ReadAttrEntry;
using core::WireReader;
namespace graph_def = core::graph_def;
namespace node_def = core::node_def;

// Parses one line of the text form.
class LineParser {
 public:
  explicit LineParser(absl::string_view line) : line_(line), rest_(line) {}

  // Appends the line's GraphDef fields. Returns empty on success, otherwise the expected syntax.
  std::string Run(std::string* out) {
    if (Take("!")) {
      Skip();
      return ParseHex(&rest_, out) ? AtEnd() : "0x and an even number of hexadecimal digits";
    }
    NodeSpec node;
    node.name = Word("=");
    if (!Take("=")) return "'=' after the name";
    node.op = Word("(");
    if (!Take("(")) return "'(' after the op type";
    while (!Take(")")) {
      if (!node.inputs.empty() && !Take(",")) return "',' or ')' after an input";
      node.inputs.push_back(Word(",)"));
      if (rest_.empty()) return "')' after the inputs";
    }
    if (Take("@")) node.device = Word("{");
    if (Take("{")) {
      while (!Take("}")) {
        if (!node.attrs.empty() && !Take(",")) return "',' or '}' after an attribute";
        std::string key = Word("=");
        if (!Take("=")) return "'=' after an attribute's name";
        Skip();
        std::string value;
        if (!ParseAttr(&rest_, &value)) return "an attribute value";
        node.attrs.emplace_back(std::move(key), std::move(value));
      }
    }
    AppendNodeField(node, out);
    return AtEnd();
  }

  size_t column() const { return line_.size() - rest_.size() + 1; }

 private:
  void Skip() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool Take(absl::string_view mark) {
    Skip();
    return absl::ConsumePrefix(&rest_, mark);
  }
  // Reads up to one of `ends` or the end of the line, without surrounding space.
  std::string Word(absl::string_view ends) {
    const size_t end = std::min(rest_.find_first_of(ends), rest_.size());
    const absl::string_view word = absl::StripAsciiWhitespace(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return std::string(word);
  }
  std::string AtEnd() {
    Skip();
    return rest_.empty() ? "" : "the end of the line";
  }

  absl::string_view line_;
  absl::string_view rest_;
};

}  // namespace

std::string PrintNode(const core::Graph& graph, core::NodeId id) {
  std::vector<absl::string_view> inputs;
  std::vector<std::pair<absl::string_view, std::string>> attrs;
  WireReader reader(graph.node_bytes(id));
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kInput)) inputs.push_back(reader.bytes());
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    attrs.emplace_back(entry.key, PrintAttr(entry.value));
  }
  std::sort(attrs.begin(), attrs.end());
  std::string line =
      absl::StrCat(graph.name(id), " = ", graph.op(id), "(", absl::StrJoin(inputs, ", "), ")");
  if (!graph.device(id).empty()) absl::StrAppend(&line, " @", graph.device(id));
  if (!attrs.empty()) {
    absl::StrAppend(&line, " {", absl::StrJoin(attrs, ", ", absl::PairFormatter("=")), "}");
  }
  return line;
}

std::string PrintGraph(const core::Graph& graph) {
  std::string text;
  core::NodeId next(0);
  WireReader reader(graph.bytes());
  while (reader.Next()) {
    if (reader.IsBytes(graph_def::kNode)) {
      absl::StrAppend(&text, PrintNode(graph, next), "\n");
      ++next;
    } else {
      absl::StrAppend(&text, "! ", PrintHex(reader.whole()), "\n");
    }
  }
  return text;
}

absl::StatusOr<std::string> ParseGraphText(absl::string_view text) {
  std::string out;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripLeadingAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    LineParser parser(line);
    const std::string expected = parser.Run(&out);
    if (!expected.empty()) {
      return InvalidError(v1::ERROR_REASON_MALFORMED_GRAPH,
                          absl::StrCat("line ", number, ", column ", parser.column(), ": expected ",
                                       expected, "; see the text form"),
                          {{"line", absl::StrCat(number)}, {"value", line}});
    }
  }
  return out;
}

}  // namespace spillway::testing
