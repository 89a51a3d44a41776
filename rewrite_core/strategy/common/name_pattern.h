// The name patterns of TFLMS v1: the user's scope or name is pasted into a regular expression, so
// that a dot matches anything. They are matched with RE2, since they are untrusted: linear time, no
// lookaround.
//
// Thread safety: Matches may run in parallel.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_NAME_PATTERN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_NAME_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

class NamePattern {
 public:
  enum class Kind {
    kPrefix,  // ^TEXT
    kExact,   // ^TEXT$
    kScope,   // ^TEXT(/.*)?$; a trailing slash of TEXT is dropped.
  };

  // `option` is the option with this text, for the error: INVALID_ARGUMENT (BAD_REGEX; BAD_OPTION
  // if the text is empty).
  static absl::StatusOr<NamePattern> Create(Kind kind, absl::string_view text,
                                            absl::string_view option);

  bool Matches(absl::string_view name) const;

  const std::string& text() const { return text_; }
  // The size of its regular expression in RE2's instructions, each some 250 bytes; 0 if it has
  // none.
  int program_size() const { return regex_ == nullptr ? 0 : regex_->ProgramSize(); }

 private:
  Kind kind_ = Kind::kPrefix;
  std::string text_;
  std::string literal_;
  // Null if the text has no special character of regular expressions, except escaped ones and a $
  // at its end: then `literal_` is compared, which is ten times faster and takes no RE2 memory.
  // Scopes are nearly always plain, and lists made by scripts are escaped names.
  std::shared_ptr<const RE2> regex_;
};

// The maximum number of patterns in one option (a script may name every op of a backward part), and
// of those that are regular expressions, not escaped names; and the maximum size of these together,
// in RE2's instructions. TFLMS users give a handful.
inline constexpr size_t kMaxPatterns = 10'000;
inline constexpr int kMaxRegexes = 100;
inline constexpr int kMaxProgramSize = 20'000;

// Returns one pattern per text. Errors: those of Create; INVALID_ARGUMENT (LIMIT_EXCEEDED) above
// these limits; those of `stop`.
absl::StatusOr<std::vector<NamePattern>> CreatePatterns(NamePattern::Kind kind,
                                                        const std::vector<std::string>& texts,
                                                        absl::string_view option,
                                                        const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_NAME_PATTERN_H_
