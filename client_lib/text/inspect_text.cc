#include "client_lib/text/inspect_text.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

// "161 ApplyMomentum, 3 AssignAdd".
std::string CountsText(const google::protobuf::RepeatedPtrField<v1::NameCount>& counts) {
  return OrNone(absl::StrJoin(counts, ", ", [](std::string* out, const v1::NameCount& entry) {
    absl::StrAppend(out, entry.count(), " ", entry.name());
  }));
}

std::string ConditionalsText(const v1::GraphSummary& summary) {
  std::vector<std::string> parts;
  const auto add = [&parts](int64_t count, const char* op) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", op));
  };
  add(summary.switch_count(), "Switch");
  add(summary.merge_count(), "Merge");
  add(summary.if_count(), "If or Case");
  add(summary.while_count(), "While");
  if (summary.call_count() > 0) {
    parts.push_back(FormatCount(summary.call_count(), "function call"));
  }
  return OrNone(absl::StrJoin(parts, ", "));
}

std::string ReasonText(v1::SizeUnknown reason, Style style) {
  switch (reason) {
    case v1::SIZE_UNKNOWN_NO_SHAPE:
      return "without a shape in the graph";
    case v1::SIZE_UNKNOWN_RANK:
      return "of unknown rank";
    case v1::SIZE_UNKNOWN_DIM:
      return style.WithOptions("with an unknown dimension (give step.batch_size or step.feeds)");
    case v1::SIZE_UNKNOWN_DTYPE:
      return "references, handles and strings, or of a type that is not known";
    default:
      return "for another reason";
  }
}

std::string RewrittenText(const v1::GraphSummary& summary) {
  const std::string swaps = absl::StrCat(": ", FormatCount(summary.swap_out_count(), "swap-out"),
                                         ", ", FormatCount(summary.swap_in_count(), "swap-in"));
  switch (summary.rewritten_by()) {
    case v1::REWRITTEN_BY_SPILLWAY:
      return absl::StrCat("by Spillway", swaps);
    case v1::REWRITTEN_BY_OTHER:
      return absl::StrCat("by another program (TFLMS)", swaps);
    default:
      return "no";
  }
}

std::string VersionText(const v1::GraphSummary& summary) {
  std::vector<std::string> parts;
  if (summary.has_producer_version()) {
    parts.push_back(absl::StrCat("producer ", summary.producer_version()));
  }
  if (summary.has_min_consumer_version()) {
    parts.push_back(absl::StrCat("oldest reader ", summary.min_consumer_version()));
  }
  return parts.empty() ? "not stated" : absl::StrJoin(parts, ", ");
}

Rows Facts(const v1::GraphSummary& summary, Style style) {
  Rows rows = {
      {"size", core::BytesText(summary.size_bytes())},
      {"nodes", absl::StrCat(summary.node_count())},
      {"edges", absl::StrCat(summary.data_edge_count(), " data, ", summary.control_edge_count(),
                             " control")},
      {"levels", absl::StrCat(summary.level_count(), ", the longest path from ",
                              summary.longest_path_begin(), " to ", summary.longest_path_end())},
      {"version", VersionText(summary)},
      {"rewritten", RewrittenText(summary)},
      {"variables", CountsText(summary.variables())},
      {"updates", CountsText(summary.updates())},
      {"conditionals", ConditionalsText(summary)},
  };
  if (summary.frames().empty()) rows.push_back({"loop frames", "none"});
  if (summary.unknown_frame_node_count() > 0) {
    rows.push_back({"", absl::StrCat(FormatCount(summary.unknown_frame_node_count(), "node"),
                                     " in an unknown loop frame: TensorFlow would refuse "
                                     "to run this graph")});
  }
  if (summary.functions().empty()) rows.push_back({"functions", "none"});
  if (summary.placeholders().empty()) rows.push_back({"placeholders", "none"});
  rows.push_back(
      {"tensors",
       absl::StrCat(summary.tensor_count(), " read by some node; ", summary.known_size_count(),
                    " of known size, ", core::BytesText(summary.known_size_bytes()), " together")});
  for (const v1::UnknownSizeCount& unknown : summary.unknown_sizes()) {
    rows.push_back({"", absl::StrCat(unknown.count(),
                                     " of unknown size: ", ReasonText(unknown.reason(), style))});
  }
  return rows;
}

// A table with a heading of the first `top` of `entries`; empty without any.
template <typename Entries, typename RowOf>
std::string Table(std::vector<std::string> head, const Entries& entries, int top, Style style,
                  RowOf row_of) {
  if (entries.empty() || top == 0) return "";
  Rows rows = {std::move(head)};
  for (int i = 0; i < entries.size() && i < top; ++i) rows.push_back(row_of(entries[i]));
  std::string text = absl::StrCat("\n", FormatTable(rows, style));
  if (entries.size() > top) absl::StrAppend(&text, "  ... ", entries.size() - top, " more\n");
  return text;
}

std::string CountTable(const char* head, const char* for_empty,
                       const google::protobuf::RepeatedPtrField<v1::NameCount>& counts, int top,
                       Style style) {
  return Table({head, "nodes"}, counts, top, style, [for_empty](const v1::NameCount& entry) {
    // Device strings may contain control characters, which a terminal would interpret.
    const std::string name = absl::CHexEscape(entry.name());
    return std::vector<std::string>{name.empty() ? for_empty : name, absl::StrCat(entry.count())};
  });
}

std::vector<std::string> TensorRow(const v1::TensorSummary& tensor) {
  return {tensor.tensor(), tensor.dtype().empty() ? "-" : tensor.dtype(),
          tensor.has_shape() ? tensor.shape() : "-",
          tensor.has_size_bytes() ? core::BytesText(tensor.size_bytes()) : "-"};
}

}  // namespace

std::string FormatGraphSummary(const v1::GraphSummary& summary, int top, Style style) {
  return absl::StrCat(
      FormatFacts(Facts(summary, style), style),
      CountTable("op type", "", summary.op_types(), top, style),
      CountTable("device", "(none given)", summary.devices(), top, style),
      CountTable("name scope", "(no scope)", summary.scopes(), top, style),
      Table({"loop frame", "nodes", "inside of"}, summary.frames(), top, style,
            [](const v1::LoopFrame& frame) {
              return std::vector<std::string>{frame.name(), absl::StrCat(frame.node_count()),
                                              frame.parent()};
            }),
      Table({"function", "nodes"}, summary.functions(), top, style,
            [](const v1::FunctionSummary& function) {
              return std::vector<std::string>{function.name(), absl::StrCat(function.node_count())};
            }),
      Table({"placeholder", "type", "shape", "size"}, summary.placeholders(), top, style,
            TensorRow),
      Table({"largest tensor", "type", "shape", "size"}, summary.largest_tensors(), top, style,
            TensorRow));
}

}  // namespace spillway::text
