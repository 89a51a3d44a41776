#include "client_lib/format/graph_file.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/format/binary_places.h"
#include "client_lib/format/graph_text.h"
#include "client_lib/format/text_places.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::format {
namespace {

constexpr char kIndent[] = "  ";  // TextFormat's.

absl::Status TooLarge(absl::string_view what, size_t size) {
  return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                     absl::StrCat(what, " has ", size,
                                  " bytes, and protobuf reads no more than 2 GiB (2147483647)"));
}

absl::Status NoGraph(GraphFormat format, size_t num_meta_graphs) {
  const absl::string_view what =
      IsSavedModel(format)
          ? (num_meta_graphs == 0 ? "the SavedModel has no MetaGraph"
                                  : "no MetaGraph of the SavedModel has a graph (graph_def)")
          : "the MetaGraphDef has no graph (graph_def)";
  return core::InvalidError(
      v1::ERROR_REASON_EMPTY_GRAPH,
      absl::StrCat(what, "; save the model with its graph, or give the graph itself"));
}

std::string Indentation(int depth) {
  std::string indent;
  for (int i = 0; i < depth; ++i) indent += kIndent;
  return indent;
}

}  // namespace

absl::StatusOr<GraphFile> GraphFile::Read(std::string bytes, absl::optional<GraphFormat> format) {
  if (bytes.size() > kMaxFileBytes) return TooLarge("the file", bytes.size());
  GraphFile file;
  file.bytes_ = std::make_unique<std::string>(std::move(bytes));
  const absl::string_view content = *file.bytes_;
  if (!format) {
    absl::StatusOr<GraphFormat> found = RecogniseFormat(content);
    if (!found.ok()) return found.status();
    format = *found;
  }
  file.format_ = *format;
  auto places =
      IsText(*format) ? FindTextGraphs(content, *format) : FindBinaryGraphs(content, *format);
  if (!places.ok()) return places.status();
  file.places_ = *std::move(places);
  if (absl::c_none_of(file.places_, [](const GraphPlace& place) { return place.present; })) {
    return NoGraph(*format, file.places_.size());
  }
  if (!IsText(*format)) return file;
  for (size_t i = 0; i < file.places_.size(); ++i) {
    const ByteRange range = file.places_[i].content;
    auto graph = GraphFromText(content.substr(range.begin, range.size()), file.places_[i].position);
    if (!graph.ok()) return file.WithName(i, graph.status());
    file.converted_.push_back(*std::move(graph));
  }
  return file;
}

absl::string_view GraphFile::graph(size_t i) const {
  if (!places_[i].present) return "";
  if (IsText(format_)) return converted_[i];
  return absl::string_view(*bytes_).substr(places_[i].content.begin, places_[i].content.size());
}

std::string GraphFile::NameOf(size_t i) const {
  if (!IsSavedModel(format_)) return "";
  return absl::StrCat("MetaGraph ", i, " (", tags(i).empty() ? "no tags" : "tags: ",
                      absl::CHexEscape(absl::StrJoin(tags(i), ", ")), ")");
}

absl::Status GraphFile::WithName(size_t i, const absl::Status& status) const {
  if (!IsSavedModel(format_)) return status;
  absl::Status named(status.code(), absl::StrCat(NameOf(i), ": ", status.message()));
  status.ForEachPayload([&named](absl::string_view type_url, const absl::Cord& payload) {
    named.SetPayload(type_url, payload);
  });
  return named;
}

absl::StatusOr<std::string> GraphFile::WithGraphs(
    std::vector<absl::optional<std::string>> graphs) && {
  size_t size = bytes_->size();
  bool changed = false;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!graphs[i]) continue;
    if (*graphs[i] == graph(i)) {
      graphs[i].reset();
      continue;
    }
    changed = true;
    if (IsText(format_)) {
      auto text = GraphToText(*graphs[i], places_[i].depth);
      if (!text.ok()) return text.status();
      graphs[i] = places_[i].depth == 0
                      ? *std::move(text)
                      : absl::StrCat("\n", *text, Indentation(places_[i].depth - 1));
    }
    size += graphs[i]->size() - places_[i].content.size();
  }
  if (!changed) return std::move(*bytes_);
  if (size > core::kMaxMessageBytes) return TooLarge("the rewritten file", size);
  if (IsGraphDef(format_)) return *std::move(graphs[0]);
  std::string out;
  out.reserve(size + 10 * graphs.size());  // Lengths may need more bytes than before.
  size_t done = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!graphs[i]) continue;
    absl::Status status = AppendWithGraph(*bytes_, places_[i], *graphs[i], &done, &out);
    if (!status.ok()) return WithName(i, status);
    graphs[i].reset();  // It has been copied to `out`.
  }
  out.append(*bytes_, done, std::string::npos);
  if (out.size() > core::kMaxMessageBytes) return TooLarge("the rewritten file", out.size());
  return out;
}

}  // namespace spillway::format
