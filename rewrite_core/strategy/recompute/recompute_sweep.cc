#include "rewrite_core/strategy/recompute/recompute_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rewrite_core/simulate/best_fit_allocator.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/strategy/common/cheapest_window.h"

namespace spillway::core {
namespace {

// A buffer whose recomputation takes more nodes than this is not dropped. (Networks drop chains of
// some ten.)
constexpr size_t kMaxRemade = 256;
// A sweep gives up after this many clones for each slot, and this many looks at candidates.
constexpr int64_t kMaxClonesPerSlot = 1;
constexpr int64_t kMaxLooksPerSlot = 512;
constexpr int64_t kReadsPerLook = 64;
// After this many looks at pieces of memory for each slot, no more windows are searched. (Networks
// take up to 27; a graph of equal buffers would take as many as it has.)
constexpr int64_t kMaxPiecesPerSlot = 64;
// A node whose inputs drive each other out is given up after this many rounds.
constexpr int kMaxRounds = 50;
// A score that grew by less since it was examined still counts as the least.
constexpr double kSameScore = 1.0001;
// A buffer from which dropped ones are recomputed has a higher score, by at most this factor more.
constexpr int32_t kMaxNeedCounted = 3;
// Power: the square root of 1/2, the logarithm of 2, and the terms of its two series, after which
// less than 1e-16 is left.
constexpr double kHalfRoot = 0.70710678118654752;
constexpr double kLog2 = 0.69314718055994531;
constexpr int kLogTerms = 11;
constexpr int kExpTerms = 14;

// x to the power p, for x of at least 1 and p from 0 to 1, within some 1e-14 of it. Uses only
// operations that IEEE 754 defines to the last bit: libm's pow differs between machines, and so
// plans of equal requests would differ, too.
double Power(double x, double p) {
  if (p == 1) return x;
  // log(x) = exponent log(2) + 2 atanh(s), with s of at most 0.18.
  int exponent = 0;
  double part = std::frexp(x, &exponent);
  if (part < kHalfRoot) {
    part *= 2;
    --exponent;
  }
  const double s = (part - 1) / (part + 1);
  double atanh = 0;
  for (int k = kLogTerms; k > 0; --k) atanh = atanh * (s * s) + 1.0 / (2 * k - 1);
  const double y = p * (exponent + 2 * s * atanh / kLog2);  // The logarithm to base 2.
  // 2 to the power y = 2^whole exp(rest).
  const double whole = std::floor(y + 0.5);
  const double rest = (y - whole) * kLog2;
  double exp = 1;
  for (int k = kExpTerms; k > 0; --k) exp = 1 + exp * rest * (1.0 / k);
  return std::ldexp(exp, static_cast<int>(whole));
}

class Sweeper {
 public:
  Sweeper(const RecomputeStep& step, const SweepTerms& terms, const StopToken& stop)
      : step_(step), order_(step.order()), terms_(terms), stop_(stop), poll_(stop) {
    const size_t n = order_.num_buffers();
    state_.assign(n, State::kUnborn);
    needed_.assign(n, 0);
    dependent_use_.assign(n, kNever);
    next_use_.assign(n, 0);
    provider_.assign(n, -1);
    seen_.assign(n, 0);
    pins_.assign(n, 0);
    chunks_.assign(n, kNoChunk);
    ended_.resize(order_.num_slots());
    if (terms.region_bytes > 0) {
      allocator_.Reset(terms.region_bytes, step.facts().hardware().max_fragmentation_bytes());
    }
    bytes_ = order_.resident_bytes();
  }

  absl::StatusOr<Sweep> Run() {
    bool fits = PlaceResident();
    for (now_ = Slot(0); now_ < order_.num_slots() && fits; ++now_) {
      fits = Step();
      if (poll_.stopped()) return stop_.status("strategy");
    }
    sweep_.fits = fits;
    if (!fits) sweep_.failed_at = now_ > 0 ? Slot(now_ - 1) : Slot(0);
    return std::move(sweep_);
  }

 private:
  using Chunk = BestFitAllocator::Chunk;
  static constexpr Chunk kNoChunk = BestFitAllocator::kNoChunk;
  enum class State : uint8_t { kUnborn, kResident, kDropped, kDead };
  struct Held {
    int64_t bytes = 0;
    Chunk chunk = kNoChunk;
  };
  static constexpr double kNotNow = 1e300, kNot = 2e300;
  static constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
  struct Candidate {
    double score;
    OrderBuffer buffer;
    // For a heap with the least score in front; ties by buffer.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score > b.score : a.buffer > b.buffer;
    }
  };

