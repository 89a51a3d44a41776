#include "client_lib/cli/run/run_prepare.h"

#include <errno.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/base/own_version.h"
#include "client_lib/cli/files/input_file.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/rewrite/rewrite_graph_file.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/cli/run/run_cache.h"
#include "client_lib/internal/tensorflow_settings.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "rewrite_core/base/sha256.h"

namespace spillway::cli {
namespace {

// Change this whenever the layout of a cache entry changes.
constexpr char kCacheFormat[] = "spillway-run-3";
constexpr char kReportSuffix[] = ".json";
// Characters that a file system or a shell could misinterpret are left out of names in the cache.
constexpr size_t kMaxExtension = 16;
constexpr size_t kMaxReportBytes = size_t{4} << 30;
// If nvidia-smi hangs, most of the time is left for the rewrite.
constexpr int kNvidiaSmiPart = 4;

// Concatenates texts with their lengths, so that the result is unambiguous.
std::string Pack(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) absl::StrAppend(&bytes, text.size(), ":", text);
  return bytes;
}

bool Unpack(absl::string_view bytes, const std::vector<std::string*>& texts) {
  for (std::string* text : texts) {
    const size_t colon = bytes.find(':');
    size_t size = 0;
    if (colon == bytes.npos || !absl::SimpleAtoi(bytes.substr(0, colon), &size)) return false;
    bytes.remove_prefix(colon + 1);
    if (size > bytes.size()) return false;
    *text = std::string(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return bytes.empty();
}

// Equal options give equal bytes.
std::string DeterministicBytes(const v1::RewriteOptions& options) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    options.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// The extension of the input: programs depend on it.
std::string ExtensionOf(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const bool plain = extension.size() > 1 && extension.size() <= kMaxExtension &&
                     std::all_of(extension.begin() + 1, extension.end(),
                                 [](unsigned char c) { return absl::ascii_isalnum(c); });
  return plain && extension != kReportSuffix && extension != ".entry" ? extension : ".pb";
}

// The digest of everything that determines the result. The server's version is not included: asking
// for it would require the server even for graphs in the cache.
std::string CacheKey(const PrepareRequest& request, const std::string& graph,
                     const StoredProfiles& profiles) {
  core::Sha256 digest;
  digest.Update(
      Pack({kCacheFormat, OwnVersion(), request.server, DeterministicBytes(request.options),
            ExtensionOf(request.input),
            request.format.has_value() ? absl::StrCat(static_cast<int>(*request.format)) : "",
            profiles.Contents()}));
  digest.Update(graph);
  return absl::BytesToHexString(digest.Finish());
}

// Orders by how unlikely a fit is, then by peak.
bool IsWorseOff(const core::RewriteFigures& a, const core::RewriteFigures& b) {
  const auto rank = [](v1::Fit fit) {
    return fit == v1::FIT_DOES_NOT_FIT ? 3
           : fit == v1::FIT_UNKNOWN    ? 2
           : fit == v1::FIT_FITS       ? 0
                                       : 1;
  };
  const auto peak = [](const core::RewriteFigures& of) {
    return of.fullest() != nullptr ? of.fullest()->peak_before_bytes : 0;
  };
  return std::make_pair(rank(a.fit), peak(a)) > std::make_pair(rank(b.fit), peak(b));
}

// Adds to the advice for one graph that for another of the same process, whose cuDNN has one limit:
// the smaller of the two.
void AddLimit(const v1::Advice& advice, v1::Advice* merged) {
  for (const std::string& variable : advice.environment()) {
    const int mib = internal::WorkspaceLimitMib(variable);
    if (mib == 0) continue;
    auto& all = *merged->mutable_environment();
    const auto other = std::find_if(all.begin(), all.end(), [](const std::string& of) {
      return internal::WorkspaceLimitMib(of) > 0;
    });
    if (other == all.end()) {
      *all.Add() = variable;
    } else if (mib < internal::WorkspaceLimitMib(*other)) {
      *other = variable;
    }
  }
}

// Summarizes a rewrite for a reader of the cache (PreparedGraph).
v1::RewriteReport Brief(const std::vector<RewrittenGraph>& graphs) {
  v1::RewriteReport brief;
  std::optional<core::RewriteFigures> worst;
  for (const RewrittenGraph& graph : graphs) {
    if (!graph.kept_because.ok()) continue;
    const v1::RewriteReport& report = graph.response.report();
    const bool edits =
        brief.outcome() == v1::OUTCOME_REWRITTEN || brief.outcome() == v1::OUTCOME_DRY_RUN;
    brief.set_outcome(edits ? brief.outcome() : report.outcome());
    if (brief.summary().empty()) brief.set_summary(report.summary());
    brief.mutable_devices()->MergeFrom(report.devices());
    brief.set_node_count_before(brief.node_count_before() + report.node_count_before());
    brief.set_node_count_after(brief.node_count_after() + report.node_count_after());
    if (!brief.has_advice()) {
      *brief.mutable_advice() = report.advice();
    } else {
      AddLimit(report.advice(), brief.mutable_advice());
    }
    brief.set_strategy(report.strategy());
    for (const v1::Warning& warning : report.warnings()) {
      if (warning.code() == v1::WARNING_CODE_TARGETS_ARE_SINKS ||
          warning.code() == v1::WARNING_CODE_BATCH_SIZE_UNUSED ||
          warning.code() == v1::WARNING_CODE_MAY_RUN_OUT) {
        *brief.add_warnings() = warning;
      }
    }
    core::RewriteFigures figures = core::FiguresOf(report);
    if (worst.has_value() && !IsWorseOff(figures, *worst)) continue;
    worst = std::move(figures);
    *brief.mutable_fits() = report.fits();
    brief.clear_forecast_before();
    brief.clear_forecast_after();
    brief.clear_hardware();
    if (report.has_forecast_before()) *brief.mutable_forecast_before() = report.forecast_before();
    if (report.has_forecast_after()) *brief.mutable_forecast_after() = report.forecast_after();
    if (report.has_hardware()) *brief.mutable_hardware() = report.hardware();
  }
  return brief;
}

// Copies the report of `entry` to the requested path.
absl::Status CopyReport(const Folder& folder, const PreparedGraph& prepared, const OutputPath& to) {
  const std::string name = std::filesystem::path(prepared.report_path).filename();
  const absl::StatusOr<std::string> report = ReadWholeFile(folder, name, kMaxReportBytes);
  if (!report.ok()) return report.status();
  return WriteUserFile(to, *report);
}

// Reads the entry if it is complete.
bool TakeFromCache(const CacheEntry& entry, PreparedGraph* prepared) {
  const std::optional<CacheEntry::Contents> contents = entry.Load();
  if (!contents.has_value() ||
      !google::protobuf::util::JsonStringToMessage(contents->note, &prepared->report).ok()) {
    return false;
  }
  for (const std::string& suffix : contents->suffixes) {
    (suffix == kReportSuffix ? prepared->report_path : prepared->graph_path) = entry.PathOf(suffix);
  }
  prepared->cached = true;
  return true;
}

// Shares the failure with waiting processes, unless this one was cancelled or ran out of time:
// others may have more.
void ShareFailure(const absl::Status& status, const PrepareRequest& request,
                  const CacheEntry& entry) {
  if (absl::IsDeadlineExceeded(status) || absl::IsCancelled(status)) return;
  entry.StoreFailure(Pack({request.connection, ErrorToBytes(status)}));
}

// OK: no process with the same request failed while this one waited for the entry.
absl::Status SharedFailure(const PrepareRequest& request, const CacheEntry& entry) {
  const std::optional<std::string> note = entry.FailureWhileWaiting();
  std::string connection, error;
  if (!note.has_value() || !Unpack(*note, {&connection, &error})) return absl::OkStatus();
  return connection == request.connection ? ErrorFromBytes(error) : absl::OkStatus();
}

// Rewrites `graph` and stores the result in `entry`.
absl::StatusOr<PreparedGraph> RewriteAndStore(const std::string& graph, const InputPath& input,
                                              const PrepareRequest& request,
                                              const StoredProfiles& profiles,
                                              const CacheEntry& entry,
                                              const internal::Deadline& deadline,
                                              ChildStage& stage) {
  stage = request.server.empty() ? "rewriting the graph" : "waiting for the server's answer";
  CallOptions call = request.call;
  call.timeout = deadline.Remaining();
  absl::StatusOr<RewrittenFile> rewritten =
      RewriteGraphFile(graph, request.format, request.options, request.connect(), call,
                       /*plans=*/nullptr, &profiles);
  if (!rewritten.ok()) {
    ShareFailure(rewritten.status(), request, entry);
    return WithInputName(rewritten.status(), input);
  }
  stage = "writing to the cache folder";
  PreparedGraph prepared;
  prepared.report = Brief(rewritten->graphs);
  prepared.report_path = entry.PathOf(kReportSuffix);
  std::vector<CacheFile> files = {{kReportSuffix, rewritten->ReportJson()}};
  if (rewritten->bytes != graph) {
    const std::string extension = ExtensionOf(request.input);
    prepared.graph_path = entry.PathOf(extension);
    files.push_back({extension, std::move(rewritten->bytes)});
  }
  const std::string note = ToJsonWithoutZeros(prepared.report);
  if (absl::Status status = entry.Store(files, note); !status.ok()) return status;
  return prepared;
}

absl::StatusOr<PreparedGraph> Prepare(const PrepareRequest& request,
                                      const internal::Deadline& deadline, ChildStage& stage) {
  stage = "opening the cache folder";
  const absl::StatusOr<Folder> folder = OpenCacheFolder(request.cache_dir);
  if (!folder.ok()) return folder.status();
  stage = "reading the graph";
  const InputPath input = InputPath::Graph(request.input);
  if (input.is_folder() && input.path() == input.name()) {
    return FileError(EISDIR, "read", request.input, "give --graph a graph file");
  }
  if (input.is_folder()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("--graph: ", request.input,
                     " is a folder, and what else is in it would be missing beside the rewritten "
                     "copy; give the file in it"),
        {{"flag", "--graph"}});
  }
  // Compares files, not names: links and other spellings count.
  const OutputPath report(request.report, "--report");
  if (report.given() && SameFile(report, input.path())) {
    return OverwritesError("--report", request.report, "--graph");
  }
  const absl::StatusOr<std::string> graph = ReadInput(input, CancellationToken());
  if (!graph.ok()) return graph.status();
  const StoredProfiles profiles =
      request.stored_profiles ? StoredProfiles::Beside(input) : StoredProfiles();
  stage = "waiting for another run that rewrites the same graph";
  const absl::StatusOr<CacheEntry> entry =
      CacheEntry::Lock(*folder, CacheKey(request, *graph, profiles));
  if (!entry.ok()) return entry.status();
  stage = "reading the cache";
  absl::StatusOr<PreparedGraph> prepared = PreparedGraph();
  // After a server's dry run it is asked again each time: it may rewrite by now.
  if (!TakeFromCache(*entry, &*prepared) ||
      (prepared->report.outcome() == v1::OUTCOME_DRY_RUN && !request.options.dry_run())) {
    if (absl::Status status = SharedFailure(request, *entry); !status.ok()) {
      return WithInputName(status, input);
    }
    prepared = RewriteAndStore(*graph, input, request, profiles, *entry, deadline, stage);
    if (!prepared.ok()) return prepared;
    stage = "deleting old entries of the cache";
    PruneCache(*folder, absl::Now() - absl::Hours(24 * kUnusedDays));
  }
  if (report.given()) {
    stage = "writing the report";
    if (absl::Status s = CopyReport(*folder, *prepared, report); !s.ok()) return s;
  }
  return prepared;
}

}  // namespace

absl::Status OverwritesError(absl::string_view flag, const std::string& path,
                             absl::string_view other_flag) {
  return core::InvalidError(
      v1::ERROR_REASON_CONFLICTING_OPTIONS,
      absl::StrCat(flag, " ", core::Quoted(path), " would overwrite the file of ", other_flag,
                   "; give another name"),
      {{"flag", flag}});
}

absl::StatusOr<PreparedGraph> PrepareGraph(const PrepareRequest& request,
                                           const internal::Deadline& deadline) {
  PrepareRequest complete = request;
  for (const v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_REPORT}) {
    complete.options.add_outputs(output);
  }
  const absl::StatusOr<std::string> bytes =
      RunInChild(deadline, [&](ChildStage& stage) -> absl::StatusOr<std::string> {
        stage = "asking nvidia-smi for the memory of the GPUs";
        const auto filled = FillHardware(
            std::min(kNvidiaSmiTime, deadline.Remaining() / kNvidiaSmiPart), &complete.options);
        if (!filled.ok()) return filled.status();
        const std::string warning = LimitToFreeMemory(&complete.options);
        absl::StatusOr<PreparedGraph> prepared = Prepare(complete, deadline, stage);
        if (!prepared.ok()) return prepared.status();
        return Pack({prepared->graph_path, prepared->report_path, prepared->cached ? "cached" : "",
                     prepared->report.SerializeAsString(), warning});
      });
  if (!bytes.ok()) return bytes.status();
  PreparedGraph prepared;
  std::string cached, report;
  if (!Unpack(*bytes,
              {&prepared.graph_path, &prepared.report_path, &cached, &report, &prepared.warning}) ||
      !prepared.report.ParseFromString(report)) {
    return absl::InternalError("the child process sent an answer that cannot be read");
  }
  prepared.cached = !cached.empty();
  return prepared;
}

}  // namespace spillway::cli
