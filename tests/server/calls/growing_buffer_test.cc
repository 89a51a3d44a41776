#include "server/calls/growing_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::server {
namespace {

TEST(GrowingBufferTest, KeepsTheBytesInOrder) {
  GrowingBuffer buffer;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece(i % 700, static_cast<char>(i));
    expected += piece;
    buffer.Append(piece, 1 << 20);
  }
  EXPECT_EQ(buffer.view(), expected);
}

TEST(GrowingBufferTest, AnnouncedSizeAloneReservesNothing) {
  GrowingBuffer buffer;
  EXPECT_EQ(buffer.capacity(), 0u);
  constexpr size_t kAnnounced = size_t{2} << 30;
  buffer.Append("x", kAnnounced);
  EXPECT_EQ(buffer.capacity(), GrowingBuffer::kFirstBytes);
  const std::string piece(100'000, 'y');
  for (int i = 0; i < 50; ++i) {
    buffer.Append(piece, kAnnounced);
    EXPECT_LE(buffer.capacity(), 2 * buffer.size()) << "after " << i;
  }
}

TEST(GrowingBufferTest, EndsWithTheExactSizeWhenTheAnnouncementIsRight) {
  GrowingBuffer buffer;
  constexpr size_t kTotal = 1'000'003;
  for (size_t at = 0; at < kTotal; at += 65536) {
    buffer.Append(std::string(std::min<size_t>(65536, kTotal - at), 'z'), kTotal);
  }
  EXPECT_EQ(buffer.size(), kTotal);
  EXPECT_EQ(buffer.capacity(), kTotal);
  buffer.Clear();
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.capacity(), 0u);
}

}  // namespace
}  // namespace spillway::server
