#include "server/calls/growing_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace spillway::server {

void GrowingBuffer::Append(absl::string_view bytes, size_t expected_size) {
  const size_t needed = size_ + bytes.size();
  if (needed > capacity_) {
    const size_t doubled = std::max({kFirstBytes, 2 * capacity_, needed});
    const size_t capacity = std::max(needed, std::min(doubled, expected_size));
    char* grown = static_cast<char*>(std::realloc(data_.get(), capacity));
    if (grown == nullptr) throw std::bad_alloc();
    (void)data_.release();  // realloc has freed it.
    data_.reset(grown);
    capacity_ = capacity;
  }
  if (!bytes.empty()) std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ = needed;
}

void GrowingBuffer::Clear() {
  data_.reset();
  size_ = capacity_ = 0;
}

}  // namespace spillway::server
