#include "server/base/status_to_grpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rewrite_core/base/error.h"
#include "spillway/v1/error.pb.h"

namespace spillway::server {
namespace {

using testing::HasSubstr;

// The error as a client that uses google.rpc sees it.
v1::StatusDetails DetailsOf(const grpc::Status& status) {
  v1::StatusDetails details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

v1::ErrorInfo InfoIn(const grpc::Status& status) {
  const v1::StatusDetails details = DetailsOf(status);
  v1::ErrorInfo info;
  EXPECT_EQ(details.details_size(), 1);
  EXPECT_TRUE(info.ParseFromString(details.details(0).value()));
  return info;
}

// The size of a value in gRPC's encoding: percent-encoded, and base64.
size_t MetadataBytes(const grpc::Status& status) {
  size_t message = 0;
  for (const unsigned char c : status.error_message()) {
    message += (c < 0x20 || c > 0x7e || c == '%') ? 3 : 1;
  }
  return message + (status.error_details().size() + 2) / 3 * 4 +
         std::string("grpc-messagegrpc-status-details-bin").size() + 64;
}

TEST(StatusToGrpcTest, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(StatusToGrpcTest, CarriesCodeMessageReasonAndMetadata) {
  const grpc::Status status = ToGrpcStatus(core::InvalidError(
      v1::ERROR_REASON_DANGLING_INPUT, "node 'y' reads 'x', which is not there; add it",
      {{"node", "y"}, {"input", "x"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "node 'y' reads 'x', which is not there; add it");
  const v1::StatusDetails details = DetailsOf(status);
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), status.error_message());
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  const v1::ErrorInfo info = InfoIn(status);
  EXPECT_EQ(info.reason(), "DANGLING_INPUT");
  EXPECT_EQ(info.domain(), "spillway.v1");
  EXPECT_EQ(info.metadata().size(), 2u);
  EXPECT_EQ(info.metadata().at("node"), "y");
  EXPECT_EQ(info.metadata().at("input"), "x");
}

TEST(StatusToGrpcTest, EveryCodeKeepsItsNumberAndGetsAReason) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "words"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(DetailsOf(status).code(), code);
    const bool stopped = code == 1 || code == 4;  // CANCELLED, DEADLINE_EXCEEDED
    EXPECT_EQ(InfoIn(status).reason(), stopped ? "STOPPED" : "INTERNAL");
  }
}

TEST(StatusToGrpcTest, LongMessagesAndMetadataStayBelowWhatPeersTake) {
  constexpr size_t kPeersTake = 8 << 10;
  const std::string messages[] = {std::string(1 << 20, 'm'), std::string(1 << 20, '%'),
                                  std::string(1 << 20, '\xff')};
  for (const std::string& message : messages) {
    absl::Status error = core::InvalidError(v1::ERROR_REASON_CYCLE, message);
    v1::ErrorInfo info = core::GetErrorInfo(error);
    for (int i = 0; i < 500; ++i) {
      (*info.mutable_metadata())[absl::StrCat("node", i)] = std::string(200, 'n');
    }
    error.SetPayload(core::kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
    const grpc::Status status = ToGrpcStatus(error);
    EXPECT_LE(MetadataBytes(status), kPeersTake);
    EXPECT_TRUE(absl::EndsWith(status.error_message(), "..."));
    EXPECT_EQ(InfoIn(status).reason(), "CYCLE");
    EXPECT_EQ(InfoIn(status).domain(), "spillway.v1");
    EXPECT_GT(InfoIn(status).metadata().size(), 0u) << "keeps what fits";
  }
}

TEST(StatusToGrpcTest, BytesThatAreNotTextAreEscaped) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError("bad \xc3\x28 byte\n"));
  EXPECT_EQ(status.error_message(), "bad \\xc3( byte\\n");
  EXPECT_EQ(DetailsOf(status).message(), status.error_message());
}

TEST(StatusToGrpcTest, CodeNamesAreThoseOfGrpc) {
  EXPECT_EQ(CodeName(absl::StatusCode::kOk), "OK");
  EXPECT_EQ(CodeName(absl::StatusCode::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(CodeName(absl::StatusCode::kDeadlineExceeded), "DEADLINE_EXCEEDED");
}

// Statistics count the codes that callers receive.
TEST(ToldReasonTest, IsTheOneInTheDetails) {
  for (const absl::Status& status :
       {core::InvalidError(v1::ERROR_REASON_CYCLE, "a cycle"), absl::CancelledError("gone"),
        absl::DeadlineExceededError("late"), absl::InternalError("a bug"),
        absl::UnavailableError("a bug, too")}) {
    EXPECT_EQ(v1::ErrorReason_Name(ReportedReason(status)),
              absl::StrCat("ERROR_REASON_", InfoIn(ToGrpcStatus(status)).reason()))
        << status;
  }
}

}  // namespace
}  // namespace spillway::server
