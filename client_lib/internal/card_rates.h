// The rates of cards without a preset, which nvidia-smi does not report.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CARD_RATES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CARD_RATES_H_

#include "absl/strings/string_view.h"

namespace spillway::internal {

struct CardRates {
  double peak_flops = 0;       // As Hardware.peak_flops.
  double mem_bytes_per_s = 0;  // As Hardware.mem_bytes_per_s.
};

// The name of a card without `NVIDIA` or `Tesla` in front, which drivers add or omit depending on
// their version.
absl::string_view CardName(absl::string_view name);

// Returns those of the card of exactly this name (nvidia-smi's), or zeros: not known.
CardRates RatesOfCard(absl::string_view name);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CARD_RATES_H_
