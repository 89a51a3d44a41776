// Sizes in bytes as text. All our programs share one grammar: its cases are in
// tests/testing/sizes.txt, which the test of every entry point reads.
#ifndef SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
#define SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// `14.86 GiB`, `944.01 MiB`, `512 bytes`: in the largest binary unit that gives at least 1.
std::string BytesText(int64_t bytes);

// `1536`, `1.5GiB`, `16 GB`: a number of bytes, plain or with a unit, in upper or lower case: B;
// kB, MB, GB, TB, of 1000; KiB, MiB, GiB, TiB, of 1024. A fraction of a byte is dropped. Returns
// nullopt for other text, below 0 and above 63 bits; a bare K, M, G or T is rejected as ambiguous.
absl::optional<int64_t> ParseBytes(absl::string_view text);

// For errors about text that does not parse.
inline constexpr char kByteGrammar[] =
    "a number of bytes, plain or with a unit: kB, MB, GB, TB (of 1000), KiB, MiB, GiB, TiB (of "
    "1024)";

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
