// Parts shared by fuzz targets. A target is one file that defines LLVMFuzzerTestOneInput; it is
// linked with libFuzzer (preset `fuzz`) and, in every build, with replay.cc, which runs files.
#ifndef SPILLWAY_TESTS_FUZZ_FUZZ_TARGET_H_
#define SPILLWAY_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "rewrite_core/rewriter.h"

// Runs one input; ends the program if something that must hold does not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace spillway::testing {

// The default limits, except for searches: a hundredth, so that one input takes a second at most,
// under sanitizers too.
inline v1::Limits FuzzLimits() {
  v1::Limits limits = core::DefaultLimits();
  limits.set_max_search_steps(limits.max_search_steps() / 100);
  return limits;
}

// Protobuf would log every string that is not UTF-8.
inline const bool kQuiet = [] {
  google::protobuf::SetLogHandler(nullptr);
  return true;
}();

// Ends the program unless `failure` is empty.
inline void RequireNone(absl::string_view failure) {
  if (failure.empty()) return;
  std::cerr << failure << std::endl;
  std::abort();
}

// Ends the program for an error that blames the program, not the input.
inline void RequireBlamesInput(const absl::Status& status) {
  RequireNone(absl::IsInternal(status) || absl::IsUnknown(status) ? status.ToString() : "");
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_FUZZ_TARGET_H_
