// The file formats of TensorFlow graphs.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::format {

// A message (GraphDef, MetaGraphDef, SavedModel) in protobuf's binary or text form.
enum class GraphFormat {
  kGraphDef,
  kGraphDefText,
  kMetaGraph,
  kMetaGraphText,
  kSavedModel,
  kSavedModelText,
};

bool IsText(GraphFormat format);
bool IsSavedModel(GraphFormat format);
bool IsGraphDef(GraphFormat format);

// "GraphDef", "text MetaGraphDef", ...: for messages.
absl::string_view FormatTitle(GraphFormat format);

// Returns the format of that name: graphdef, metagraph or savedmodel; with the suffix -text, the
// text form. pbtxt is graphdef-text. BAD_OPTION for any other.
absl::StatusOr<GraphFormat> ParseFormatName(absl::string_view name);

// The names that ParseFormatName accepts, for help texts.
extern const char kFormatNames[];

// Recognises the format of `bytes` from their content:
//   text         no control characters but white space, and a field name comes first. The first
//                field that only one of the three messages has determines the message.
//   SavedModel   field 1 is a number; or there is no field 1, and field 2 is a MetaGraphDef.
//   MetaGraphDef field 2 is a GraphDef with a node, and field 1 is not a node.
//   GraphDef     field 1 is a node: it has a name, and an op that is printable. Also any protobuf
//                that is none of the above: reading it as a graph gives a precise error.
// Bytes that match two of these, or none, are MALFORMED_GRAPH with a message that asks for the
// format; files that people take for a graph (.keras, .h5, ONNX, a checkpoint, something
// compressed), one that says their kind and how to get a training graph.
absl::StatusOr<GraphFormat> RecogniseFormat(absl::string_view bytes);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_
