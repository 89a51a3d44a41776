// Decisions read from a fuzzer's bytes: each takes a byte or two from the front, so that a small
// change of the bytes is a small change of the result. Behind the last byte, all are 0. (clang's
// FuzzedDataProvider does the same, but comes with clang alone, and a replay has to work without
// it.)
#ifndef SPILLWAY_TESTS_FUZZ_CHOICES_H_
#define SPILLWAY_TESTS_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>

namespace spillway::testing {

class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool done() const { return at_ == size_; }
  int Byte() { return done() ? 0 : data_[at_++]; }
  int TwoBytes() {
    const int high = Byte();
    return high << 8 | Byte();
  }
  // From 0 to `bound` - 1. REQUIRES: 0 < bound <= 65536.
  int Below(int bound) { return (bound <= 256 ? Byte() : TwoBytes()) % bound; }
  // True for one byte of `n`; never behind the last byte.
  bool OneIn(int n) { return Below(n) == n - 1; }
  template <typename List>
  const auto& Pick(const List& items) {
    return items[Below(static_cast<int>(items.size()))];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_CHOICES_H_
