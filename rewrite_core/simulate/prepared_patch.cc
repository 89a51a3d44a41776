#include "rewrite_core/simulate/prepared_patch.h"

#include <algorithm>
#include <tuple>

#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/simulate/grow.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

PreparedPatch::PreparedPatch(PreparedWorkload* prepared)
    : prepared_(*prepared),
      num_ops_(static_cast<int32_t>(prepared->ops.size())),
      num_buffers_(prepared->buffers.size()),
      after_size_(prepared->after.size()),
      writes_size_(prepared->writes.size()),
      holds_size_(prepared->holds.size()),
      bytes_in_all_(prepared->bytes_in_all),
      time_in_all_(prepared->time_in_all),
      first_(prepared->first),
      is_saved_(prepared->ops.size(), 0) {}

void PreparedPatch::Reserve(size_t ops, size_t buffers) {
  GrowBy(ops, &prepared_.ops);
  GrowBy(ops, &prepared_.waits);
  GrowBy(ops, &prepared_.rank);
  GrowBy(buffers, &prepared_.buffers);
  GrowBy(buffers, &prepared_.holders);
}

absl::Status PreparedPatch::AddBuffer(const WorkloadBuffer& buffer) {
  if (absl::Status s = prepared_.CountBuffer(buffer.bytes); !s.ok()) return s;
  PreparedWorkload::Buffer added;
  added.bytes = AllocatedBytes(buffer.bytes);
  added.exact_bytes = buffer.bytes;
  added.device = buffer.device;
  prepared_.buffers.push_back(added);
  prepared_.holders.push_back(1);  // Its writer.
  return absl::OkStatus();
}

absl::Status PreparedPatch::AddOp(const WorkloadOp& op, int64_t rank) {
  if (absl::Status s = prepared_.CountOp(op.duration_ns, op.workspace_bytes); !s.ok()) return s;
  PreparedWorkload::Op added;
  added.kind_bits = static_cast<uint32_t>(op.kind);
  added.device_bits = op.device;
  added.duration_ns = op.duration_ns;
  added.node = op.node;
  prepared_.ops.push_back(added);
  prepared_.waits.push_back(0);
  prepared_.rank.push_back(rank);
  return absl::OkStatus();
}

void PreparedPatch::SetLists(OpId id, absl::Span<const BufferId> reads,
                             absl::Span<const BufferId> writes, absl::Span<const BufferId> reuses) {
  const OpId number = prepared_.NumberOf(id);
  Save(number);
  PreparedWorkload::Op& op = prepared_.ops[number];
  if (op.kind() == OpKind::kCopyOut || op.kind() == OpKind::kCopyIn) {
    op.bytes = prepared_.buffers[reads[0]].exact_bytes;
  }
  GrowBy(writes.size(), &prepared_.writes);
  GrowBy(reads.size() + writes.size(), &prepared_.holds);
  prepared_.SetLists(reads, writes, reuses, &op);
}

void PreparedPatch::AddEdge(OpId from, OpId to) {
  changes_.push_back({prepared_.NumberOf(from), prepared_.NumberOf(to), true});
}

void PreparedPatch::RemoveEdge(OpId from, OpId to) {
  changes_.push_back({prepared_.NumberOf(from), prepared_.NumberOf(to), false});
}

void PreparedPatch::SetWaits(OpId id, int32_t waits) {
  const OpId number = prepared_.NumberOf(id);
  Save(number);
  const bool was_first = number < num_ops_ && prepared_.waits[number] == 0;
  prepared_.waits[number] = waits;
  if (was_first == (waits == 0)) return;
  first_changed_ = true;
  if (waits == 0) became_first_.push_back(number);
}

bool PreparedPatch::FinishEdges(StopPoller* poll) {
  removed_.resize(prepared_.ops.size(), 0);
  const auto by_edge = [](const Change& a, const Change& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  };
  if (!PolledSort(changes_.begin(), changes_.end(), by_edge, poll)) return false;
  for (size_t i = 0, end = 0; i < changes_.size(); i = end) {
    for (; end < changes_.size() && changes_[end].from == changes_[i].from; ++end) {
      if (poll->Tick()) return false;
    }
    ChangeAfter(absl::MakeSpan(changes_).subspan(i, end - i));
  }
  Release(&changes_);
  if (!first_changed_) return true;
  std::vector<OpId>& first = prepared_.first;
  first.erase(std::remove_if(first.begin(), first.end(),
                             [this](OpId number) { return prepared_.waits[number] > 0; }),
              first.end());
  first.insert(first.end(), became_first_.begin(), became_first_.end());
  return true;
}

void PreparedPatch::ChangeAfter(absl::Span<const Change> changes) {
  Save(changes[0].from);
  PreparedWorkload::Op& op = prepared_.ops[changes[0].from];
  ++mark_;
  for (const Change& change : changes) {
    if (!change.is_new) removed_[change.to] = mark_;
  }
  std::vector<OpId>& after = prepared_.after;
  GrowBy(op.after_end - op.after + changes.size(), &after);
  const auto make_part = [&](Follows kind, int32_t begin, int32_t end) {
    const int32_t made = static_cast<int32_t>(after.size());
    for (int32_t at = begin; at < end; ++at) {
      const OpId other = after[at];
      if (removed_[other] != mark_) after.push_back(other);
    }
    for (const Change& change : changes) {
      const PreparedWorkload::Op& to = prepared_.ops[change.to];
      if (change.is_new && HowFollows(op.kind(), op.device(), to.kind(), to.device()) == kind) {
        after.push_back(change.to);
      }
    }
    return made;
  };
  const int32_t launched = make_part(Follows::kLaunchToLaunch, op.after, op.copies);
  const int32_t copies = make_part(Follows::kLaunchToCopyOut, op.copies, op.ended);
  const int32_t ended = make_part(Follows::kEnd, op.ended, op.after_end);
  op.after = launched;
  op.copies = copies;
  op.ended = ended;
  op.after_end = static_cast<int32_t>(after.size());
}

void PreparedPatch::Save(OpId number) {
  if (number >= num_ops_ || is_saved_[number] != 0) return;
  is_saved_[number] = 1;
  saved_.push_back({number, prepared_.ops[number], prepared_.waits[number]});
}

void PreparedPatch::Undo() {
  for (const Saved& saved : saved_) {
    prepared_.ops[saved.number] = saved.op;
    prepared_.waits[saved.number] = saved.waits;
    is_saved_[saved.number] = 0;
  }
  prepared_.ops.resize(num_ops_);
  prepared_.waits.resize(num_ops_);
  prepared_.rank.resize(num_ops_);
  prepared_.buffers.resize(num_buffers_);
  prepared_.holders.resize(num_buffers_);
  prepared_.after.resize(after_size_);
  prepared_.writes.resize(writes_size_);
  prepared_.holds.resize(holds_size_);
  prepared_.bytes_in_all = bytes_in_all_;
  prepared_.time_in_all = time_in_all_;
  if (first_changed_) prepared_.first = first_;
  first_changed_ = false;
  became_first_.clear();
  saved_.clear();
  changes_.clear();
}

}  // namespace spillway::core
