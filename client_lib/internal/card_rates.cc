#include "client_lib/internal/card_rates.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace spillway::internal {
namespace {

// TensorFlow multiplies float32 in TensorFloat-32 from Ampere on, without sparsity; before, in
// plain float32. Operations per core and cycle: two, for a multiply-add; tensor cores do as many on
// GeForce cards, whose rate with sums in float32 NVIDIA halves, twice as many on cards for
// workstations, and more on those for servers.
constexpr double kMultiplyAdd = 2;
constexpr double kWorkstation = 4;
constexpr double kAmpereServer = 16, kHopperServer = 14;

// Cores, boost clock in MHz, and memory in GB/s, by the tables of the architectures' papers:
//   Pascal     NVIDIA GeForce GTX 1080 whitepaper; data sheets of P4 and P40
//   Volta      data sheet of the V100S; TITAN V, nvidia.com/en-us/titan/titan-v
//   Turing     NVIDIA Turing GPU Architecture, appendices A to C
//   Ampere     NVIDIA Ampere GA102 GPU Architecture, tables 2 and 9 and appendix A; data sheets of
//              A10G (Amazon EC2 G5), A30 and A40
//   Ada        NVIDIA Ada GPU Architecture, appendices A and B; data sheet of the L40
//   Hopper     data sheet of the H100 NVL
//   Blackwell  NVIDIA RTX Blackwell GPU Architecture, appendix A
// Boost clocks are those of NVIDIA's own cards; others' differ by some percent.
struct Card {
  absl::string_view name;
  int cores, boost_mhz;
  double memory_gb_per_s;
  double operations = kMultiplyAdd;
};
constexpr Card kCards[] = {
    {"GeForce GTX 1080", 2560, 1733, 320},
    {"GeForce GTX 1080 Ti", 3584, 1582, 484},
    {"TITAN Xp", 3840, 1582, 547.7},
    {"P4", 2560, 1063, 192},
    {"P40", 3840, 1531, 346},
    {"TITAN V", 5120, 1455, 652.8},
    {"V100S-PCIE-32GB", 5120, 1597, 1134},
    {"GeForce RTX 2060", 1920, 1680, 336},
    {"GeForce RTX 2070", 2304, 1620, 448},
    {"GeForce RTX 2070 SUPER", 2560, 1770, 448},
    {"GeForce RTX 2080", 2944, 1710, 448},
    {"GeForce RTX 2080 SUPER", 3072, 1815, 496},
    {"GeForce RTX 2080 Ti", 4352, 1545, 616},
    {"TITAN RTX", 4608, 1770, 672},
    {"Quadro RTX 5000", 3072, 1815, 448},
    {"Quadro RTX 6000", 4608, 1770, 672},
    {"Quadro RTX 8000", 4608, 1770, 672},
    {"GeForce RTX 3050", 2560, 1777, 224},
    {"GeForce RTX 3060", 3584, 1777, 360},
    {"GeForce RTX 3060 Ti", 4864, 1665, 448},
    {"GeForce RTX 3070", 5888, 1725, 448},
    {"GeForce RTX 3070 Ti", 6144, 1770, 608},
    {"GeForce RTX 3080", 8704, 1710, 760},
    {"GeForce RTX 3080 Ti", 10240, 1665, 912},
    {"GeForce RTX 3090", 10496, 1695, 936},
    {"GeForce RTX 3090 Ti", 10752, 1860, 1008},
    {"RTX A4000", 6144, 1560, 448, kWorkstation},
    {"RTX A5000", 8192, 1695, 768, kWorkstation},
    {"RTX A6000", 10752, 1800, 768, kWorkstation},
    {"A10G", 9216, 1710, 600},
    {"A30", 3584, 1440, 933, kAmpereServer},
    {"A40", 10752, 1740, 696, kWorkstation},
    {"GeForce RTX 4060", 3072, 2460, 272},
    {"GeForce RTX 4060 Ti", 4352, 2535, 288},
    {"GeForce RTX 4070", 5888, 2475, 504},
    {"GeForce RTX 4070 SUPER", 7168, 2475, 504},
    {"GeForce RTX 4070 Ti", 7680, 2610, 504},
    {"GeForce RTX 4070 Ti SUPER", 8448, 2610, 672},
    {"GeForce RTX 4080", 9728, 2505, 717},
    {"GeForce RTX 4080 SUPER", 10240, 2550, 736},
    {"GeForce RTX 4090", 16384, 2520, 1008},
    {"RTX 6000 Ada Generation", 18176, 2505, 960, kWorkstation},
    {"L40", 18176, 2490, 864},
    {"H100 NVL", 16896, 1785, 3938, kHopperServer},
    {"GeForce RTX 5070", 6144, 2512, 672},
    {"GeForce RTX 5070 Ti", 8960, 2452, 896},
    {"GeForce RTX 5080", 10752, 2617, 960},
    {"GeForce RTX 5090", 21760, 2407, 1792},
};

}  // namespace

absl::string_view CardName(absl::string_view name) {
  absl::ConsumePrefix(&name, "NVIDIA ");
  absl::ConsumePrefix(&name, "Tesla ");
  return name;
}

CardRates RatesOfCard(absl::string_view name) {
  for (const Card& card : kCards) {
    if (!absl::EqualsIgnoreCase(card.name, CardName(name))) continue;
    return {card.operations * card.cores * card.boost_mhz * 1e6, card.memory_gb_per_s * 1e9};
  }
  return {};
}

}  // namespace spillway::internal