  // Runs the node of slot now_, after bringing its inputs back.
  bool Step() {
    const absl::Span<const OrderBuffer> reads = step_.reads(now_);
    Pin(reads, 1);
    const bool fits = CopyIn() && BringBack(reads) && RunOriginal();
    Pin(reads, -1);
    for (const Held& copied : ended_[now_]) {
      bytes_ -= copied.bytes;
      if (copied.chunk != kNoChunk) allocator_.Free(copied.chunk);
    }
    return fits;
  }

  bool PlaceResident() {
    if (order_.resident_bytes() > terms_.target_bytes) return false;
    Chunk resident = kNoChunk;
    return Place(AllocatedBytes(order_.resident_bytes()), &resident);
  }

  // Takes the memory of tensors copied to the GPU for the first time.
  bool CopyIn() {
    const auto& copies = order_.copies_in();
    for (; next_copy_ < copies.size() && copies[next_copy_].first <= now_; ++next_copy_) {
      const int64_t bytes = copies[next_copy_].bytes;
      if (!Ensure(bytes)) return false;
      bytes_ += bytes;
      Held copied{bytes};
      if (!Place(bytes, &copied.chunk)) return false;
      ended_[copies[next_copy_].last].push_back(copied);
    }
    return true;
  }

  bool BringBack(absl::Span<const OrderBuffer> reads) {
    // Bringing back one input may have driven out another one that was brought back.
    for (int round = 0; round < kMaxRounds; ++round) {
      bool is_complete = true;
      for (OrderBuffer read : reads) {
        if (state_[read] != State::kDropped) continue;
        is_complete = false;
        if (!Remake(read)) return false;
      }
      if (is_complete) return true;
    }
    return false;
  }

  bool RunOriginal() {
    const absl::Span<const OrderBuffer> reads = step_.reads(now_);
    for (OrderBuffer read : reads) {
      while (next_use_[read] < static_cast<int32_t>(order_.uses(read).size()) &&
             order_.uses(read)[next_use_[read]].slot <= now_) {
        ++next_use_[read];
      }
    }
    if (!Make(now_, /*is_clone=*/false)) return false;
    for (OrderBuffer read : reads) {
      if (provider_[read] >= 0) sweep_.reads.push_back({read, provider_[read], -1, now_});
    }
    for (OrderBuffer made : step_.makes(now_)) {
      state_[made] = State::kResident;
      if (step_.may_drop(made)) Push({0, made});
    }
    for (OrderBuffer read : reads) Release(read);
    for (OrderBuffer made : step_.makes(now_)) Release(made);
    return true;
  }

  // Allocates the outputs of the node of `slot`, and its workspace for a moment. An output that is
  // made in place takes its input's memory, unless that is still needed.
  bool Make(Slot slot, bool is_clone) {
    const absl::Span<const OrderBuffer> makes = step_.makes(slot);
    const int64_t workspace_bytes = AllocatedBytes(order_.workspace_bytes(slot));
    int64_t bytes = workspace_bytes;
    std::vector<std::pair<OrderBuffer, bool>> placed;  // And whether it is read.
    for (OrderBuffer made : makes) {
      const OrderBuffer taken = order_.takes_over(made);
      const bool is_read = !is_clone || state_[made] == State::kDropped;
      if (taken != kNoOrderBuffer && is_read && state_[taken] == State::kResident &&
          !HasUse(taken) && needed_[taken] == (is_clone ? 1 : 0)) {
        state_[taken] = State::kDead;
        chunks_[made] = std::exchange(chunks_[taken], kNoChunk);
        SetOwner(made);
      } else {
        bytes += order_.bytes(made);
        placed.emplace_back(made, is_read);
      }
    }
    if (!Ensure(bytes)) return false;
    bytes_ += bytes;
    sweep_.peak_bytes = std::max(sweep_.peak_bytes, bytes_);
    // Outputs that are unread, or still there from the node itself, are freed at once.
    std::vector<Chunk> unread;
    for (const auto& [made, is_read] : placed) {
      if (is_read) {
        if (!Place(order_.bytes(made), &chunks_[made])) return false;
        SetOwner(made);
      } else {
        unread.push_back(kNoChunk);
        if (!Place(order_.bytes(made), &unread.back())) return false;
        bytes_ -= order_.bytes(made);
      }
    }
    unread.push_back(kNoChunk);
    if (!Place(workspace_bytes, &unread.back())) return false;
    for (Chunk chunk : unread) {
      if (chunk != kNoChunk) allocator_.Free(chunk);
    }
    bytes_ -= workspace_bytes;
    return true;
  }

