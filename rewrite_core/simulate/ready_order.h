// The order in which a GPU takes ready operations. TensorFlow guarantees none: its executor runs
// any ready operation, on several threads. A plan that fits in one order may not fit in another, so
// it can be simulated in several.
//
// Thread safety: plain values.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_READY_ORDER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_READY_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rewrite_core/analysis/machine/gpu_index.h"

namespace spillway::core {

// Which of a GPU's queue of compute operations is next. Those that become ready in one round join
// the queue in order of ids (simulator.h). The one taken stays the head until it is launched, or
// started.
enum class ReadyOrder : uint8_t {
  kFirstReady,  // The first that joined.
  kLastReady,   // The last that joined: a stack, with the highest id of a round on top.
  kMixed,       // Number ReadyDraws::Next(count) of `count`; the last takes its place in the queue.
};

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the same
// on every machine and library. Another number for each state.
inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;
inline uint64_t SplitMix(uint64_t state) {
  uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// By these operations that become ready in one round join their queues, instead of by ids, if the
// nodes are in another order in the file: one for each seed. REQUIRES: seed > 0.
inline uint64_t ShuffledRank(uint32_t seed, int64_t rank) {
  return SplitMix((uint64_t{seed} << 32) + static_cast<uint64_t>(rank) * kSplitMixStep);
}

// The random draws of kMixed, separate for each GPU.
class ReadyDraws {
 public:
  ReadyDraws() = default;
  ReadyDraws(uint32_t seed, GpuIndex device)
      : state_((uint64_t{seed} << 32) + static_cast<uint32_t>(device)) {}

  // Returns a number from 0 to `count` - 1. REQUIRES: count > 0.
  size_t Next(size_t count) {
    state_ += kSplitMixStep;
    return static_cast<size_t>(SplitMix(state_) % count);
  }

 private:
  uint64_t state_ = 0;
};

// How the initializers of a device's variables run (simulator.h): the order, then how many at once.
class InitializerDraws {
 public:
  static constexpr size_t kMaxAtOnce = 8;

  InitializerDraws(uint32_t seed, GpuIndex device) : draws_(seed, device) {}

  // The Fisher-Yates shuffle, from the end.
  template <typename T>
  void Shuffle(std::vector<T>* list) {
    for (size_t i = list->size(); i > 1; --i) std::swap((*list)[i - 1], (*list)[draws_.Next(i)]);
  }
  size_t NumAtOnce() { return 1 + draws_.Next(kMaxAtOnce); }

 private:
  ReadyDraws draws_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_READY_ORDER_H_
