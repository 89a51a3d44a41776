#include "client_lib/format/graph_text.h"

#include "absl/strings/str_cat.h"
#include "client_lib/format/text_error.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "spillway/format/tensorflow_graph.pb.h"

namespace spillway::format {
namespace {

using google::protobuf::Arena;
using google::protobuf::TextFormat;

// The depth to which protobuf reads binary messages; deeper ones could not be read back.
constexpr int kMaxMessageDepth = 100;

}  // namespace

absl::StatusOr<std::string> GraphFromText(absl::string_view text, TextPosition start) {
  FirstTextError error(start);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxMessageDepth);
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  Arena arena;
  auto* graph = Arena::CreateMessage<GraphDef>(&arena);
  if (!parser.Parse(&input, graph)) {
    return error.status().ok() ? TextError(start, "this is no GraphDef") : error.status();
  }
  if (graph->ByteSizeLong() > core::kMaxMessageBytes) {
    return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                       "the graph is larger than 2 GiB, which protobuf cannot read");
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    graph->SerializeToCodedStream(&coded);
  }
  return bytes;
}

absl::StatusOr<std::string> GraphToText(absl::string_view graph_def, int depth) {
  Arena arena;
  auto* graph = Arena::CreateMessage<GraphDef>(&arena);
  if (!graph->ParseFromArray(graph_def.data(), static_cast<int>(graph_def.size()))) {
    return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                       "the rewritten graph cannot be read to print it");
  }
  TextFormat::Printer printer;
  printer.SetInitialIndentLevel(depth);
  std::string text;
  if (!printer.PrintToString(*graph, &text)) {
    return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                       "the rewritten graph cannot be printed as text");
  }
  return text;
}

}  // namespace spillway::format