  // Places memory in the region, if any. Buffers are dropped until a piece is large enough.
  bool Place(int64_t bytes, Chunk* chunk) {
    if (terms_.region_bytes == 0 || bytes == 0) return true;
    while ((*chunk = allocator_.Allocate(bytes)) == kNoChunk) {
      if (!DropWindow(bytes) && !DropAny()) return false;
    }
    return true;
  }
  void SetOwner(OrderBuffer buffer) {
    const Chunk chunk = chunks_[buffer];
    if (chunk == kNoChunk) return;
    if (owners_.size() <= static_cast<size_t>(chunk)) owners_.resize(chunk + 1, kNoOrderBuffer);
    owners_[chunk] = buffer;
  }
  // A buffer being copied to the host is freed when that has ended.
  void Free(OrderBuffer buffer) {
    if (order_.copied_until(buffer) > now_) {
      const Chunk chunk = std::exchange(chunks_[buffer], kNoChunk);
      ended_[order_.copied_until(buffer)].push_back({order_.bytes(buffer), chunk});
      return;
    }
    bytes_ -= order_.bytes(buffer);
    if (chunks_[buffer] != kNoChunk) allocator_.Free(std::exchange(chunks_[buffer], kNoChunk));
  }

  bool HasUse(OrderBuffer buffer) const {
    return next_use_[buffer] < static_cast<int32_t>(order_.uses(buffer).size());
  }
  int32_t OwnNextUse(OrderBuffer buffer) const {
    return HasUse(buffer) ? order_.uses(buffer)[next_use_[buffer]].slot.value() : kNever;
  }
  // The next slot that reads it, or before which another one is recomputed from it.
  int32_t NextUse(OrderBuffer buffer) const {
    const int32_t own = OwnNextUse(buffer);
    return needed_[buffer] > 0 ? std::min(own, dependent_use_[buffer]) : own;
  }

  void Release(OrderBuffer buffer) {
    if (state_[buffer] != State::kResident || HasUse(buffer) || needed_[buffer] > 0) return;
    state_[buffer] = State::kDead;
    Free(buffer);
  }

  // ---- Dropping ----

  void Push(Candidate candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }

  // While it is pinned, a buffer is not dropped.
  void Pin(absl::Span<const OrderBuffer> buffers, int32_t by) {
    for (OrderBuffer buffer : buffers) pins_[buffer] += by;
  }
  void LetGo() {
    Pin(held_, -1);
    held_.clear();
  }

  // Drops buffers until `bytes` more fit.
  bool Ensure(int64_t bytes) {
    while (bytes_ + bytes > terms_.target_bytes) {
      if (!DropAny()) return false;
    }
    return true;
  }

  bool DropAny() {
    if (DropOne()) return true;
    // Inputs of clones that come later may be driven out, and made once more.
    if (held_.empty()) return false;
    LetGo();
    return DropOne();
  }

  // Drops the adjacent buffers that leave a piece of `bytes`, and take the least time to recompute;
  // returns false if none do. (Without windows, the small buffers with the least scores go one by
  // one, and leave small pieces.)
  bool DropWindow(int64_t bytes) {
    if (pieces_seen_ > kMaxPiecesPerSlot * order_.num_slots()) return false;
    std::vector<WindowPiece> pieces;
    std::vector<OrderBuffer> buffers;
    allocator_.ForEach([&](Chunk chunk, bool is_free) {
      ++pieces_seen_;
      if (poll_.Tick()) return;
      OrderBuffer buffer = kNoOrderBuffer;
      double score = 0;
      if (!is_free) {
        if (static_cast<size_t>(chunk) < owners_.size()) buffer = owners_[chunk];
        // It may have been freed, and the chunk reused.
        if (buffer == kNoOrderBuffer || chunks_[buffer] != chunk) return;
        if (state_[buffer] != State::kResident || pins_[buffer] > 0) return;
        if (!step_.may_drop(buffer) || order_.copied_until(buffer) > now_) return;
        score = Score(buffer);
        if (score >= kNotNow) return;
        score *= static_cast<double>(order_.bytes(buffer));
      }
      pieces.push_back({allocator_.address(chunk), allocator_.bytes(chunk), score});
      buffers.push_back(buffer);
    });
    const PieceWindow window = CheapestWindow(pieces, bytes);
    bool is_dropped = false;
    for (size_t i = window.begin; i < window.end; ++i) {
      if (buffers[i] == kNoOrderBuffer) continue;
      // Since another one was dropped, it may be needed.
      if (Score(buffers[i]) >= kNotNow) break;
      Drop(buffers[i]);
      is_dropped = true;
    }
    return is_dropped;
  }

