#include "tests/testing/random_workload.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace spillway::testing {
namespace {

using core::BufferId;
using core::OpId;
using core::OpKind;

class Maker {
 public:
  Maker(const RandomWorkloadOptions& options, Random* random)
      : options_(options),
        random_(*random),
        devices_(1 + random->Below(options.max_devices)),
        maker_(devices_),
        there_(devices_ + 1) {}

  core::Workload Make() {
    for (int d = 0; d < devices_; ++d) {
      for (int i = random_.Below(3); i > 0; --i) {
        there_[d + 1].push_back({maker_.Resident(d, Bytes(), random_.OneIn(2)), core::kNoOp});
      }
    }
    for (int steps = random_.Between(1, options_.max_steps); steps > 0; --steps) {
      switch (options_.kernels_only ? 0 : random_.Below(10)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
          Kernel();
          break;
        case 5:
          HostOp();
          break;
        case 6:
          Copy(OpKind::kCopyOut, Device(), RandomWaits());
          break;
        case 7:
          Copy(OpKind::kCopyIn, Device(), RandomWaits());
          break;
        default:
          Swap();
      }
    }
    return Shuffled();
  }

 private:
  struct There {
    BufferId buffer;
    OpId writer;
  };
  // Buffers available on `device`; -1: the host.
  std::vector<There>& there(int device) { return there_[device + 1]; }
  int Device() { return random_.Below(devices_); }

  int64_t Bytes() {
    const int64_t bytes = random_.Below(options_.max_units + 1) * options_.unit_bytes;
    return options_.odd_sizes && bytes > 0 && random_.OneIn(4) ? bytes - 1 : bytes;
  }
  int64_t Duration() { return random_.Pick(std::vector<int64_t>{0, 0, 1, 3, 5, 10, 10, 20, 50}); }
  int64_t CopyDuration() {
    if (options_.long_copies && random_.OneIn(12)) {
      return random_.Pick(std::vector<int64_t>{int64_t{4'000'000'000}, int64_t{9'999'999'990},
                                               int64_t{10'000'000'000}, int64_t{10'000'000'001}});
    }
    return Duration();
  }
  std::vector<OpId> RandomWaits() {
    std::set<OpId> waits;
    const int ops = static_cast<int>(maker_.ops().size());
    for (int i = random_.Below(3); i > 0 && ops > 0; --i) waits.insert(OpId(random_.Below(ops)));
    return {waits.begin(), waits.end()};
  }

  // Adds up to `most` reads of buffers on `device`, with the waits for their writers.
  void AddReads(int device, int most, MadeOp* op) {
    for (int i = random_.Below(most + 1); i > 0 && !there(device).empty(); --i) {
      AddRead(random_.Pick(there(device)), op);
    }
  }
  static void AddRead(const There& source, MadeOp* op) {
    if (std::count(op->reads.begin(), op->reads.end(), source.buffer) > 0) return;
    op->reads.push_back(source.buffer);
    AddWait(source.writer, op);
  }
  static void AddWait(OpId id, MadeOp* op) {
    if (id == core::kNoOp) return;
    if (std::count(op->waits_for.begin(), op->waits_for.end(), id) == 0)
      op->waits_for.push_back(id);
  }
  void AddWrite(int device, MadeOp* op) {
    int64_t bytes = Bytes();
    BufferId reused = core::kNoBufferId;
    if (!op->reads.empty() && !random_.OneIn(3)) {
      reused = random_.Pick(op->reads);
      if (!random_.OneIn(4)) bytes = maker_.buffers()[reused].bytes;
    }
    op->writes.push_back(maker_.Buffer(device, bytes));
    op->reuses.push_back(reused);
  }
  OpId Add(const MadeOp& op) {
    const OpId id = maker_.Add(op);
    for (BufferId written : op.writes)
      there(maker_.buffers()[written].device).push_back({written, id});
    return id;
  }

