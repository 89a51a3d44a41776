#include "rewrite_core/base/error.h"

#include <string>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spillway::core {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(ErrorTest, CarriesCodeMessageReasonAndDetails) {
  const absl::Status status =
      Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED, "too many",
            {{"limit", "max_node_count"}, {"value", "7"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "too many");
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_LIMIT_EXCEEDED);
  const v1::ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.reason(), "LIMIT_EXCEEDED");  // Without its prefix, as on the wire.
  EXPECT_EQ(info.domain(), "spillway.v1");
  EXPECT_THAT(info.metadata(),
              UnorderedElementsAre(Pair("limit", "max_node_count"), Pair("value", "7")));
}

TEST(ErrorTest, ThePayloadIsAGoogleRpcErrorInfo) {
  const absl::Status status = InvalidError(v1::ERROR_REASON_CYCLE, "a cycle");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo");
  ASSERT_TRUE(payload);
  v1::ErrorInfo info;
  EXPECT_TRUE(info.ParseFromString(std::string(*payload)));
  EXPECT_EQ(info.reason(), "CYCLE");
}

TEST(ErrorTest, OtherStatusesHaveNoReason) {
  EXPECT_EQ(GetErrorReason(absl::OkStatus()), v1::ERROR_REASON_UNSPECIFIED);
  EXPECT_EQ(GetErrorReason(absl::InternalError("x")), v1::ERROR_REASON_UNSPECIFIED);
  absl::Status odd = absl::InternalError("x");
  odd.SetPayload(kErrorInfoTypeUrl, absl::Cord("\xff\xff no message"));
  EXPECT_EQ(GetErrorReason(odd), v1::ERROR_REASON_UNSPECIFIED);
  v1::ErrorInfo info;
  info.set_reason("SOMETHING_NEWER");
  odd.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  EXPECT_EQ(GetErrorReason(odd), v1::ERROR_REASON_UNSPECIFIED);
}

TEST(ErrorTest, QuotedIsFitForALogLine) {
  EXPECT_EQ(Quoted("conv1/kernel"), "'conv1/kernel'");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a\nb\t\"'"), "'a\\nb\\t\\\"\\''");
  EXPECT_EQ(Quoted(std::string("\0\xff", 2)), "'\\x00\\xff'");
  EXPECT_EQ(Quoted("\xc3\xa9"), "'\\xc3\\xa9'");  // Not UTF-8 either: terminals differ.
}

TEST(ErrorTest, QuotedIsShort) {
  EXPECT_EQ(Quoted(std::string(200, 'x')), "'" + std::string(200, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(201, 'x')), "'" + std::string(200, 'x') + "...'");
  // 200 bytes of 4 characters each, quotes and dots: far below gRPC's 8 KiB of metadata.
  EXPECT_EQ(Quoted(std::string(1'000'000, '\x01')).size(), 4 * 200 + 5);
}

TEST(ErrorTest, DetailsAreShortAndEscapedToo) {
  const absl::Status status =
      InvalidError(v1::ERROR_REASON_BAD_INPUT, "x", {{"value", std::string(300, '\xff')}});
  const v1::ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.metadata().at("value").size(), 4 * 200 + 3);
}

}  // namespace
}  // namespace spillway::core