  // Drops the buffer with the least score, or returns false.
  bool DropOne() {
    aside_.clear();
    bool is_dropped = false;
    while (!is_dropped && !heap_.empty()) {
      if (poll_.Tick() || ++looks_ > kMaxLooksPerSlot * (order_.num_slots() + 1)) break;
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      const OrderBuffer buffer = candidate.buffer;
      if (state_[buffer] != State::kResident) continue;
      if (pins_[buffer] > 0) {
        aside_.push_back(candidate);
        continue;
      }
      const double score = Score(buffer);
      if (score >= kNotNow) {
        if (score == kNotNow) aside_.push_back({kNotNow, buffer});
        if (candidate.score == kNotNow) break;  // All others are no better.
        continue;
      }
      if (!heap_.empty() && score > heap_.front().score * kSameScore) {
        Push({score, buffer});
        continue;
      }
      Drop(buffer);
      is_dropped = true;
    }
    for (const Candidate& candidate : aside_) Push(candidate);
    return is_dropped;
  }

  // The time to recompute it, per byte and time until its next use; kNotNow or kNot if impossible.
  double Score(OrderBuffer buffer) {
    const int32_t next = NextUse(buffer);
    if (next == kNever) return kNotNow;
    // It, and all of its ancestors that are not there.
    ++mark_;
    todo_.assign(1, buffer);
    seen_[buffer] = mark_;
    int64_t time_ns = 0;
    for (size_t done = 0; done < todo_.size(); ++done) {
      const Slot slot = order_.made(todo_[done]);
      if (poll_.Tick() || todo_.size() > kMaxRemade) return kNotNow;
      if (!step_.may_clone(slot) || step_.before(slot) <= next) return kNot;
      if (state_[todo_[done]] == State::kDead && !step_.may_remake(todo_[done])) return kNot;
      time_ns += step_.duration_ns(slot);
      looks_ += static_cast<int64_t>(step_.reads(slot).size()) / kReadsPerLook;
      for (OrderBuffer read : step_.reads(slot)) {
        if (poll_.Tick()) return kNot;
        if (state_[read] == State::kResident || seen_[read] == mark_) continue;
        seen_[read] = mark_;
        todo_.push_back(read);
      }
    }
    // Inputs that would have been freed before are kept for it.
    int64_t gain = order_.bytes(buffer);
    for (OrderBuffer read : step_.reads(order_.made(buffer))) {
      const auto uses = order_.uses(read);
      if (state_[read] == State::kResident && needed_[read] == 0 && !step_.may_remake(read) &&
          (uses.empty() || uses.back().slot < next)) {
        gain -= order_.bytes(read);
      }
    }
    if (gain <= 0) return kNotNow;
    const double wait_ns = std::max<double>(
        1, static_cast<double>(order_.begin_ns(Slot(next)) - order_.begin_ns(now_)));
    return static_cast<double>(time_ns) * (1 + std::min(needed_[buffer], kMaxNeedCounted)) /
           (static_cast<double>(gain) * Power(wait_ns, terms_.time_power));
  }

  // Frees it, and keeps the buffers needed to recompute it; those that are gone are to be
  // recomputed, too.
  void Drop(OrderBuffer buffer) {
    const int32_t next = NextUse(buffer);
    Free(buffer);
    state_[buffer] = State::kDropped;
    todo_.assign(1, buffer);
    while (!todo_.empty()) {
      const OrderBuffer dropped = todo_.back();
      todo_.pop_back();
      for (OrderBuffer read : step_.reads(order_.made(dropped))) {
        dependent_use_[read] = needed_[read]++ > 0 ? std::min(dependent_use_[read], next) : next;
        if (state_[read] != State::kDead) continue;
        state_[read] = State::kDropped;
        todo_.push_back(read);
      }
    }
  }

  // ---- Recomputing ----

  // Recomputes `buffer`, its missing inputs first.
  bool Remake(OrderBuffer buffer) {
    const size_t most = sweep_.clones.size() + kMaxRemade;
    stack_.assign(1, {order_.made(buffer)});
    const bool is_made = RunStack(most);
    LetGo();
    return is_made;
  }

