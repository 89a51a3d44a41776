// Limits the total size of the names in a report, patch or plan. Each node is named as often as in
// the plan, so a name of a megabyte may be repeated very often; normally all names are a fraction
// of the graph.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_REPORT_NAMES_H_
#define SPILLWAY_REWRITE_CORE_REPORT_REPORT_NAMES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// Errors: RESULT_TOO_LARGE if all names together are many times as large as the graph; those of
// `stop`. One thread at a time.
class ReportNames {
 public:
  // `what`: "the report", for the error.
  ReportNames(const Graph& graph, absl::string_view what, const StopToken& stop)
      : graph_(graph),
        what_(what),
        stop_(stop),
        poll_(stop),
        limit_(std::max(kAlwaysAllowed,
                        kMaxTimesTheGraph * static_cast<int64_t>(graph.bytes().size()))) {}

  // Counts a text that is about to be added, or was just added.
  absl::Status Count(size_t bytes) {
    if (poll_.Tick()) return stop_.status("report");
    bytes_ += static_cast<int64_t>(bytes);
    if (bytes_ <= limit_) return absl::OkStatus();
    return Error(absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
                 absl::StrCat(what_, " would have more than ", BytesText(limit_),
                              " of names; request only the graph (outputs), swap fewer "
                              "tensors (n_tensors), or shorten names of megabytes"),
                 {{"limit", absl::StrCat(limit_)}});
  }
  absl::Status Add(NodeId node, std::string* to) {
    const absl::string_view name = graph_.name(node);
    absl::Status status = Count(name.size());
    if (status.ok()) to->assign(name.data(), name.size());
    return status;
  }
  template <typename Nodes>
  absl::Status AddAll(const Nodes& nodes, google::protobuf::RepeatedPtrField<std::string>* to) {
    for (NodeId node : nodes) {
      if (absl::Status s = Add(node, to->Add()); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kMaxTimesTheGraph = 4;
  static constexpr int64_t kAlwaysAllowed = int64_t{16} << 20;

  const Graph& graph_;
  const absl::string_view what_;
  const StopToken& stop_;
  StopPoller poll_;
  const int64_t limit_;
  int64_t bytes_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_REPORT_NAMES_H_
