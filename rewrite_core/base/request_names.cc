#include "rewrite_core/base/request_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace spillway::core {
namespace {

// The positions of the parts of a version 00 traceparent.
constexpr size_t kTraceBegin = 3, kTraceDigits = 32;
constexpr size_t kParentBegin = 36, kParentDigits = 16;
constexpr size_t kFlagsBegin = 53;
constexpr size_t kTraceparentBytes = 55;

bool IsPlain(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxRequestNameBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isgraph(c) && c != '"' && c != '\\';
         });
}

bool AreZeros(absl::string_view digits) {
  return digits.find_first_not_of('0') == absl::string_view::npos;
}

}  // namespace

bool IsRequestId(absl::string_view text) { return IsPlain(text); }

bool IsTraceparent(absl::string_view text) {
  if (!IsPlain(text) || text.size() < kTraceparentBytes) return false;
  for (size_t i = 0; i < kTraceparentBytes; ++i) {
    const bool is_dash = i == kTraceBegin - 1 || i == kParentBegin - 1 || i == kFlagsBegin - 1;
    const bool is_digit = absl::ascii_isdigit(text[i]) || (text[i] >= 'a' && text[i] <= 'f');
    if (is_dash ? text[i] != '-' : !is_digit) return false;
  }
  const absl::string_view version = text.substr(0, kTraceBegin - 1);
  if (version == "ff") return false;
  if (text.size() > kTraceparentBytes && (version == "00" || text[kTraceparentBytes] != '-')) {
    return false;
  }
  return !AreZeros(text.substr(kTraceBegin, kTraceDigits)) &&
         !AreZeros(text.substr(kParentBegin, kParentDigits));
}

}  // namespace spillway::core
