#include "rewrite_core/inline/kept_calls.h"

#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

using Causes = google::protobuf::RepeatedPtrField<v1::FitUnknown>;

void AddCauses(const v1::Inlining& inlining, Causes* causes) {
  for (v1::FitUnknown& cause : *causes) {
    if (cause.cause() != v1::FIT_UNKNOWN_CAUSE_CALLS) continue;
    for (const v1::KeptCall& call : inlining.kept_calls()) {
      if (call.node() != cause.node()) continue;
      absl::StrAppend(cause.mutable_message(), " (", KeptCallText(call.reason()), ")");
      break;
    }
  }
}

}  // namespace

absl::string_view KeptCallText(v1::KeptCallReason reason) {
  switch (reason) {
    case v1::KEPT_CALL_REASON_FED:
      return "it is fed";
    case v1::KEPT_CALL_REASON_NO_FUNCTION:
      return "the library has no such function";
    case v1::KEPT_CALL_REASON_DUPLICATE_FUNCTION:
      return "the library has several functions of that name";
    case v1::KEPT_CALL_REASON_RECURSION:
      return "the function calls itself";
    case v1::KEPT_CALL_REASON_NOINLINE:
      return "the function has the attribute _noinline";
    case v1::KEPT_CALL_REASON_COMPILED:
      return "XLA compiles it";
    case v1::KEPT_CALL_REASON_IMPLEMENTATION_GROUP:
      return "the function has the attribute api_implements";
    case v1::KEPT_CALL_REASON_SIDE_EFFECTS:
      return "an effect of the function might be lost: nothing waits for the end of the call, or "
             "the effect does not lead there";
    case v1::KEPT_CALL_REASON_DEAD_RESULTS:
      return "a result of the function may be dead";
    case v1::KEPT_CALL_REASON_BAD_FUNCTION:
      return "the function cannot be read, or does not fit the call";
    case v1::KEPT_CALL_REASON_TOO_LARGE:
      return "the graph would grow beyond the limits";
    default:
      return "calls of that kind are not inlined";
  }
}

void ReportKeptCalls(const v1::Inlining& inlining, v1::Forecast* forecast) {
  AddCauses(inlining, forecast->mutable_fit_unknown());
}

}  // namespace spillway::core
