#include "client_lib/cli/base/exit_code.h"

#include <errno.h>

#include <map>

#include "absl/status/status.h"
#include "client_lib/cli/base/file_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

ExitCode OfReason(absl::StatusCode code, v1::ErrorReason reason) {
  return ExitCodeOf(core::Error(code, reason, "message"));
}

TEST(ExitCodeTest, EveryReasonButThoseOfStoppingDecidesAlone) {
  const std::map<v1::ErrorReason, ExitCode> expected = {
      {v1::ERROR_REASON_MALFORMED_GRAPH, ExitCode::kBadGraph},
      {v1::ERROR_REASON_EMPTY_GRAPH, ExitCode::kBadGraph},
      {v1::ERROR_REASON_CYCLE, ExitCode::kBadGraph},
      {v1::ERROR_REASON_LIMIT_EXCEEDED, ExitCode::kBadGraph},
      {v1::ERROR_REASON_FOREIGN_REWRITE, ExitCode::kBadGraph},
      {v1::ERROR_REASON_UNKNOWN_OPTION, ExitCode::kUsage},
      {v1::ERROR_REASON_NAME_MATCHES_NOTHING, ExitCode::kUsage},
      {v1::ERROR_REASON_BAD_REGEX, ExitCode::kUsage},
      {v1::ERROR_REASON_OVERLOADED, ExitCode::kServer},
      {v1::ERROR_REASON_UNKNOWN_CALLER, ExitCode::kServer},
      {v1::ERROR_REASON_DOES_NOT_FIT, ExitCode::kDoesNotFit},
      {v1::ERROR_REASON_VERIFY_FAILED, ExitCode::kInternal},
      {v1::ERROR_REASON_BAD_STREAM, ExitCode::kInternal},
  };
  for (const auto& [reason, exit_code] : expected) {
    for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kInternal}) {
      EXPECT_EQ(OfReason(code, reason), exit_code) << v1::ErrorReason_Name(reason);
    }
  }
}

TEST(ExitCodeTest, NoErrorEndsAsIfAllWereWell) {
  for (int i = 0; i < v1::ErrorReason_descriptor()->value_count(); ++i) {
    const auto reason =
        static_cast<v1::ErrorReason>(v1::ErrorReason_descriptor()->value(i)->number());
    for (int code = 1; code <= 16; ++code) {
      const ExitCode exit_code = OfReason(static_cast<absl::StatusCode>(code), reason);
      EXPECT_NE(exit_code, ExitCode::kDone);
      EXPECT_NE(exit_code, ExitCode::kNotServing);
    }
  }
}

TEST(ExitCodeTest, WhoStoppedTheCallDecides) {
  const auto stopped = v1::ERROR_REASON_STOPPED;
  EXPECT_EQ(OfReason(absl::StatusCode::kCancelled, stopped), ExitCode::kStopped);
  EXPECT_EQ(OfReason(absl::StatusCode::kDeadlineExceeded, stopped), ExitCode::kStopped);
  EXPECT_EQ(OfReason(absl::StatusCode::kUnavailable, stopped), ExitCode::kServer);
}

TEST(ExitCodeTest, WithoutAReasonTheCodeDecides) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kServer);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kBadGraph);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("")), ExitCode::kInternal);
}

TEST(ExitCodeTest, AFileErrorIsOneWhateverItsCode) {
  for (const int error : {ENOENT, EACCES, EISDIR, ENOSPC, EPIPE, EIO}) {
    EXPECT_EQ(ExitCodeOf(FileError(error, "read", "x", "advice")), ExitCode::kFile);
  }
}

TEST(ExitCodeTest, TheHelpNamesEveryCode) {
  for (const char* code :
       {"  0  ", "  1  ", "  2  ", "  3  ", "  4  ", "  5  ", "  6  ", "  7  ", "  8  ", "  9  "}) {
    EXPECT_THAT(kExitCodeHelp, ::testing::HasSubstr(code));
  }
}

}  // namespace
}  // namespace spillway::cli
