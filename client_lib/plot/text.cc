#include "client_lib/plot/text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace spillway::plot {
namespace {

constexpr char kEllipsis[] = "\xe2\x80\xa6";
constexpr size_t kEllipsisBytes = 3;
// A name of megabytes is truncated before it is examined.
constexpr size_t kMaxBytes = 1 << 14;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Returns the length of the character at the start of `text` if XML 1.0 can show it, otherwise 0.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    const bool is_space = text[0] == '\t' || text[0] == '\n' || text[0] == '\r';
    return (byte(0) >= 0x20 && byte(0) != 0x7f) || is_space ? 1 : 0;
  }
  const size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 0;
  if (size == 0 || text.size() < size || byte(0) > 0xf4) return 0;
  uint32_t code = byte(0) & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size] || code > 0x10ffff || is_surrogate) return 0;
  // Invisible control characters, and characters that XML does not allow.
  if (code < 0xa0 || code == 0xfffe || code == 0xffff) return 0;
  // Marks that change the direction of text: the rest of the line would be displayed backwards.
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return 0;
  return size;
}

}  // namespace

std::string Clean(absl::string_view text) {
  text = text.substr(0, kMaxBytes);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    if (size == 0) {
      out += '?';
    } else {
      out.append(text.data(), size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      Clean(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Shortened(absl::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  const size_t kept = width > kEllipsisBytes ? width - kEllipsisBytes : 0;
  // The end of a name is more informative than its scopes.
  size_t front = kept / 3, back = text.size() - (kept - kept / 3);
  while (front > 0 && IsContinuation(text[front])) --front;
  while (back < text.size() && IsContinuation(text[back])) ++back;
  return absl::StrCat(text.substr(0, front), kEllipsis, text.substr(back));
}

std::string FirstLine(absl::string_view* text, size_t width) {
  if (text->size() <= width) {
    std::string line(*text);
    text->remove_prefix(text->size());
    return line;
  }
  size_t end = text->rfind(' ', width);
  if (end == absl::string_view::npos || end == 0) end = std::min(text->find(' '), text->size());
  std::string line = Shortened(text->substr(0, end), width);
  text->remove_prefix(std::min(text->size(), end + 1));
  return line;
}

std::string GpuName(absl::string_view device) {
  return device.empty() ? "GPU" : std::string(device);
}

}  // namespace spillway::plot
