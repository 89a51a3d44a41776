#include "client_lib/format/text_places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/format/text_error.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "rewrite_core/base/error.h"

namespace spillway::format {
namespace {

using google::protobuf::io::Tokenizer;

constexpr int kTabWidth = 8;  // The tab width of Tokenizer.
// The maximum depth of brackets. Far above the 100 messages that protobuf reads in binary form.
constexpr size_t kMaxOpenBrackets = 1000;

void Advance(char c, TextPosition* position) {
  if (c == '\n') {
    ++position->line;
    position->column = 0;
  } else if (c == '\t') {
    position->column += kTabWidth - position->column % kTabWidth;
  } else {
    ++position->column;
  }
}

// Converts positions from a tokenizer, which only grow, to byte offsets.
class OffsetFinder {
 public:
  explicit OffsetFinder(absl::string_view text) : text_(text) {}

  size_t Find(TextPosition wanted) {
    while (offset_ < text_.size() && std::make_pair(position_.line, position_.column) <
                                         std::make_pair(wanted.line, wanted.column)) {
      Advance(text_[offset_++], &position_);
    }
    return offset_;
  }

 private:
  const absl::string_view text_;
  size_t offset_ = 0;
  TextPosition position_;
};

// Walks over the fields of a text, of any message, without recursion.
class FieldWalker {
 public:
  explicit FieldWalker(absl::string_view text)
      : input_(text.data(), static_cast<int>(text.size())), tokenizer_(&input_, &error_) {
    // As TextFormat configures it.
    tokenizer_.set_allow_f_after_float(true);
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokenizer_.set_require_space_after_number(false);
    tokenizer_.set_allow_multiline_strings(true);
  }

  enum class Event { kNone, kField, kValue, kOpen, kClose };

  // Moves to the next token. Returns false at the end or on an error; see status().
  bool Next() {
    const bool after_colon = token().text == ":" && token().type == Tokenizer::TYPE_SYMBOL;
    const bool has_value_now = after_colon || event_ == Event::kField;
    event_ = Event::kNone;
    if (!tokenizer_.Next()) {
      if (error_.status().ok() && !levels_.empty()) {
        SetError(absl::StrCat("the text ends before the ", std::string(1, levels_.back().close),
                              " of ", FieldPath()));
      }
      return false;
    }
    if (!error_.status().ok()) return false;
    const bool in_list = !levels_.empty() && levels_.back().close == ']';
    if (token().type != Tokenizer::TYPE_SYMBOL) {
      const bool is_name = token().type == Tokenizer::TYPE_IDENTIFIER && !after_colon && !in_list;
      if (is_name) field_ = token().text;
      event_ = is_name ? Event::kField : Event::kValue;
      return true;
    }
    const char c = token().text[0];
    if (c == '{' || c == '<' || c == '[') {
      // Where a field name is expected, `[...]` is the name of an extension.
      if (c == '[' && !has_value_now) field_.clear();
      if (levels_.size() == kMaxOpenBrackets) {
        SetError(absl::StrCat("more than ", kMaxOpenBrackets, " brackets are open"));
        return false;
      }
      levels_.push_back({c == '{' ? '}' : c == '<' ? '>' : ']', field_});
      event_ = Event::kOpen;
    } else if (c == '}' || c == '>' || c == ']') {
      if (levels_.empty() || levels_.back().close != c) {
        SetError(levels_.empty()
                     ? absl::StrCat("there is nothing open for ", token().text, " to close")
                     : absl::StrCat("expected ", std::string(1, levels_.back().close), " of ",
                                    FieldPath(), ", found ", token().text));
        return false;
      }
      event_ = Event::kClose;
      field_ = levels_.back().field;
      levels_.pop_back();
    }
    return true;
  }

  absl::Status status() const { return status_.ok() ? error_.status() : status_; }
  Event event() const { return event_; }
  const Tokenizer::Token& token() { return tokenizer_.current(); }
  TextPosition position() { return {token().line, token().column}; }
  const std::string& field() const { return field_; }

  // The messages around the token, outermost first, by field name; lists do not count.
  std::vector<absl::string_view> Path() const {
    std::vector<absl::string_view> path;
    for (const Level& level : levels_) {
      if (level.close != ']') path.push_back(level.field);
    }
    return path;
  }
  size_t depth() const { return levels_.size(); }

 private:
  struct Level {
    char close;
    std::string field;
  };

  std::string FieldPath() const { return core::Quoted(levels_.back().field); }
  void SetError(absl::string_view message) {
    if (status_.ok()) status_ = TextError(position(), message);
  }