  bool RunStack(size_t most) {
    while (!stack_.empty()) {
      if (poll_.Tick() || sweep_.clones.size() + stack_.size() > most) return false;
      const Slot slot = stack_.back().slot;
      const absl::Span<const OrderBuffer> makes = step_.makes(slot);
      const absl::Span<const OrderBuffer> reads = step_.reads(slot);
      if (std::none_of(makes.begin(), makes.end(),
                       [this](OrderBuffer made) { return state_[made] == State::kDropped; })) {
        stack_.pop_back();
        continue;
      }
      if (stack_.back().first_held < 0) {
        stack_.back().first_held = static_cast<int64_t>(held_.size());
        held_.insert(held_.end(), reads.begin(), reads.end());
        Pin(reads, 1);
      }
      const auto gone = std::find_if(reads.begin(), reads.end(), [this](OrderBuffer read) {
        return state_[read] != State::kResident;
      });
      if (gone != reads.end()) {
        if (state_[*gone] != State::kDropped) return false;
        stack_.push_back({order_.made(*gone)});
        continue;
      }
      // Those above it on the stack have run, so its inputs are the last ones held.
      const auto first_held = static_cast<size_t>(stack_.back().first_held);
      stack_.pop_back();
      if (!RunClone(slot)) return false;
      if (first_held < held_.size()) {
        Pin(absl::MakeConstSpan(held_).subspan(first_held), -1);
        held_.resize(first_held);
      }
    }
    return true;
  }

  bool RunClone(Slot slot) {
    const absl::Span<const OrderBuffer> reads = step_.reads(slot);
    if (step_.before(slot) <= now_) return false;
    if (static_cast<int64_t>(sweep_.clones.size()) >= kMaxClonesPerSlot * order_.num_slots()) {
      return false;
    }
    // Making room may drop more, also outputs that this clone could have brought back.
    std::vector<OrderBuffer> back;
    for (OrderBuffer made : step_.makes(slot)) {
      if (state_[made] == State::kDropped) back.push_back(made);
    }
    // Outputs that are still there stay: the clone's are freed at once.
    Pin(reads, 1);
    Pin(step_.makes(slot), 1);
    const bool fits = Make(slot, /*is_clone=*/true);
    Pin(step_.makes(slot), -1);
    Pin(reads, -1);
    if (!fits) return false;
    const auto clone = static_cast<int32_t>(sweep_.clones.size());
    sweep_.clones.push_back({slot, now_});
    sweep_.added_ns += step_.duration_ns(slot);
    for (OrderBuffer read : reads) {
      if (provider_[read] >= 0) sweep_.reads.push_back({read, provider_[read], clone, now_});
    }
    for (OrderBuffer made : back) {
      state_[made] = State::kResident;
      provider_[made] = clone;
      if (step_.may_drop(made)) Push({0, made});
      for (OrderBuffer read : reads) --needed_[read];
    }
    for (OrderBuffer read : reads) Release(read);
    return true;
  }

  const RecomputeStep& step_;
  const StepOrder& order_;
  const SweepTerms terms_;
  const StopToken& stop_;
  StopPoller poll_;
  Slot now_{0};
  int64_t bytes_ = 0;
  int64_t looks_ = 0, pieces_seen_ = 0;
  Sweep sweep_;
  // By buffer.
  std::vector<State> state_;
  std::vector<int32_t> needed_;         // How many dropped ones are made from it.
  std::vector<int32_t> dependent_use_;  // The first slot for which one of these is recomputed.
  std::vector<int32_t> next_use_;       // An index in its uses.
  std::vector<int32_t> provider_;       // The clone that made it last; -1: its maker.
  std::vector<int32_t> seen_;           // Score: the last mark_.
  std::vector<int32_t> pins_;           // For how many reasons it stays.
  int32_t mark_ = 0;
  BestFitAllocator allocator_;
  std::vector<Chunk> chunks_;             // By buffer.
  std::vector<OrderBuffer> owners_;       // By chunk: its last buffer.
  std::vector<std::vector<Held>> ended_;  // By slot: copied memory that is freed after it.
  size_t next_copy_ = 0;
  std::vector<Candidate> heap_, aside_;
  std::vector<OrderBuffer> todo_;
  // Remake: the nodes under way.
  struct UnderWay {
    Slot slot{0};
    int64_t first_held = -1;  // The first index of its inputs in held_; -1: not held.
  };
  std::vector<UnderWay> stack_;
  std::vector<OrderBuffer> held_;
};

}  // namespace

absl::StatusOr<Sweep> SweepStep(const RecomputeStep& step, const SweepTerms& terms,
                                const StopToken& stop) {
  return Sweeper(step, terms, stop).Run();
}

}  // namespace spillway::core
