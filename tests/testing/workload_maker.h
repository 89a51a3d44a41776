// Hand-made workloads: one call per operation and per buffer.
#ifndef SPILLWAY_TESTS_TESTING_WORKLOAD_MAKER_H_
#define SPILLWAY_TESTS_TESTING_WORKLOAD_MAKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rewrite_core/simulate/workload.h"

namespace spillway::testing {

// One operation with its lists.
struct MadeOp {
  core::OpKind kind = core::OpKind::kCompute;
  int device = 0;
  int64_t duration_ns = 0;
  std::vector<core::OpId> waits_for;
  std::vector<core::BufferId> reads;
  std::vector<core::BufferId> writes;
  std::vector<core::BufferId> reuses;
  int64_t workspace_bytes = 0;
  int64_t wanted_bytes = 0;
  bool on_host_engine = false;
};

class WorkloadMaker {
 public:
  explicit WorkloadMaker(int devices = 1) : devices_(devices) {}

  core::BufferId Buffer(int device, int64_t bytes) { return AddBuffer(device, bytes, false); }
  core::BufferId Resident(int device, int64_t bytes, bool copied = false) {
    const core::BufferId id = AddBuffer(device, bytes, true);
    buffers_[id].copied = copied;
    return id;
  }
  core::OpId Add(MadeOp op) {
    ops_.push_back(std::move(op));
    return core::OpId(ops_.size() - 1);
  }
  // Shorter forms for the kinds that need no more than this.
  core::OpId Compute(int64_t duration_ns, std::vector<core::OpId> waits_for,
                     std::vector<core::BufferId> reads, std::vector<core::BufferId> writes) {
    return Add({core::OpKind::kCompute, 0, duration_ns, waits_for, reads, writes, {}, 0});
  }
  core::OpId Host(int64_t duration_ns, std::vector<core::OpId> waits_for,
                  std::vector<core::BufferId> reads = {}, std::vector<core::BufferId> writes = {}) {
    return Add({core::OpKind::kHost, -1, duration_ns, waits_for, reads, writes, {}, 0});
  }
  core::OpId CopyOut(int64_t duration_ns, std::vector<core::OpId> waits_for, core::BufferId from,
                     core::BufferId to, int device = 0) {
    return Add({core::OpKind::kCopyOut, device, duration_ns, waits_for, {from}, {to}, {}, 0});
  }
  core::OpId CopyIn(int64_t duration_ns, std::vector<core::OpId> waits_for, core::BufferId from,
                    core::BufferId to, int device = 0) {
    return Add({core::OpKind::kCopyIn, device, duration_ns, waits_for, {from}, {to}, {}, 0});
  }

  MadeOp& op(core::OpId id) { return ops_[id]; }
  core::WorkloadBuffer& buffer(core::BufferId id) { return buffers_[id]; }
  const std::vector<MadeOp>& ops() const { return ops_; }
  const std::vector<core::WorkloadBuffer>& buffers() const { return buffers_; }

  core::Workload Make() const {
    core::Workload workload;
    for (int d = 0; d < devices_; ++d) {
      workload.devices.push_back("/device:GPU:" + std::to_string(d));
    }
    workload.buffers = buffers_;
    const auto add = [](const auto& items, auto* lists) {
      for (auto item : items) lists->Add(item);
      lists->EndList();
    };
    for (const MadeOp& op : ops_) {
      workload.ops.push_back(
          {op.kind, core::Place(op.device), op.duration_ns, op.workspace_bytes, core::kNoNode});
      workload.ops.back().on_host_engine = op.on_host_engine;
      workload.wanted_bytes.push_back(op.wanted_bytes);
      add(op.waits_for, &workload.waits_for);
      add(op.reads, &workload.reads);
      add(op.writes, &workload.writes);
      add(op.reuses, &workload.reuses);
    }
    return workload;
  }

 private:
  core::BufferId AddBuffer(int device, int64_t bytes, bool resident) {
    core::WorkloadBuffer& buffer = buffers_.emplace_back();
    buffer.bytes = bytes;
    buffer.device = core::Place(device);
    buffer.resident = resident;
    return core::BufferId(buffers_.size() - 1);
  }

  int devices_;
  std::vector<core::WorkloadBuffer> buffers_;
  std::vector<MadeOp> ops_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_WORKLOAD_MAKER_H_
