#include "client_lib/format/graph_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/format/message_fields.h"
#include "client_lib/format/text_places.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::format {
namespace {

using core::WireReader;

struct FormatName {
  absl::string_view name;
  GraphFormat format;
};
constexpr FormatName kNames[] = {
    {"graphdef", GraphFormat::kGraphDef},
    {"metagraph", GraphFormat::kMetaGraph},
    {"savedmodel", GraphFormat::kSavedModel},
    {"graphdef-text", GraphFormat::kGraphDefText},
    {"metagraph-text", GraphFormat::kMetaGraphText},
    {"savedmodel-text", GraphFormat::kSavedModelText},
    {"pbtxt", GraphFormat::kGraphDefText},
};

absl::Status NotRecognised(absl::string_view why) {
  return core::InvalidError(
      v1::ERROR_REASON_MALFORMED_GRAPH,
      absl::StrCat(why, "; give --format if you know it (", kFormatNames, ")"));
}

bool IsControlCharacter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && !absl::ascii_isspace(byte)) || byte == 0x7f;
}

bool IsPrintable(absl::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return IsControlCharacter(c) || absl::ascii_isspace(static_cast<unsigned char>(c));
  });
}

// Whether a message looks like a NodeDef, judged by its name and op. A MetaInfoDef, the other
// message that may come first, has no printable field 2: a list of ops starts with a line feed.
bool LooksLikeNode(absl::string_view bytes) {
  bool has_name = false;
  bool has_op = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() > core::node_def::kDevice) continue;
    if (!reader.IsBytes(reader.field())) return false;
    if (reader.field() == core::node_def::kName) has_name = !reader.bytes().empty();
    if (reader.field() == core::node_def::kOp) has_op = IsPrintable(reader.bytes());
  }
  return reader.ok() && has_name && has_op;
}

// Whether a message is a GraphDef with a node.
bool LooksLikeGraph(absl::string_view bytes) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.IsBytes(core::graph_def::kNode)) return LooksLikeNode(reader.bytes());
  }
  return false;
}

bool LooksLikeMetaGraph(absl::string_view bytes) {
  WireReader reader(bytes);
  bool has_graph = false;
  while (reader.Next()) {
    if (reader.IsBytes(meta_graph_def::kMetaInfo) && LooksLikeNode(reader.bytes())) return false;
    if (reader.IsBytes(meta_graph_def::kGraph)) has_graph |= LooksLikeGraph(reader.bytes());
  }
  return reader.ok() && has_graph;
}

bool LooksLikeText(absl::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), IsControlCharacter) && StartsLikeText(bytes);
}

// Names a file that is not one of TensorFlow's graphs but that people take for one; otherwise
// empty.
absl::string_view OtherFile(absl::string_view bytes) {
  // The formats' own signatures: HDF5 File Format Specification, III.A; PKWARE's APPNOTE, 4.3.7;
  // RFC 1952, 2.3.1; kTableMagicNumber in tensorflow/tsl/lib/io/format.h.
  constexpr absl::string_view kHdf5 = "\x89HDF\r\n\x1a\n", kZip = "PK\x03\x04", kGzip = "\x1f\x8b";
  constexpr absl::string_view kTableEnd = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  if (absl::StartsWith(bytes, kHdf5)) return "an HDF5 file (.h5), in which Keras keeps a model";
  if (absl::StartsWith(bytes, kZip)) return "a zip archive, such as a model of Keras (.keras)";
  if (absl::StartsWith(bytes, kGzip)) return "compressed by gzip (unpack it if it is a graph)";
  if (absl::EndsWith(bytes, kTableEnd)) return "the index of a checkpoint, which keeps variables";
  if (absl::StartsWith(bytes, "model_checkpoint_path:")) return "a list of checkpoints";
  return "";
}

absl::Status NoTrainingGraph(absl::string_view what) {
  return core::InvalidError(
      v1::ERROR_REASON_MALFORMED_GRAPH,
      absl::StrCat("this is ", what,
                   ", no training graph; write one where the program trains, after minimize: "
                   "open('graph.pb', 'wb').write(graph.as_graph_def(add_shapes=True)."
                   "SerializeToString()); for Keras there is rewrite_train_function in Python"));
}

}  // namespace

const char kFormatNames[] =
    "graphdef, metagraph, savedmodel, graphdef-text (pbtxt), metagraph-text, savedmodel-text";

bool IsText(GraphFormat format) {
  return format == GraphFormat::kGraphDefText || format == GraphFormat::kMetaGraphText ||
         format == GraphFormat::kSavedModelText;
}

bool IsSavedModel(GraphFormat format) {
  return format == GraphFormat::kSavedModel || format == GraphFormat::kSavedModelText;
}

bool IsGraphDef(GraphFormat format) {
  return format == GraphFormat::kGraphDef || format == GraphFormat::kGraphDefText;
}

absl::string_view FormatTitle(GraphFormat format) {
  switch (format) {
    case GraphFormat::kGraphDef:
      return "GraphDef";
    case GraphFormat::kGraphDefText:
      return "text GraphDef";
    case GraphFormat::kMetaGraph:
      return "MetaGraphDef";
    case GraphFormat::kMetaGraphText:
      return "text MetaGraphDef";
    case GraphFormat::kSavedModel:
      return "SavedModel";
    case GraphFormat::kSavedModelText:
      return "text SavedModel";
  }
  return "graph";
}

absl::StatusOr<GraphFormat> ParseFormatName(absl::string_view name) {
  for (const FormatName& entry : kNames) {
    if (entry.name == name) return entry.format;
  }
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("--format: ", core::Quoted(name),
                                         " is no format; give one of: auto, ", kFormatNames),
                            {{"flag", "--format"}, {"value", name}});
}

absl::StatusOr<GraphFormat> RecogniseFormat(absl::string_view bytes) {
  if (const absl::string_view other = OtherFile(bytes); !other.empty()) {
    return NoTrainingGraph(other);
  }
  if (LooksLikeText(bytes)) return RecogniseText(bytes);
  bool first_is_number = false;
  bool has_first = false;
  bool has_node = false;
  bool second_is_graph = false;
  bool second_is_meta_graph = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.IsVarint(saved_model::kSchemaVersion)) first_is_number = true;
    // ModelProto in onnx.proto: ir_version is field 1, a number, too, and graph is field 7.
    if (reader.IsBytes(7) && first_is_number) return NoTrainingGraph("a model in ONNX");
    if (reader.IsBytes(1)) {
      // One is enough, since files have many.
      if (!has_first) has_node = LooksLikeNode(reader.bytes());
      has_first = true;
    }
    if (reader.IsBytes(2)) {
      second_is_graph |= LooksLikeGraph(reader.bytes());
      second_is_meta_graph |= LooksLikeMetaGraph(reader.bytes());
    }
  }
  if (first_is_number + has_node + second_is_graph > 1 ||
      (second_is_meta_graph && (has_first || second_is_graph))) {
    return NotRecognised("the file could be one format or another");
  }
  if (first_is_number || second_is_meta_graph) return GraphFormat::kSavedModel;
  if (second_is_graph) return GraphFormat::kMetaGraph;
  if (has_node || reader.ok()) return GraphFormat::kGraphDef;
  return NotRecognised(
      "the file is none of GraphDef, MetaGraphDef and SavedModel, in binary or text form, or it is "
      "damaged near its start");
}

}  // namespace spillway::format
