// The one function through which text from outside (other programs, files' names, the environment,
// traces, servers) passes on its way to a terminal. Pure; it needs the standard library alone, for
// the TensorFlow plug-in.
#ifndef SPILLWAY_REWRITE_CORE_BASE_PLAIN_TEXT_H_
#define SPILLWAY_REWRITE_CORE_BASE_PLAIN_TEXT_H_

#include <string>

namespace spillway::core {

// `text` in one line of plain ASCII: every other byte becomes an escape as in C, `\n` or `\x1b`.
// Plain text stays unchanged, so it may pass twice. `Text`: a string or view, which the standard
// library and Abseil each have.
template <typename Text>
std::string PlainText(const Text& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string plain;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      plain += c;
    } else {
      plain += c == '\n' ? std::string("\\n")
                         : std::string("\\x") + kDigits[byte / 16] + kDigits[byte % 16];
    }
  }
  return plain;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_PLAIN_TEXT_H_
