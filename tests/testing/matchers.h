// Matchers for the core's results.
#ifndef SPILLWAY_TESTS_TESTING_MATCHERS_H_
#define SPILLWAY_TESTS_TESTING_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "rewrite_core/base/error.h"
#include "spillway/v1/error.pb.h"

namespace spillway::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// A Status or StatusOr that is OK.
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// A Status or StatusOr with this error: code, reason, and part of the message.
MATCHER_P3(FailsWith, code, reason, part,
           absl::StrCat(negation ? "isn't " : "is ", absl::StatusCodeToString(code), " ",
                        v1::ErrorReason_Name(reason), " saying \"", part, "\"")) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && core::GetErrorReason(status) == reason &&
         absl::StrContains(status.message(), part);
}

// The same for INVALID_ARGUMENT, the code for invalid requests.
inline auto IsInvalid(v1::ErrorReason reason, const std::string& part = "") {
  return FailsWith(absl::StatusCode::kInvalidArgument, reason, part);
}

// An internal error: INTERNAL, with part of the message.
MATCHER_P(IsInternal, part, std::string("is INTERNAL saying ") + part) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == absl::StatusCode::kInternal && absl::StrContains(status.message(), part);
}

// The value of the detail `key` in a Status or StatusOr; `(absent)` without that detail.
template <typename T>
std::string ErrorDetailOf(const T& result, const std::string& key) {
  const v1::ErrorInfo info = core::GetErrorInfo(StatusOf(result));
  const auto it = info.metadata().find(key);
  return it == info.metadata().end() ? "(absent)" : it->second;
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_MATCHERS_H_
