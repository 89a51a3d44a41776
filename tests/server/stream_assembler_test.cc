#include "server/stream_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "rewrite_core/base/error.h"
#include "server/sha256.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

using testing::HasSubstr;
using Messages = std::vector<v1::StreamRewriteRequest>;

v1::Limits SmallLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(100);
  limits.set_max_chunk_bytes(10);
  return limits;
}

// Sends `messages`, then the end; the first error.
absl::Status Feed(StreamAssembler& assembler, Messages messages) {
  for (v1::StreamRewriteRequest& message : messages) {
    if (absl::Status status = assembler.Add(message); !status.ok()) return status;
  }
  if (absl::Status status = assembler.FinishUpload(); !status.ok()) return status;
  return assembler.VerifyDigest(core::StopToken());
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
  EXPECT_TRUE(Feed(assembler, {HeaderMessage(21, DigestOf(graph)), ChunkMessage("0123456789"),
                               ChunkMessage("abcdefghij"), ChunkMessage("!")})
                  .ok());
  EXPECT_EQ(assembler.graph(), graph);
  EXPECT_EQ(assembler.total_size_bytes(), 21);
  EXPECT_EQ(assembler.options().scope().optimizer_scopes(0), "adam_optimizer");
  assembler.ReleaseGraph();
  EXPECT_EQ(assembler.capacity_bytes(), 0u);
}

TEST(StreamAssemblerTest, DigestIsOptional) {
  StreamAssembler assembler(SmallLimits());
  EXPECT_TRUE(Feed(assembler, {HeaderMessage(1), ChunkMessage("a")}).ok());
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

TEST(Sha256Test, KnownAnswersAndStop) {
  // FIPS 180-2, appendix B.1; and the digest of nothing.
  EXPECT_EQ(absl::BytesToHexString(DigestOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(absl::BytesToHexString(DigestOf("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // More than one stride.
  const std::string large(5 << 20, 'a');
  const core::StopToken stop = core::StopToken::AfterStepsForTest(1);
  EXPECT_EQ(Sha256(large, stop).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(absl::BytesToHexString(DigestOf(large)),
            absl::BytesToHexString(Sha256(large, core::StopToken()).value()));
}

}  // namespace
}  // namespace spillway::server
