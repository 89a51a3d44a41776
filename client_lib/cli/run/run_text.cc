#include "client_lib/cli/run/run_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/flags/flag_names.h"
#include "client_lib/text/cost_text.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/rewrite_figures.h"

namespace spillway::cli {
namespace {

// Settings that the program's sessions must be created with.
std::string SessionText(const v1::Advice& advice) {
  if (advice.internal_fragmentation_fraction() == 0) return "";
  return absl::StrCat(
      ", for sessions with gpu_options.experimental.internal_fragmentation_fraction ",
      advice.internal_fragmentation_fraction());
}

}  // namespace

std::string RunText(const std::string& graph, const PreparedGraph& prepared) {
  const v1::RewriteReport& report = prepared.report;
  std::vector<std::string> notes;
  if (const v1::Hardware& hardware = report.hardware().hardware();
      hardware.gpu_memory_source() == v1::MEMORY_SOURCE_NVIDIA_SMI) {
    notes.push_back(
        absl::StrCat(core::BytesText(hardware.gpu_memory_bytes()), " per GPU from nvidia-smi"));
  }
  if (report.hardware().preset_assumed()) {
    notes.push_back(absl::StrCat("assuming ", report.hardware().hardware().preset(),
                                 ", as neither --hardware nor nvidia-smi identifies the machine: "
                                 "see spillway doctor"));
  }
  for (const v1::Warning& warning : report.warnings()) {
    if (warning.code() == v1::WARNING_CODE_TARGETS_ARE_SINKS) {
      notes.push_back("no weight updates were found: is it a training graph?");
    } else if (warning.code() == v1::WARNING_CODE_BATCH_SIZE_UNUSED) {
      notes.push_back("the graph states a batch other than --batch-size");
    }
  }
  if (prepared.cached) notes.push_back("from the cache");
  const std::string end =
      absl::StrCat(notes.empty() ? "" : absl::StrCat(" (", absl::StrJoin(notes, ", "), ")"),
                   SessionText(report.advice()));
  if (!prepared.graph_path.empty()) {
    return absl::StrCat(graph, " -> ", prepared.graph_path, ": ", InFlags(text::CostText(report)),
                        end);
  }
  // Reporting that it fits unchanged is enough: the summary would only repeat it.
  const bool says_fit = core::FiguresOf(report).fit == v1::FIT_FITS && report.fits_size() > 0 &&
                        report.fits(0).not_needed();
  const bool says_all = says_fit || report.outcome() == v1::OUTCOME_DRY_RUN;
  return absl::StrCat(graph, " stays as it is: ", InFlags(text::CostText(report)),
                      says_all ? "" : "; ", says_all ? "" : InFlags(report.summary()), end);
}

}  // namespace spillway::cli
