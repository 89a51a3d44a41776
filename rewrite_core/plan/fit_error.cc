#include "rewrite_core/plan/fit_error.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// Whether the bound is the reason that nothing fits. If the resident buffers alone are too much,
// they explain more.
bool IsProof(const FitFailure& failure, int64_t budget_bytes) {
  return failure.lower_bound_bytes > budget_bytes && !failure.lower_bound_node.empty() &&
         failure.resident_bytes <= budget_bytes;
}

std::string FailureText(const FitFailure& failure, int64_t budget_bytes) {
  if (IsProof(failure, budget_bytes)) {
    return absl::StrCat("node ", Quoted(failure.lower_bound_node), " alone takes ",
                        BytesText(failure.lower_bound_bytes),
                        " while it runs, with resident buffers and tensor lists");
  }
  if (failure.node.empty()) {
    return absl::StrCat("the resident buffers (variables, constants) take ",
                        BytesText(failure.resident_bytes),
                        failure.fragmented ? ", and free memory is too fragmented for them" : "");
  }
  return absl::StrCat(
      "at best, node ", Quoted(failure.node), " asks for ", BytesText(failure.requested_bytes),
      " while ", BytesText(failure.in_use_bytes), " are in use",
      failure.on_host ? " on the host" : "",
      failure.in_chunks    ? ", and the rest is lost in chunks of up to twice their tensor's size"
      : failure.fragmented ? ", and free memory is fragmented"
                           : "");
}

std::string BoundText(const FitFailure& failure, int64_t budget_bytes) {
  if (failure.lower_bound_bytes == 0 || IsProof(failure, budget_bytes)) return "";
  const std::string& node = failure.lower_bound_node;
  return absl::StrCat("; no plan can fit in less than ", BytesText(failure.lower_bound_bytes),
                      " of that", node.empty() ? "" : absl::StrCat(" (", node, ")"));
}

// The TensorFlow option that helps against fragmentation, unless it was tried.
absl::string_view PiecesText(const FitFailure& failure, const Hardware& hardware) {
  const bool is_tried = hardware.internal_fragmentation_fraction > 0;
  if (!failure.fragmented || failure.on_host || is_tried) return "";
  return "have TensorFlow split chunks of memory sooner (hardware.internal_fragmentation_fraction, "
         "such as 0.001, here and in the session's gpu_options.experimental)";
}

}  // namespace

std::string GpuText(absl::string_view gpu) {
  return gpu.empty() ? "the GPU" : absl::StrCat("GPU ", Quoted(gpu));
}

std::string BudgetText(const Hardware& hardware, int64_t budget_bytes) {
  return absl::StrCat(BytesText(budget_bytes), " (", hardware.MemoryOrigin(), ")");
}

absl::Status DoesNotFitError(absl::string_view claim, const FitFailure& failure,
                             const Hardware& hardware, int64_t budget_bytes,
                             const FitRemedy& remedy) {
  const int64_t smallest = remedy.smallest_budget_bytes;
  const int64_t memory = smallest > 0 ? hardware.GpuMemoryFor(smallest) : 0;
  // The remedy covers known memory only.
  const bool is_partial = !failure.unknown.empty() && smallest > 0;
  const std::string help =
      smallest > 0 ? absl::StrCat(BytesText(memory), " (", memory, " bytes) of GPU memory ",
                                  remedy.effect, is_partial ? " as far as is known" : "")
                   : "no budget helps";
  const std::string resident = absl::StrCat(failure.resident_bytes);
  const std::string budget = absl::StrCat(budget_bytes);
  const std::string source = MemorySourceName(hardware.gpu_memory_source);
  const std::string smallest_text = absl::StrCat(smallest);
  const std::string memory_text = absl::StrCat(memory);
  const std::string bound_text = absl::StrCat(failure.lower_bound_bytes);
  std::vector<ErrorDetail> details = {{"device", failure.gpu},
                                      {"node", failure.node},
                                      {"resident_bytes", resident},
                                      {"budget_bytes", budget},
                                      {"budget_source", source}};
  if (failure.lower_bound_bytes > 0) {
    details.push_back({"lower_bound_bytes", bound_text});
    details.push_back({"lower_bound_node", failure.lower_bound_node});
  }
  if (smallest > 0) {
    details.push_back({"smallest_budget_bytes", smallest_text});
    details.push_back({"smallest_gpu_memory_bytes", memory_text});
  }
  // Resident memory does not depend on the batch.
  const char* const batch =
      failure.resident_bytes > budget_bytes ? "" : "; or take a smaller batch";
  // It costs nothing, and comes first if it is the cause.
  const absl::string_view pieces = PiecesText(failure, hardware);
  const bool is_cause = failure.in_chunks && !pieces.empty();
  return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
               absl::StrCat(claim, ": ", FailureText(failure, budget_bytes), "; ",
                            is_cause ? absl::StrCat(pieces, "; ") : "", help,
                            BoundText(failure, budget_bytes),
                            is_partial ? absl::StrCat("; ", failure.unknown) : "", batch,
                            is_cause || pieces.empty() ? "" : absl::StrCat(", or ", pieces)),
               details);
}

}  // namespace spillway::core
