// A contiguous buffer for bytes that arrive piece by piece.
//
// Unlike a std::string it grows with realloc, which on Linux moves large blocks by remapping their
// pages: a graph of 2 GiB never exists twice, not even while it grows.
//
// Not thread-safe. Append may throw std::bad_alloc.
#ifndef SPILLWAY_SERVER_CALLS_GROWING_BUFFER_H_
#define SPILLWAY_SERVER_CALLS_GROWING_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"

namespace spillway::server {

class GrowingBuffer {
 public:
  // Appends `bytes`. `expected_size` is the announced total: capacity doubles up to it and not
  // beyond, so it is never more than twice what has actually arrived (or kFirstBytes), whatever was
  // announced.
  void Append(absl::string_view bytes, size_t expected_size);

  // Frees the memory.
  void Clear();

  absl::string_view view() const { return absl::string_view(data_.get(), size_); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  // The first allocation, if at least as much is announced: one chunk as clients send them.
  static constexpr size_t kFirstBytes = 64 << 10;

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_GROWING_BUFFER_H_
