#include "rewrite_core/strategy/common/name_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// A pattern above this is a mistake or an attack; names are far shorter.
constexpr size_t kMaxPatternBytes = 4096;
// The memory limit of RE2 for one pattern, including its cache of states: enough for a pattern of
// kMaxPatternBytes letters (re2/compile.cc: a quarter of it in instructions of 16 bytes). RE2's own
// default is 8 MiB.
constexpr int64_t kMaxRegexBytes = 384 << 10;

bool IsSpecial(char c) {
  return absl::string_view("\\^$.|?*+()[]{}").find(c) != absl::string_view::npos;
}

// The bytes to compare for a text without special characters except escaped ones and a $ at its
// end, as scripts make from names (Python's re.escape).
struct Literal {
  std::string text;
  bool ends = false;  // Whether it has the $ at its end.
};

absl::optional<Literal> AsLiteral(absl::string_view text) {
  Literal literal;
  literal.ends = absl::ConsumeSuffix(&text, "$");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      // A letter, a digit or _ after \ is a class, a number or an error in RE2.
      if (++i == text.size() || !absl::ascii_ispunct(text[i]) || text[i] == '_') return {};
    } else if (IsSpecial(text[i])) {
      return {};
    }
    literal.text += text[i];
  }
  if (literal.text.empty()) return {};
  return literal;
}

absl::Status TooMany(absl::string_view option, absl::string_view what, int64_t limit) {
  return InvalidError(v1::ERROR_REASON_LIMIT_EXCEEDED,
                      absl::StrCat(option, " has ", what, " than the ", limit,
                                   " allowed; name a scope that holds them all"),
                      {{"option", option}, {"limit", absl::StrCat(limit)}});
}

}  // namespace

absl::StatusOr<NamePattern> NamePattern::Create(Kind kind, absl::string_view text,
                                                absl::string_view option) {
  if (kind == Kind::kScope) text = absl::StripSuffix(text, "/");
  NamePattern pattern;
  pattern.kind_ = kind;
  pattern.text_ = std::string(text);
  if (text.empty()) {
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat(option,
                                     " has an empty entry, which would match every op; "
                                     "name a scope, or leave the option out"),
                        {{"option", option}, {"value", text}});
  }
  if (auto literal = AsLiteral(text)) {
    pattern.literal_ = std::move(literal->text);
    if (literal->ends) pattern.kind_ = Kind::kExact;
    return pattern;
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxRegexBytes);
  const absl::string_view tail = kind == Kind::kPrefix  ? ""
                                 : kind == Kind::kExact ? "$"
                                                        : "(/.*)?$";
  std::string error = "it is too long";
  if (text.size() <= kMaxPatternBytes) {
    pattern.regex_ = std::make_shared<const RE2>(absl::StrCat("^", text, tail), options);
    if (pattern.regex_->ok()) return pattern;
    error = pattern.regex_->error();
  }
  return InvalidError(
      v1::ERROR_REASON_BAD_REGEX,
      absl::StrCat(option, " has ", Quoted(text), ", which is no RE2 regular expression: ", error,
                   "; RE2 has no lookaround and no back references, and \\ escapes a character"),
      {{"option", option}, {"value", text}});
}

bool NamePattern::Matches(absl::string_view name) const {
  if (regex_ != nullptr) {
    // RE2 may take a step for each byte and instruction. No program makes names of this length.
    constexpr size_t kMaxMatched = 4096;
    if (name.size() > kMaxMatched) return false;
    return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *regex_);
  }
  if (!absl::StartsWith(name, literal_)) return false;
  switch (kind_) {
    case Kind::kPrefix:
      return true;
    case Kind::kExact:
      return name.size() == literal_.size();
    case Kind::kScope:
      return name.size() == literal_.size() || name[literal_.size()] == '/';
  }
  return false;
}

absl::StatusOr<std::vector<NamePattern>> CreatePatterns(NamePattern::Kind kind,
                                                        const std::vector<std::string>& texts,
                                                        absl::string_view option,
                                                        const StopToken& stop) {
  if (texts.size() > kMaxPatterns) {
    return TooMany(option, absl::StrCat("more entries (", texts.size(), ")"), kMaxPatterns);
  }
  std::vector<NamePattern> patterns;
  int regexes = 0, program_size = 0;
  for (const std::string& text : texts) {
    // Compiling a pattern may take milliseconds.
    if (stop.ShouldStop(StopPoller::kStride)) return stop.status("strategy");
    auto pattern = NamePattern::Create(kind, text, option);
    if (!pattern.ok()) return pattern.status();
    regexes += pattern->program_size() > 0;
    if (regexes > kMaxRegexes) return TooMany(option, "more regular expressions", kMaxRegexes);
    program_size += pattern->program_size();
    if (program_size > kMaxProgramSize) {
      return TooMany(option, "regular expressions of more instructions", kMaxProgramSize);
    }
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

}  // namespace spillway::core
