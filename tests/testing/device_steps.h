// A naive second implementation of the counts in lower_bounds.h: the buffers on a device at each of
// its steps if exactly the given gaps are swapped out. Computed buffer by buffer and step by step;
// for small workloads.
#ifndef SPILLWAY_TESTS_TESTING_DEVICE_STEPS_H_
#define SPILLWAY_TESTS_TESTING_DEVICE_STEPS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::testing {

// By gap: whether the buffer is swapped out in it.
using GapSet = std::vector<bool>;

// The gaps whose bits are set.
GapSet GapsOfBits(uint32_t bits, size_t num_gaps);

// Copies take no time here. The workload must outlive this.
struct DeviceSteps {
  struct Gap {
    core::BufferId buffer;
    int from, to;  // The steps of the two uses.
  };

  DeviceSteps(const core::Workload& workload, int device_index,
              const std::vector<core::OpId>& whole_order);

  bool UsedAt(core::BufferId b, int t) const;
  GapSet no_gaps() const { return GapSet(gaps.size(), false); }

  // The peak memory, and the memory in use at step t.
  int64_t Peak(const GapSet& away) const;
  int64_t InUse(const GapSet& away, int t) const;
  // Counted once per buffer that is not on the host anyway; counted per gap.
  int64_t BytesOut(const GapSet& away) const;
  int64_t BytesIn(const GapSet& away) const;

  const core::Workload& w;
  const int device;
  std::vector<core::OpId> order;
  std::map<core::BufferId, std::vector<int>> uses;
  std::vector<Gap> gaps;
  std::set<core::BufferId> on_host;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_DEVICE_STEPS_H_
