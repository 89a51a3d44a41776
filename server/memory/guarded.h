// The conversion of exceptions to errors, at the places where a thread's work on a request begins.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_MEMORY_GUARDED_H_
#define SPILLWAY_SERVER_MEMORY_GUARDED_H_

#include "absl/status/status.h"

namespace spillway::server {

// Converts the exception being handled to an error: RESOURCE_EXHAUSTED (OVERLOADED) if memory ran
// out, otherwise INTERNAL. REQUIRES: called in a catch block.
absl::Status CaughtException();

// Returns the result of `work`, or the error for its exception.
template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return CaughtException();
  }
}

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_GUARDED_H_
