// Reads a step of TensorFlow from a RunMetadata (or StepStats) of a full trace: where each node
// ran, its copied bytes, the length of the step and its memory. Times of single nodes are read by
// the core (analysis/machine/profile.h).
//
// The bytes are untrusted.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_CHECK_TRACE_H_
#define SPILLWAY_CLIENT_LIB_TEXT_CHECK_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::text {

// One step. Views point into the bytes that were read.
struct CheckTrace {
  struct Node {
    absl::string_view device;
    // Of its first output. Absent: not in the trace.
    absl::optional<int64_t> output_bytes;
  };

  // An execution, kernels and copies of GPUs included, in nanoseconds of the machine's clock.
  struct Span {
    absl::string_view device, name;
    int64_t start_ns;
    int64_t end_ns;
  };

  // An allocation, or a deallocation of negative size.
  struct Record {
    int64_t time_us;
    int64_t bytes;
  };

  // The nodes that ran, by exact name.
  absl::flat_hash_map<absl::string_view, Node> nodes;
  // As spelled in the trace, in its order; without the streams of GPUs.
  std::vector<absl::string_view> devices;
  // From the start of the first op or kernel to the end of the last.
  absl::optional<int64_t> step_ns;
  // Per device: the maximum of the bytes that the step itself had allocated, a lower bound.
  absl::flat_hash_map<absl::string_view, int64_t> allocated_peak_bytes;
  // Per device: the maximum of the bytes in use at the end of an op, including variables. Only for
  // allocators that count (those of GPUs, and TF_CPU_ALLOCATOR_USE_BFC=true).
  absl::flat_hash_map<absl::string_view, int64_t> in_use_peak_bytes;
  // In the trace's order.
  std::vector<Span> spans;
  // Per device, by time; within a microsecond, whose order is unknown, deallocations first.
  absl::flat_hash_map<absl::string_view, std::vector<Record>> records;
};

// Parses `run_metadata`. INVALID_ARGUMENT (BAD_OPTION) if it is damaged or holds no step; if
// it is the error of a step that ran out of memory, or a log with it, the message says so.
absl::StatusOr<CheckTrace> ReadCheckTrace(absl::string_view run_metadata);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_CHECK_TRACE_H_
