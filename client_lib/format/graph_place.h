// Where in a file's bytes the graphs are.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_PLACE_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_PLACE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::format {

// Half-open, in bytes from the start of the file.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};

// Line and column, from 0, as protobuf counts them: a column is a byte, but a tab advances to the
// next multiple of 8.
struct TextPosition {
  int line = 0;
  int column = 0;
};

// The length varint in front of a message.
struct LengthPrefix {
  ByteRange varint;
  size_t value = 0;
};

// Limits of a file. Real models have a few; a file of nothing else would take many times its size
// in memory.
inline constexpr size_t kMaxMetaGraphs = 1000;
inline constexpr size_t kMaxTags = 100;

// One graph: the content of a field graph_def.
struct GraphPlace {
  bool present = false;  // False: the MetaGraph has no field graph_def; ignore the other fields.
  ByteRange content;     // Without tag and length; in text, between the braces.
  std::vector<LengthPrefix> lengths;  // Binary: of all enclosing messages, outermost first.
  TextPosition position;              // Text: of the content's start.
  int depth = 0;                      // Text: the number of enclosing messages.
  std::vector<std::string> tags;      // Of its MetaGraph; at most kMaxTags.
};

// Returns RESOURCE_EXHAUSTED (LIMIT_EXCEEDED), for more than kMaxMetaGraphs.
inline absl::Status TooManyMetaGraphs() {
  return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                     absl::StrCat("the SavedModel has more than ", kMaxMetaGraphs, " MetaGraphs"));
}

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_PLACE_H_
