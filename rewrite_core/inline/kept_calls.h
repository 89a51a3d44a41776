// Why calls were kept, in words: for forecasts that report their memory as unknown.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_KEPT_CALLS_H_
#define SPILLWAY_REWRITE_CORE_INLINE_KEPT_CALLS_H_

#include "absl/strings/string_view.h"
#include "spillway/v1/forecast.pb.h"
#include "spillway/v1/inlining.pb.h"

namespace spillway::core {

// "the function has the attribute _noinline".
absl::string_view KeptCallText(v1::KeptCallReason reason);

// Adds to each cause that is a call the reason why it was not inlined.
void ReportKeptCalls(const v1::Inlining& inlining, v1::Forecast* forecast);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_KEPT_CALLS_H_
