#include "server/observe/request_record.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/journal_fields.h"
#include "server/base/error_fault.h"
#include "server/base/status_to_grpc.h"

namespace spillway::server {
namespace {

namespace journal = core::journal;

// Sufficient precision: a ten-thousandth of a step.
constexpr double kSlowdownDigits = 1e4;

void AddIfKnown(const char* name, const std::string& value, LogFields* fields) {
  if (!value.empty()) (*fields)[name] = value;
}

void AddIfKnown(const char* name, std::optional<int64_t> value, LogFields* fields) {
  if (value.has_value()) (*fields)[name] = *value;
}

std::string FitName(v1::Fit fit) {
  if (fit == v1::FIT_UNSPECIFIED) return "";
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Fit_Name(fit), "FIT_"));
}

void AddRewrite(const RewriteRecord& rewrite, LogFields* fields) {
  const core::RewriteFigures& figures = rewrite.figures;
  (*fields)[journal::kOutcome] = OutcomeName(rewrite.outcome);
  (*fields)[journal::kAnsweredFrom] = AnsweredFromName(rewrite.from);
  AddIfKnown(journal::kMachine, figures.machine, fields);
  AddIfKnown(journal::kFit, FitName(figures.fit), fields);
  if (figures.swapped_tensors > 0) {
    (*fields)[journal::kSwappedTensors] = figures.swapped_tensors;
    (*fields)[journal::kSwapOutBytes] = figures.swap_out_bytes;
    (*fields)[journal::kSwapInBytes] = figures.swap_in_bytes;
  }
  if (figures.recomputed_nodes > 0) {
    (*fields)[journal::kRecomputedNodes] = figures.recomputed_nodes;
    (*fields)[journal::kRecomputedBytes] = figures.recomputed_bytes;
    (*fields)[journal::kRecomputeNs] = figures.recompute_ns;
  }
  if (const core::GpuFigures* const gpu = figures.fullest(); gpu != nullptr) {
    if (!rewrite.does_not_fit()) {
      (*fields)[journal::kGpus] = figures.gpus.size();
      (*fields)[journal::kPeakBeforeBytes] = gpu->peak_before_bytes;
    }
    AddIfKnown(journal::kPeakAfterBytes, gpu->peak_after_bytes, fields);
    AddIfKnown(journal::kBudgetBytes, gpu->budget_bytes, fields);
    AddIfKnown(journal::kNeedBytes, gpu->need_bytes, fields);
  }
  AddIfKnown(journal::kHostPeakBytes, figures.host_peak_bytes, fields);
  AddIfKnown(journal::kStepBeforeNs, figures.step_before_ns, fields);
  AddIfKnown(journal::kStepAfterNs, figures.step_after_ns, fields);
  if (const std::optional<double> slowdown = rewrite.slowdown(); slowdown.has_value()) {
    (*fields)[journal::kSlowdown] = std::round(*slowdown * kSlowdownDigits) / kSlowdownDigits;
  }
}

// Adds all fields except the error message.
void AddFields(const RequestRecord& record, LogFields* fields) {
  (*fields)[journal::kMethod] = MethodName(record.method);
  (*fields)[journal::kStrategy] = StrategyLabel(record.method, record.strategy);
  (*fields)[journal::kCode] = CodeName(record.code);
  (*fields)[journal::kBytesIn] = record.bytes_in;
  (*fields)[journal::kBytesOut] = record.bytes_out;
  (*fields)[journal::kMilliseconds] =
      std::round(absl::ToDoubleMilliseconds(record.duration) * 10) / 10;
  (*fields)[journal::kPeer] = record.caller.peer;
  (*fields)[journal::kId] = record.id;
  AddIfKnown(journal::kTraceparent, record.traceparent, fields);
  AddIfKnown(journal::kCaller, record.caller_name, fields);
  AddIfKnown(journal::kCertificate, record.caller.certificate, fields);
  AddIfKnown(journal::kJob, record.job.job, fields);
  AddIfKnown(journal::kUser, record.job.user, fields);
  AddIfKnown(journal::kQueue, record.job.queue, fields);
  AddIfKnown(journal::kModel, record.job.model, fields);
  if (record.code != absl::StatusCode::kOk) {
    (*fields)[journal::kReason] = ReasonName(record.reason);
  }
  if (record.rewrite.has_value()) AddRewrite(*record.rewrite, fields);
}

}  // namespace

LogFields FieldsOf(const RequestRecord& record) {
  LogFields fields = LogFields::object();
  AddFields(record, &fields);
  AddIfKnown(journal::kError, record.error, &fields);
  return fields;
}

std::string JournalLine(const RequestRecord& record, absl::Time end) {
  LogFields fields = LogFields::object();
  fields[journal::kTime] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", end, absl::UTCTimeZone());
  AddFields(record, &fields);
  return fields.dump(-1, ' ', /*ensure_ascii=*/true, LogFields::error_handler_t::replace);
}

}  // namespace spillway::server
