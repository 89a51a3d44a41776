// The errors of the verifiers.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_VERIFY_ERROR_H_
#define SPILLWAY_REWRITE_CORE_APPLY_VERIFY_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {

// INTERNAL (VERIFY_FAILED): a bug in this program.
inline absl::Status VerifyFailed(absl::string_view check, absl::string_view node,
                                 absl::string_view what) {
  return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
               absl::StrCat("the verifier refused the rewritten graph (check ", check, ") at node ",
                            Quoted(node), ": ", what,
                            "; this is a bug of Spillway, please report it with the graph"),
               {{"check", check}, {"node", node}});
}

// Keeps errors from a stop, and turns all others into internal errors.
inline absl::Status BlameVerified(absl::string_view check, const absl::Status& status) {
  if (GetErrorReason(status) == v1::ERROR_REASON_STOPPED) return status;
  const v1::ErrorInfo info = GetErrorInfo(status);
  const auto node = info.metadata().find("node");
  return VerifyFailed(check, node == info.metadata().end() ? "?" : node->second, status.message());
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_VERIFY_ERROR_H_
