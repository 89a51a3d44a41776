// The names of the fields in a line of a server's journal (spillwayd --journal): the server writes
// them, also in its log; `spillway stats` reads them. A line is one JSON object; unknown values are
// omitted, and readers skip unknown fields. server/README.md explains each field.
#ifndef SPILLWAY_REWRITE_CORE_BASE_JOURNAL_FIELDS_H_
#define SPILLWAY_REWRITE_CORE_BASE_JOURNAL_FIELDS_H_

namespace spillway::core::journal {

// The current file, and the prefix and suffix of full ones.
inline constexpr char kFile[] = "journal.jsonl";
inline constexpr char kFullPrefix[] = "journal-";
inline constexpr char kSuffix[] = ".jsonl";

// The request and how it ended. Times in RFC 3339, UTC, with milliseconds.
inline constexpr char kTime[] = "time";
inline constexpr char kId[] = "id";
inline constexpr char kTraceparent[] = "traceparent";
inline constexpr char kMethod[] = "method";
inline constexpr char kStrategy[] = "strategy";
inline constexpr char kCode[] = "code";
inline constexpr char kReason[] = "reason";
inline constexpr char kError[] = "error";  // Only in the log, because it names nodes.
inline constexpr char kMilliseconds[] = "ms";
inline constexpr char kBytesIn[] = "bytes_in";
inline constexpr char kBytesOut[] = "bytes_out";

// The caller; the last four are claims.
inline constexpr char kPeer[] = "peer";
inline constexpr char kCaller[] = "caller";
inline constexpr char kCertificate[] = "certificate";
inline constexpr char kJob[] = "job";
inline constexpr char kUser[] = "user";
inline constexpr char kQueue[] = "queue";
inline constexpr char kModel[] = "model";

// The outcome: RewriteFigures. Bytes and times are per step; GPU figures are those of the fullest
// GPU.
inline constexpr char kOutcome[] = "outcome";
inline constexpr char kAnsweredFrom[] = "answered_from";  // work, plan, shared or cache.
inline constexpr char kMachine[] = "machine";
inline constexpr char kFit[] = "fit";
inline constexpr char kGpus[] = "gpus";
inline constexpr char kSwappedTensors[] = "swapped_tensors";
inline constexpr char kSwapOutBytes[] = "swap_out_bytes";
inline constexpr char kSwapInBytes[] = "swap_in_bytes";
inline constexpr char kRecomputedNodes[] = "recomputed_nodes";
inline constexpr char kRecomputedBytes[] = "recomputed_bytes";
inline constexpr char kRecomputeNs[] = "recompute_ns";
inline constexpr char kPeakBeforeBytes[] = "peak_before_bytes";
inline constexpr char kPeakAfterBytes[] = "peak_after_bytes";
inline constexpr char kBudgetBytes[] = "budget_bytes";
inline constexpr char kNeedBytes[] = "need_bytes";
inline constexpr char kHostPeakBytes[] = "host_peak_bytes";
inline constexpr char kStepBeforeNs[] = "step_before_ns";
inline constexpr char kStepAfterNs[] = "step_after_ns";
inline constexpr char kSlowdown[] = "slowdown";

}  // namespace spillway::core::journal

#endif  // SPILLWAY_REWRITE_CORE_BASE_JOURNAL_FIELDS_H_
