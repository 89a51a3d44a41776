// Sizes in bytes, for people. One grammar for every program of ours: tests/testing/sizes.txt holds
// it, and every test of a door reads that.
#ifndef SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
#define SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// `14.86 GiB`, `944.01 MiB`, `512 bytes`: in the largest binary unit of which there is one.
std::string BytesText(int64_t bytes);

// `1536`, `1.5GiB`, `16 GB`: a number of bytes, plain or with a unit, in upper or lower case: B;
// kB, MB, GB, TB, of 1000; KiB, MiB, GiB, TiB, of 1024. A fraction of a byte is dropped. Nothing
// for what is none, below 0 or above 63 bits; a bare K, M, G or T is none, since people mean both.
absl::optional<int64_t> ParseBytes(absl::string_view text);

// What an error says of a text that is none.
inline constexpr char kByteGrammar[] =
    "a number of bytes, plain or with a unit: kB, MB, GB, TB (of 1000), KiB, MiB, GiB, TiB (of "
    "1024)";

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
