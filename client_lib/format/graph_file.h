// A file with TensorFlow graphs: a GraphDef, a MetaGraphDef or a SavedModel, in protobuf's binary
// or text form. The graphs are read as serialized GraphDefs, for any format, and can be replaced;
// everything else in the file stays unchanged, byte for byte.
//
//   absl::StatusOr<GraphFile> file = GraphFile::Read(bytes, absl::nullopt);
//   std::vector<absl::optional<std::string>> graphs(file->graphs().size());
//   graphs[0] = Rewritten(file->graph(0));
//   absl::StatusOr<std::string> out = std::move(*file).WithGraphs(std::move(graphs));
//
// In a binary file, a replacement graph is written as the bytes that were given. In a text file it
// is printed again, so comments and formatting within the graph are lost, but no content;
// everything around the block `graph_def` stays unchanged.
//
// Files are untrusted: see the errors. There is no recursion over them. Memory: the file and its
// replacement, and for text also the parsed message. Immutable, movable, not copyable.
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

// Protobuf, and therefore TensorFlow, cannot read files of 2 GiB or more.
inline constexpr int64_t kMaxFileBytes = std::numeric_limits<int32_t>::max();

class GraphFile {
 public:
  // Reads the content of a file. Without a format, it is recognised (RecogniseFormat).
  // Errors: MALFORMED_GRAPH naming MetaGraph and byte, or line and column; EMPTY_GRAPH for a
  // MetaGraphDef or a SavedModel without a graph; LIMIT_EXCEEDED above 2 GiB.
  static absl::StatusOr<GraphFile> Read(std::string bytes, absl::optional<GraphFormat> format);

  GraphFormat format() const { return format_; }
  const std::string& bytes() const { return *bytes_; }

  // One per MetaGraph, in file order; at least one.
  size_t num_graphs() const { return places_.size(); }

  // The serialized GraphDef; empty if the MetaGraph has none. Valid as long as this lives.
  absl::string_view graph(size_t i) const;
  const std::vector<std::string>& tags(size_t i) const { return places_[i].tags; }

  // Returns "MetaGraph 1 (tags: serve, gpu)" for messages; empty if the format has only one graph.
  std::string NameOf(size_t i) const;

  // Returns `status` with NameOf prefixed to its message.
  absl::Status WithName(size_t i, const absl::Status& status) const;

  // Returns the file with the given graphs in place of its own. Graphs that are not set or have the
  // same bytes as before stay unchanged, so if no graph differs, so does no byte of the file.
  // LIMIT_EXCEEDED if the result would exceed 2 GiB.
  // REQUIRES: one entry per graph; none set for a MetaGraph that has no graph.
  absl::StatusOr<std::string> WithGraphs(std::vector<absl::optional<std::string>> graphs) &&;

 private:
  GraphFile() = default;

  GraphFormat format_ = GraphFormat::kGraphDef;
  std::unique_ptr<std::string> bytes_;  // At a fixed address: graph() returns views.
  std::vector<GraphPlace> places_;
  std::vector<std::string> converted_;  // Text: the graphs, serialized.
};

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FILE_H_
