// Random numbers that are the same on every machine and library: a seed names a test case.
#ifndef SPILLWAY_TESTS_TESTING_RANDOM_H_
#define SPILLWAY_TESTS_TESTING_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace spillway::testing {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // From 0 to `bound` - 1. REQUIRES: bound > 0.
  int Below(int bound) { return static_cast<int>(Next() % static_cast<uint64_t>(bound)); }
  // From `low` to `high`, both possible.
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(static_cast<int>(items.size()))];
  }
  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i > 1; --i) {
      std::swap((*items)[i - 1], (*items)[Below(static_cast<int>(i))]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RANDOM_H_
