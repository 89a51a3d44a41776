#include "client_lib/internal/status_conversion.h"

#include <string>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/client_lib/test_server.h"

namespace spillway::internal {
namespace {

using spillway::testing::ToGrpc;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FromGrpcTest, OkIsOk) { EXPECT_TRUE(FromGrpc(grpc::Status::OK, "host:1").ok()); }

TEST(FromGrpcTest, EveryReasonAndItsMetadataComeBack) {
  for (int i = 1; i < v1::ErrorReason_descriptor()->value_count(); ++i) {
    const auto reason =
        static_cast<v1::ErrorReason>(v1::ErrorReason_descriptor()->value(i)->number());
    const absl::Status sent = core::Error(absl::StatusCode::kFailedPrecondition, reason,
                                          "node 'x' is wrong", {{"node", "x"}, {"value", "3"}});
    const absl::Status got = FromGrpc(ToGrpc(sent), "host:1");
    EXPECT_EQ(got, sent);
    EXPECT_EQ(core::GetErrorReason(got), reason);
    EXPECT_EQ(core::GetErrorInfo(got).metadata().at("node"), "x");
  }
}

TEST(FromGrpcTest, EveryCodeComesBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent =
        core::Error(static_cast<absl::StatusCode>(code), v1::ERROR_REASON_INTERNAL, "message");
    EXPECT_EQ(FromGrpc(ToGrpc(sent), "host:1"), sent);
    // Without details, too.
    const grpc::Status plain(static_cast<grpc::StatusCode>(code), "message");
    EXPECT_EQ(FromGrpc(plain, "host:1").code(), sent.code());
  }
}

TEST(FromGrpcTest, OtherDetailsComeBackToo) {
  absl::Status sent = core::InvalidError(v1::ERROR_REASON_CYCLE, "a cycle");
  sent.SetPayload("type.googleapis.com/other", absl::Cord("bytes"));
  EXPECT_EQ(FromGrpc(ToGrpc(sent), "host:1"), sent);
}

TEST(FromGrpcTest, DamagedDetailsAreLeftOut) {
  const grpc::Status status(grpc::StatusCode::INVALID_ARGUMENT, "wrong", "\xff\xff not a message");
  const absl::Status got = FromGrpc(status, "host:1");
  EXPECT_EQ(got.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(got.message(), "wrong");
  EXPECT_EQ(core::GetErrorReason(got), v1::ERROR_REASON_UNSPECIFIED);
}

TEST(FromGrpcTest, ErrorsOfTheTransportSayWhereAndWhatToDo) {
  const absl::Status unavailable =
      FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection refused"), "host:1");
  EXPECT_THAT(std::string(unavailable.message()),
              AllOf(HasSubstr("'host:1'"), HasSubstr("connection refused"), HasSubstr("check")));
  const absl::Status unimplemented =
      FromGrpc(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""), "host:1");
  EXPECT_THAT(std::string(unimplemented.message()), HasSubstr("'host:1'"));
}

TEST(FromGrpcTest, WhatWasStoppedHasTheReasonThatItHasInProcess) {
  for (const auto code : {grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED}) {
    EXPECT_EQ(core::GetErrorReason(FromGrpc(grpc::Status(code, ""), "host:1")),
              v1::ERROR_REASON_STOPPED);
  }
}

}  // namespace
}  // namespace spillway::internal
