// A file that holds TensorFlow graphs: a GraphDef, a MetaGraphDef or a SavedModel, in protobuf's
// binary or text form. The graphs come out as serialized GraphDefs, whatever the file is, and
// others can be put in their place; all else in the file stays as it is, byte for byte.
//
//   absl::StatusOr<GraphFile> file = GraphFile::Read(bytes, absl::nullopt);
//   std::vector<absl::optional<std::string>> graphs(file->graphs().size());
//   graphs[0] = Rewritten(file->graph(0));
//   absl::StatusOr<std::string> out = std::move(*file).WithGraphs(std::move(graphs));
//
// What that means for a graph itself: in a binary file it is the bytes that were given. In a text
// file it is printed anew, so comments and spelling of the graph are lost, but nothing that the
// graph says; everything around the block `graph_def` stays as it is.
//
// Files are not trusted: see the errors. No recursion over them; memory is the file and its
// replacement, and for text the parsed message besides. Immutable, not copyable; movable.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FILE_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FILE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_format.h"
#include "client_lib/format/graph_place.h"

namespace spillway::format {

// Protobuf, and so TensorFlow, reads no file of 2 GiB or more.
inline constexpr int64_t kMaxFileBytes = std::numeric_limits<int32_t>::max();

class GraphFile {
 public:
  // Takes the file's content. Without a format, it is recognised (RecogniseFormat).
  // Errors: MALFORMED_GRAPH naming MetaGraph and byte, or line and column; EMPTY_GRAPH for a
  // MetaGraphDef or a SavedModel in which no graph is; LIMIT_EXCEEDED above 2 GiB.
  static absl::StatusOr<GraphFile> Read(std::string bytes, absl::optional<GraphFormat> format);

  GraphFormat format() const { return format_; }
  const std::string& bytes() const { return *bytes_; }

  // One per MetaGraph, in file order; at least one.
  size_t num_graphs() const { return places_.size(); }

  // The serialized GraphDef; empty if the MetaGraph has none. Valid as long as this lives.
  absl::string_view graph(size_t i) const;
  const std::vector<std::string>& tags(size_t i) const { return places_[i].tags; }

  // "MetaGraph 1 (tags: serve, gpu)" for messages; empty where the file holds one graph by its
  // kind.
  std::string NameOf(size_t i) const;

  // The error with NameOf in front of its message.
  absl::Status WithName(size_t i, const absl::Status& status) const;

  // The file with the graphs that are set in place of its own; those that are the same bytes as
  // before, and those that are not set, stay as they are, so without any other the file comes back
  // byte for byte. LIMIT_EXCEEDED if the result would be above 2 GiB.
  // REQUIRES: one entry per graph; none set for a MetaGraph that has no graph.
  absl::StatusOr<std::string> WithGraphs(std::vector<absl::optional<std::string>> graphs) &&;

 private:
  GraphFile() = default;

  GraphFormat format_ = GraphFormat::kGraphDef;
  std::unique_ptr<std::string> bytes_;  // At a fixed address: graph() gives views.
  std::vector<GraphPlace> places_;
  std::vector<std::string> converted_;  // Text: the graphs, serialized.
};

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FILE_H_