  FirstTextError error_;
  google::protobuf::io::ArrayInputStream input_;
  Tokenizer tokenizer_;
  absl::Status status_;
  std::vector<Level> levels_;
  std::string field_;  // The last field name at this level.
  Event event_ = Event::kNone;
};

constexpr absl::string_view kGraphDefFields[] = {"node", "versions", "version", "library"};
constexpr absl::string_view kMetaGraphFields[] = {
    "meta_info_def", "graph_def",      "saver_def",       "collection_def",
    "signature_def", "asset_file_def", "object_graph_def"};
constexpr absl::string_view kSavedModelFields[] = {"saved_model_schema_version", "meta_graphs"};
constexpr char kGraphField[] = "graph_def";
constexpr char kMetaGraphsField[] = "meta_graphs";
constexpr char kTagsField[] = "tags";

using Path = std::vector<absl::string_view>;

// The position of an open bracket or a value.
bool IsMetaGraph(const Path& path, bool in_saved_model) {
  return in_saved_model && path == Path{kMetaGraphsField};
}
bool IsGraph(const Path& path, bool in_saved_model) {
  return path == (in_saved_model ? Path{kMetaGraphsField, kGraphField} : Path{kGraphField});
}
bool IsMetaInfo(const Path& path, bool in_saved_model) {
  return path == (in_saved_model ? Path{kMetaGraphsField, "meta_info_def"} : Path{"meta_info_def"});
}

}  // namespace

bool StartsLikeText(absl::string_view bytes) {
  while (true) {
    bytes = absl::StripLeadingAsciiWhitespace(bytes);
    if (bytes.empty() || bytes[0] != '#') break;
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
  }
  size_t name = 0;
  while (name < bytes.size() && (absl::ascii_isalnum(bytes[name]) || bytes[name] == '_')) ++name;
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(bytes.substr(name));
  return name > 0 && !absl::ascii_isdigit(bytes[0]) && !rest.empty() &&
         absl::StrContains(":{<", rest.substr(0, 1));
}

GraphFormat RecogniseText(absl::string_view text) {
  FieldWalker walker(text);
  while (walker.Next()) {
    if (walker.event() != FieldWalker::Event::kField || walker.depth() > 0) continue;
    if (absl::c_linear_search(kGraphDefFields, walker.field())) return GraphFormat::kGraphDefText;
    if (absl::c_linear_search(kMetaGraphFields, walker.field())) return GraphFormat::kMetaGraphText;
    if (absl::c_linear_search(kSavedModelFields, walker.field())) {
      return GraphFormat::kSavedModelText;
    }
  }
  return GraphFormat::kGraphDefText;
}

absl::StatusOr<std::vector<GraphPlace>> FindTextGraphs(absl::string_view text, GraphFormat format) {
  std::vector<GraphPlace> places;
  const bool in_saved_model = format == GraphFormat::kSavedModelText;
  if (!in_saved_model) places.emplace_back();
  if (format == GraphFormat::kGraphDefText) {
    places[0].present = true;
    places[0].content = {0, text.size()};
    return places;
  }
  FieldWalker walker(text);
  OffsetFinder offsets(text);
  size_t graph_depth = 0;  // Of the brackets around the content of a graph; 0: outside one.
  while (walker.Next()) {
    if (graph_depth > 0) {
      if (walker.event() != FieldWalker::Event::kClose || walker.depth() >= graph_depth) continue;
      places.back().content.end = offsets.Find(walker.position());
      graph_depth = 0;
    } else if (walker.event() == FieldWalker::Event::kOpen && walker.token().text != "[") {
      const Path path = walker.Path();
      if (IsMetaGraph(path, in_saved_model)) {
        if (places.size() == kMaxMetaGraphs) return TooManyMetaGraphs();
        places.emplace_back();
      }
      if (!IsGraph(path, in_saved_model)) continue;
      GraphPlace& place = places.back();
      if (place.present) return TextError(walker.position(), "a second graph_def of a MetaGraph");
      place.present = true;
      place.content.begin = offsets.Find(walker.position()) + 1;
      place.position = {walker.position().line, walker.position().column + 1};
      place.depth = static_cast<int>(path.size());
      graph_depth = walker.depth();
    } else if (walker.event() == FieldWalker::Event::kValue && walker.field() == kTagsField &&
               !places.empty() && walker.token().type == Tokenizer::TYPE_STRING &&
               places.back().tags.size() < kMaxTags && IsMetaInfo(walker.Path(), in_saved_model)) {
      Tokenizer::ParseString(walker.token().text, &places.back().tags.emplace_back());
    }
  }
  if (!walker.status().ok()) return walker.status();
  return places;
}

}  // namespace spillway::format
