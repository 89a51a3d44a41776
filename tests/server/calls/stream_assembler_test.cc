#include "server/calls/stream_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rewrite_core/base/error.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Messages = std::vector<v1::StreamRewriteRequest>;

v1::Limits SmallLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(100);
  limits.set_max_chunk_bytes(10);
  return limits;
}

// Sends `messages`, then the end; returns the first error.
template <typename Request>
absl::Status Feed(StreamAssembler& assembler, const std::vector<Request>& messages) {
  for (const Request& message : messages) {
    if (absl::Status status = assembler.Add(message); !status.ok()) return status;
  }
  if (absl::Status status = assembler.FinishUpload(); !status.ok()) return status;
  return assembler.VerifyGraphs(core::StopToken());
}

struct BadCase {
  const char* name;
  Messages messages;
  v1::ErrorReason reason;
  const char* words;  // In the message.
};

class BadStreamTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadStreamTest, IsRefused) {
  StreamAssembler assembler(SmallLimits());
  const absl::Status status = Feed(assembler, GetParam().messages);
  EXPECT_EQ(core::GetErrorReason(status), GetParam().reason) << status;
  EXPECT_EQ(status.code(), GetParam().reason == v1::ERROR_REASON_BAD_STREAM
                               ? absl::StatusCode::kInvalidArgument
                               : absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

constexpr v1::ErrorReason kBad = v1::ERROR_REASON_BAD_STREAM;
constexpr v1::ErrorReason kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;
// The check value for "123456789" from the catalogue of CRC algorithms.
constexpr uint32_t kChecksumOfDigits = 0xe3069283;

v1::StreamRewriteRequest ChecksumMessage(int64_t size, uint32_t crc32c) {
  v1::StreamRewriteRequest message = HeaderMessage(size);
  message.mutable_header()->mutable_graph()->set_crc32c(crc32c);
  return message;
}

const std::string kDigestOfOther = DigestOf("other");

INSTANTIATE_TEST_SUITE_P(
    All, BadStreamTest,
    testing::Values(
        BadCase{"Nothing", {}, kBad, "without a header"},
        BadCase{"ChunkFirst", {ChunkMessage("a")}, kBad, "starts with a chunk"},
        BadCase{"EmptyMessage", {v1::StreamRewriteRequest()}, kBad, "neither"},
        BadCase{"EmptyMessageLater",
                {HeaderMessage(2), ChunkMessage("a"), v1::StreamRewriteRequest()},
                kBad,
                "neither"},
        BadCase{"SecondHeader", {HeaderMessage(2), HeaderMessage(2)}, kBad, "second header"},
        BadCase{"HeaderAfterAll",
                {HeaderMessage(1), ChunkMessage("a"), HeaderMessage(1)},
                kBad,
                "second header"},
        BadCase{"ZeroSize", {HeaderMessage(0)}, kBad, "total_size_bytes is 0"},
        BadCase{"NegativeSize", {HeaderMessage(-1)}, kBad, "total_size_bytes is -1"},
        BadCase{"SizeAboveLimit", {HeaderMessage(101)}, kLimit, "at most 100"},
        BadCase{"HugeSize", {HeaderMessage(INT64_MAX)}, kLimit, "at most 100"},
        BadCase{"ShortDigest", {HeaderMessage(1, "abc")}, kBad, "sha256 has 3 bytes"},
        BadCase{"WrongDigest",
                {HeaderMessage(1, kDigestOfOther), ChunkMessage("a")},
                kBad,
                "another SHA-256"},
        BadCase{"WrongChecksum",
                {ChecksumMessage(9, 0xe3069282), ChunkMessage("123456789")},
                kBad,
                "another CRC-32C"},
        BadCase{"ZeroChecksum",
                {ChecksumMessage(9, 0), ChunkMessage("123456789")},
                kBad,
                "another CRC-32C"},
        BadCase{"EmptyChunk", {HeaderMessage(1), ChunkMessage("")}, kBad, "chunk is empty"},
        BadCase{"ChunkAboveLimit",
                {HeaderMessage(50), ChunkMessage("12345678901")},
                kLimit,
                "a chunk has 11 bytes"},
        BadCase{"TooManyBytes", {HeaderMessage(3), ChunkMessage("1234")}, kBad, "more bytes"},
        BadCase{"TooManyBytesLater",
                {HeaderMessage(3), ChunkMessage("123"), ChunkMessage("4")},
                kBad,
                "more bytes"},
        BadCase{"NoChunks", {HeaderMessage(3)}, kBad, "after 0 of the 3"},
        BadCase{"TooFewBytes", {HeaderMessage(3), ChunkMessage("12")}, kBad, "after 2 of the 3"}),
    [](const testing::TestParamInfo<BadCase>& bad) { return bad.param.name; });

TEST(StreamAssemblerTest, PutsTheChunksTogether) {
  StreamAssembler assembler(SmallLimits());
  const std::string graph = "0123456789abcdefghij!";
  EXPECT_TRUE(
      Feed(assembler, Messages{HeaderMessage(21, DigestOf(graph)), ChunkMessage("0123456789"),
                               ChunkMessage("abcdefghij"), ChunkMessage("!")})
          .ok());
  EXPECT_THAT(assembler.graphs(), ElementsAre(graph));
  EXPECT_EQ(assembler.total_size_bytes(), 21);
  assembler.ReleaseGraphs();
  EXPECT_EQ(assembler.capacity_bytes(), 0u);
}

TEST(StreamAssemblerTest, ChecksumIsOptional) {
  StreamAssembler assembler(SmallLimits());
  EXPECT_TRUE(
      Feed(assembler, Messages{ChecksumMessage(9, kChecksumOfDigits), ChunkMessage("123456789")})
          .ok());
}

using DiffMessages = std::vector<v1::DiffRequest>;

v1::DiffRequest DiffMessage(const std::string& a, const std::string& b) {
  v1::DiffRequest message;
  message.mutable_header()->mutable_graph_a()->set_total_size_bytes(a.size());
  message.mutable_header()->mutable_graph_a()->set_sha256(DigestOf(a));
  message.mutable_header()->mutable_graph_b()->set_total_size_bytes(b.size());
  message.mutable_header()->mutable_graph_b()->set_sha256(DigestOf(b));
  return message;
}

v1::DiffRequest DiffChunk(const std::string& bytes) {
  v1::DiffRequest message;
  message.set_chunk(bytes);
  return message;
}

TEST(StreamAssemblerTest, TwoGraphsFollowEachOther) {
  StreamAssembler assembler(SmallLimits());
  const DiffMessages messages = {DiffMessage("abcd", "xyz"), DiffChunk("abc"), DiffChunk("d"),
                                 DiffChunk("x"), DiffChunk("yz")};
  EXPECT_TRUE(Feed(assembler, messages).ok());
  EXPECT_THAT(assembler.graphs(), ElementsAre("abcd", "xyz"));
  EXPECT_EQ(assembler.total_size_bytes(), 7);
}

TEST(StreamAssemblerTest, OfTwoGraphsAnErrorSaysWhich) {
  const v1::DiffRequest header = DiffMessage("ab", "xyz");
  v1::DiffRequest no_b = header, large_a = header, short_b = header;
  no_b.mutable_header()->clear_graph_b();
  large_a.mutable_header()->mutable_graph_a()->set_total_size_bytes(101);
  short_b.mutable_header()->mutable_graph_b()->set_sha256("abc");
  struct Case {
    DiffMessages messages;
    v1::ErrorReason reason;
    const char* words;
  };
  const Case cases[] = {
      {{no_b}, kBad, "graph B: total_size_bytes is 0"},
      {{large_a}, kLimit, "graph A: the graph has 101 bytes"},
      {{short_b}, kBad, "graph B: sha256 has 3 bytes"},
      // A chunk belongs to one graph.
      {{header, DiffChunk("abxyz")}, kBad, "graph A: more bytes arrived than the 2 announced"},
      {{header, DiffChunk("a"), DiffChunk("bx")}, kBad, "begin the next graph in another"},
      {{header, DiffChunk("ab"), DiffChunk("xyz!")}, kBad, "graph B: more bytes arrived"},
      {{header, DiffChunk("ab"), DiffChunk("xyz"), DiffChunk("!")}, kBad, "graph B: more bytes"},
      {{header, DiffChunk("a")}, kBad, "graph A: the stream ended after 1 of the 2"},
      {{header, DiffChunk("ab"), DiffChunk("x")},
       kBad,
       "graph B: the stream ended after 1 of the 3"},
      {{header, DiffChunk("ab"), DiffChunk("xyY")}, kBad, "graph B: the graph that arrived has"},
  };
  for (const Case& bad : cases) {
    StreamAssembler assembler(SmallLimits());
    const absl::Status status = Feed(assembler, bad.messages);
    EXPECT_EQ(core::GetErrorReason(status), bad.reason) << bad.words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.words));
  }
}

TEST(StreamAssemblerTest, DigestIsOptional) {
  StreamAssembler assembler(SmallLimits());
  EXPECT_TRUE(Feed(assembler, Messages{HeaderMessage(1), ChunkMessage("a")}).ok());
}

TEST(StreamAssemblerTest, LimitsThemselvesAreAllowed) {
  StreamAssembler assembler(SmallLimits());
  Messages messages = {HeaderMessage(100)};
  for (int i = 0; i < 10; ++i) messages.push_back(ChunkMessage("1234567890"));
  EXPECT_TRUE(Feed(assembler, messages).ok());
}

TEST(StreamAssemblerTest, LyingSizeReservesNothing) {
  v1::Limits limits = SmallLimits();
  limits.set_max_graph_bytes(INT32_MAX);
  StreamAssembler assembler(limits);
  v1::StreamRewriteRequest header = HeaderMessage(INT32_MAX);
  ASSERT_TRUE(assembler.Add(header).ok());
  EXPECT_EQ(assembler.capacity_bytes(), 0u);
  v1::StreamRewriteRequest chunk = ChunkMessage("a");
  ASSERT_TRUE(assembler.Add(chunk).ok());
  EXPECT_LE(assembler.capacity_bytes(), size_t{64} << 10);
}

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