  void Kernel() {
    MadeOp op;
    op.device = Device();
    op.duration_ns = Duration();
    op.waits_for = RandomWaits();
    if (options_.kernels_only) {
      std::vector<OpId> same;
      for (OpId before : op.waits_for) {
        if (maker_.ops()[before].device == op.device) same.push_back(before);
      }
      op.waits_for = same;
    }
    if (random_.OneIn(4)) op.workspace_bytes = Bytes();
    op.wanted_bytes =
        op.duration_ns % 3 * 400;  // Not drawn: the seeds give the workloads of before.
    AddReads(op.device, 3, &op);
    for (int i = random_.Below(3); i > 0; --i) AddWrite(op.device, &op);
    // Small tensors such as shapes.
    if (!options_.kernels_only && random_.OneIn(8)) AddReads(-1, 1, &op);
    if (!options_.kernels_only && random_.OneIn(8)) {
      op.writes.push_back(maker_.Buffer(-1, 4));
      op.reuses.push_back(core::kNoBufferId);
    }
    if (random_.OneIn(4)) op.reuses.clear();
    Add(op);
  }

  void HostOp() {
    MadeOp op;
    op.kind = OpKind::kHost;
    op.device = -1;
    op.duration_ns = Duration();
    op.waits_for = RandomWaits();
    op.on_host_engine = op.duration_ns % 2 == 1;  // Not drawn, likewise.
    AddReads(-1, 2, &op);
    for (int i = random_.Below(2); i > 0; --i) AddWrite(-1, &op);
    Add(op);
  }

  // Returns the copy, or kNoOp if there is nothing to copy.
  OpId Copy(OpKind kind, int device, const std::vector<OpId>& waits_for) {
    const bool out = kind == OpKind::kCopyOut;
    if (there(out ? device : -1).empty()) return core::kNoOp;
    return CopyOf(random_.Pick(there(out ? device : -1)), kind, device, waits_for);
  }
  OpId CopyOf(const There& source, OpKind kind, int device, const std::vector<OpId>& waits_for) {
    MadeOp op;
    op.kind = kind;
    op.device = device;
    op.duration_ns = CopyDuration();
    op.waits_for = waits_for;
    AddRead(source, &op);
    op.writes.push_back(maker_.Buffer(kind == OpKind::kCopyOut ? -1 : device,
                                      maker_.buffers()[source.buffer].bytes));
    return Add(op);
  }

  void Swap() {
    const int device = Device();
    if (there(device).empty()) return;
    const OpId out = Copy(OpKind::kCopyOut, device, {});
    const BufferId host = maker_.ops()[out].writes[0];
    const OpId swap_out = Add({OpKind::kHost, -1, 0, {out}, {}, {}, {}, 0});
    if (random_.OneIn(2)) {  // A deadline edge.
      MadeOp next;
      next.device = device;
      next.duration_ns = Duration();
      next.waits_for = {swap_out};
      AddReads(device, 2, &next);
      AddWrite(device, &next);
      Add(next);
    } else {
      Kernel();
    }
    MadeOp swap_in{OpKind::kHost, -1, 0, RandomWaits(), {}, {}, {}, 0};
    AddWait(swap_out, &swap_in);
    const OpId in = CopyOf({host, out}, OpKind::kCopyIn, device, {Add(swap_in)});
    MadeOp reader;
    reader.device = device;
    reader.duration_ns = Duration();
    AddRead({maker_.ops()[in].writes[0], in}, &reader);
    AddReads(device, 1, &reader);
    AddWrite(device, &reader);
    Add(reader);
  }

  // Renumbers the ids randomly.
  core::Workload Shuffled() {
    const int ops = static_cast<int>(maker_.ops().size());
    std::vector<OpId> order(ops), new_id(ops);
    std::iota(order.begin(), order.end(), OpId(0));
    if (random_.OneIn(2)) random_.Shuffle(&order);
    for (int i = 0; i < ops; ++i) new_id[order[i]] = OpId(i);
    WorkloadMaker shuffled(devices_);
    for (const auto& buffer : maker_.buffers()) {
      buffer.resident ? shuffled.Resident(buffer.device, buffer.bytes, buffer.copied)
                      : shuffled.Buffer(buffer.device, buffer.bytes);
    }
    for (OpId old : order) {
      MadeOp op = maker_.ops()[old];
      for (OpId& before : op.waits_for) before = new_id[before];
      shuffled.Add(op);
    }
    return shuffled.Make();
  }

  const RandomWorkloadOptions& options_;
  Random& random_;
  const int devices_;
  WorkloadMaker maker_;
  std::vector<std::vector<There>> there_;
};

}  // namespace

core::Workload RandomWorkload(const RandomWorkloadOptions& options, Random* random) {
  return Maker(options, random).Make();
}

}  // namespace spillway::testing
