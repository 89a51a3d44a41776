// Sizes, durations and counts as text, the same in every program, message and picture. The grammar
// of sizes is shared, too: its cases are in tests/testing/sizes.txt, which the test of every entry
// point reads.
#ifndef SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
#define SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace spillway::core {

inline constexpr int64_t kBytesPerMib = int64_t{1} << 20;

// `14.86 GiB`, `944.01 MiB`, `512 B`: in the largest binary unit, up to TiB, that gives at least 1.
std::string BytesText(int64_t bytes);

// `12.5 s`, `904 ms`, `12.3 ms`, `0.45 ms`, `1.5 us`, `12 ns`: in ms from 10 us to below 10 s.
std::string DurationText(absl::Duration duration);

// `1 tensor`, `2 tensors`: `noun` takes a plural s.
std::string CountText(int64_t count, absl::string_view noun);

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
