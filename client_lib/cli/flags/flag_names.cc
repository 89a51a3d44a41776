#include "client_lib/cli/flags/flag_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/flags/option_table.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/plain_text.h"

namespace spillway::cli {
namespace {

bool IsInWord(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// Returns the flag that `word` stands for, or "". `is_advised`: the word is in "give sizes from 1".
std::string FlagFor(absl::string_view word, const std::vector<std::string>& options,
                    bool is_advised) {
  absl::string_view field = word;
  const bool has_front = absl::ConsumePrefix(&field, "hardware.") ||
                         absl::ConsumePrefix(&field, "step.") ||
                         absl::ConsumePrefix(&field, "budget.");
  const auto flag = FlagsByField().find(field);
  if (flag == FlagsByField().end()) return "";
  const bool is_plain = !has_front && !absl::StrContains(field, '_');
  if (is_plain &&
      (is_advised || std::find(options.begin(), options.end(), word) == options.end())) {
    return "";
  }
  return flag->second;
}

// After a field, turns an enum's value, ` = REPLAN`, into ` replan`. Returns the number of
// characters consumed.
size_t TakeEnumValue(absl::string_view rest, std::string* out) {
  const size_t begin = rest.size();
  if (!absl::ConsumePrefix(&rest, " = ")) return 0;
  size_t end = 0;
  while (end < rest.size() && (absl::ascii_isupper(rest[end]) || rest[end] == '_')) ++end;
  if (end == 0) return 0;
  absl::StrAppend(out, " ", absl::AsciiStrToLower(rest.substr(0, end)));
  return begin - rest.size() + end;
}

}  // namespace

std::string InFlags(absl::string_view text, const std::vector<std::string>& options) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : ' ';
    // An apostrophe follows a letter; an escaped quote does not end the quoted text.
    const bool is_quote = c == '\'' && (quoted ? before != '\\' : !absl::ascii_isalnum(before));
    if (is_quote) quoted = !quoted;
    if (quoted || !IsInWord(c) || IsInWord(before) || before == '-' || before == '/') {
      out += c;
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsInWord(text[end])) ++end;
    while (text[end - 1] == '.' && end > i + 1) --end;  // A full stop.
    const std::string flag =
        FlagFor(text.substr(i, end - i), options, absl::EndsWith(text.substr(0, i), "give "));
    if (flag.empty()) {
      absl::StrAppend(&out, text.substr(i, end - i));
      i = end;
    } else {
      out += flag;
      i = end + TakeEnumValue(text.substr(end), &out);
    }
  }
  return out;
}

std::string MessageInFlags(const absl::Status& status) {
  std::vector<std::string> options;
  const v1::ErrorInfo info = core::GetErrorInfo(status);
  for (const char* key : {"option", "other_option"}) {
    const auto found = info.metadata().find(key);
    if (found != info.metadata().end()) options.push_back(found->second);
  }
  return InFlags(status.message(), options);
}

std::string ErrorText(const absl::Status& status) {
  std::string reason = IsFileError(status) ? "FILE" : core::GetErrorInfo(status).reason();
  if (reason.empty()) reason = absl::StatusCodeToString(status.code());
  return core::PlainText(absl::StrCat(MessageInFlags(status), " [", reason, "]"));
}

}  // namespace spillway::cli
