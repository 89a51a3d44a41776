// A file's format, from its content.
#include "client_lib/format/graph_format.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::format {
namespace {

using spillway::testing::GraphBytes;
using spillway::testing::RawField;
using spillway::testing::RawNumber;
using ::testing::HasSubstr;

void ExpectFormat(const std::string& bytes, GraphFormat format) {
  const auto found = RecogniseFormat(bytes);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(FormatTitle(*found), FormatTitle(format));
}

void ExpectUnknown(const std::string& bytes, const std::string& text) {
  const auto found = RecogniseFormat(bytes);
  EXPECT_EQ(core::GetErrorReason(found.status()), v1::ERROR_REASON_MALFORMED_GRAPH);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr(text));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("--format"));
}

TEST(GraphFormatTest, RecognisesBinaryFiles) {
  const std::string graph = GraphBytes("a = NoOp()");
  const std::string versions = RawField(4, RawNumber(1, 27));
  const std::string library = RawField(2, RawField(1, RawField(1, RawField(1, "function"))));
  const std::string meta_info = RawField(1, RawField(4, "train") + RawField(5, "2.15.1"));
  ExpectFormat(graph, GraphFormat::kGraphDef);
  ExpectFormat(versions + library + graph, GraphFormat::kGraphDef);
  ExpectFormat(versions + library, GraphFormat::kGraphDef);
  ExpectFormat(meta_info + RawField(2, graph), GraphFormat::kMetaGraph);
  ExpectFormat(RawField(2, graph), GraphFormat::kMetaGraph);
  // An empty MetaInfoDef is no node.
  ExpectFormat(RawField(1, "") + RawField(2, graph), GraphFormat::kMetaGraph);
  // A list of ops in a MetaInfoDef is no op type: it starts with a line feed.
  ExpectFormat(RawField(1, RawField(1, "version") + RawField(2, RawField(1, "Add"))) +
                   RawField(2, library + graph),
               GraphFormat::kMetaGraph);
  const std::string meta_graph = meta_info + RawField(2, graph);
  ExpectFormat(RawNumber(1, 1) + RawField(2, meta_graph), GraphFormat::kSavedModel);
  ExpectFormat(RawField(2, meta_graph) + RawNumber(1, 1), GraphFormat::kSavedModel);
  ExpectFormat(RawField(2, meta_graph), GraphFormat::kSavedModel);
  ExpectFormat(RawField(2, RawField(2, graph)), GraphFormat::kSavedModel);
  ExpectFormat(RawNumber(1, 1), GraphFormat::kSavedModel);
}

// A cut file keeps its format, so that the error is about the cut.
TEST(GraphFormatTest, RecognisesWhatIsCutOff) {
  const std::string graph = GraphBytes("a = NoOp()\nb = NoOp()");
  ExpectFormat(graph.substr(0, graph.size() - 2), GraphFormat::kGraphDef);
  const std::string model = RawNumber(1, 1) + RawField(2, RawField(2, graph));
  ExpectFormat(model.substr(0, model.size() - 2), GraphFormat::kSavedModel);
}

TEST(GraphFormatTest, RecognisesTexts) {
  ExpectFormat("node { name: 'a' }", GraphFormat::kGraphDefText);
  ExpectFormat("\n\n# Comment: x { \n\tversions < producer: 27 >", GraphFormat::kGraphDefText);
  ExpectFormat("meta_info_def{}graph_def{node{name:'a'}}", GraphFormat::kMetaGraphText);
  ExpectFormat("graph_def { node { } }", GraphFormat::kMetaGraphText);
  ExpectFormat("saved_model_schema_version: 1", GraphFormat::kSavedModelText);
  ExpectFormat("meta_graphs { }", GraphFormat::kSavedModelText);
  // The reader reports the typo, with its line.
  ExpectFormat("nodee { name: 'a' }", GraphFormat::kGraphDefText);
  ExpectFormat("metagraph { } meta_graphs { }", GraphFormat::kSavedModelText);
  // The first byte of a graph is a line feed, and its name may be any text; its op's tag is not.
  ExpectFormat(GraphBytes("x = NoOp()"), GraphFormat::kGraphDef);
}

TEST(GraphFormatTest, SaysSoWhereNothingOrTooMuchFits) {
  const std::string graph = GraphBytes("a = NoOp()");
  ExpectUnknown("\x0a\xff\xff", "none of");
  ExpectUnknown(graph + RawField(2, graph), "one format or another");
  ExpectUnknown(graph + RawNumber(1, 1), "one format or another");
  ExpectUnknown(RawField(2, RawField(2, graph)) + RawField(2, graph), "one format or another");
}

// Each as the program that writes it begins or ends it.
TEST(GraphFormatTest, FilesThatPeopleTakeForAGraphAreNamed) {
  const std::string onnx = RawNumber(1, 8) + RawField(2, "pytorch") + RawField(3, "2.1") +
                           RawField(7, RawField(1, RawField(4, "Relu")) + RawField(2, "main"));
  for (const auto& [bytes, name] :
       {std::pair<std::string, const char*>{"\x89HDF\r\n\x1a\n and more", "an HDF5 file"},
        {"PK\x03\x04 zip", "a model of Keras (.keras)"},
        {"\x1f\x8b\x08 packed", "compressed by gzip"},
        {"table\x57\xfb\x80\x8b\x24\x75\x47\xdb", "index of a checkpoint"},
        {"model_checkpoint_path: \"m-1\"\n", "a list of checkpoints"},
        {onnx, "a model in ONNX"}}) {
    const auto found = RecogniseFormat(bytes);
    EXPECT_EQ(core::GetErrorReason(found.status()), v1::ERROR_REASON_MALFORMED_GRAPH) << name;
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(name));
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("after minimize"));
  }
}

TEST(GraphFormatTest, NamesAreThoseOfTheHelp) {
  for (const char* name : {"graphdef", "metagraph", "savedmodel", "graphdef-text", "pbtxt",
                           "metagraph-text", "savedmodel-text"}) {
    EXPECT_TRUE(ParseFormatName(name).ok()) << name;
    EXPECT_THAT(kFormatNames, HasSubstr(name));
  }
  EXPECT_EQ(*ParseFormatName("pbtxt"), GraphFormat::kGraphDefText);
  const absl::Status status = ParseFormatName("onnx").status();
  EXPECT_EQ(core::GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'onnx'"));
}

}  // namespace
}  // namespace spillway::format
