// The forms in which TensorFlow keeps graphs in files.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::format {

// A message (GraphDef, MetaGraphDef, SavedModel) and how it is written: protobuf's binary form, or
// its text form.
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

// The format of that name: graphdef, metagraph, savedmodel, and with -text behind it the text form.
// pbtxt is graphdef-text. BAD_OPTION for any other.
absl::StatusOr<GraphFormat> ParseFormatName(absl::string_view name);

// The names that ParseFormatName takes, for help texts.
extern const char kFormatNames[];

// Which format `bytes` are, from their content:
//   text         no control characters but white space, and a field name is what comes first. The
//                first field that only one of the three messages has says which it is.
//   SavedModel   field 1 is a number; or there is no field 1, and field 2 is a MetaGraphDef.
//   MetaGraphDef field 2 is a GraphDef with a node, and field 1 is no node.
//   GraphDef     field 1 is a node: it has a name, and an op that is printable. Also whatever is
//                protobuf and none of the above: reading it as a graph says what is wrong.
// Bytes that fit two of these, or none, are an error (MALFORMED_GRAPH) that says so: only a person
// knows then.
absl::StatusOr<GraphFormat> RecogniseFormat(absl::string_view bytes);

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_GRAPH_FORMAT_H_
