// Graphs for bug reports: nothing private is left, and a rewrite does the same.
#include "client_lib/format/anonymize.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/op_registry.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "spillway/format/tensorflow_graph.pb.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::format {
namespace {

using spillway::testing::GraphBytes;
using spillway::testing::RawField;
using spillway::testing::RawNumber;
using spillway::testing::ReadProto;
using spillway::testing::ReadTestGraph;
using ::testing::HasSubstr;

Anonymized Anonymous(const std::string& bytes) {
  const auto file = GraphFile::Read(bytes, absl::nullopt);
  EXPECT_TRUE(file.ok()) << file.status();
  const auto result = Anonymize(*file);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Anonymized();
}

std::string AnonymousText(const std::string& text) {
  return spillway::testing::DescribeGraph(Anonymous(GraphBytes(text)).bytes);
}

TEST(AnonymizeTest, RenamesEverythingTheSameEverywhere) {
  EXPECT_EQ(AnonymousText(R"(
top/conv/weights = VariableV2() {container="secret box", shared_name="top/conv/weights"}
top/conv/out = Conv2D(top/conv, top/conv/weights) {padding="SAME", strides=[1,2,2,1]}
top/out2 = Relu(^top/init) @/job:mine/task:1/device:GPU:3 {_class=["loc:@top/conv/weights"]}
top/conv = MyOp() {T=float32, _tag="x", secret_level=3}
top/init = NoOp()
top/conv/grad = Identity(top/conv/out:0)
)"),
            spillway::testing::DescribeGraph(GraphBytes(R"(
s0/s1/n0 = VariableV2() {container="str0", shared_name="s0/s1/n0"}
s0/s1/n1 = Conv2D(s0/s1, s0/s1/n0) {padding="SAME", strides=[1,2,2,1]}
s0/n2 = Relu(^s0/n3) @/job:job0/task:1/device:GPU:3 {_class=["loc:@s0/s1/n0"]}
s0/s1 = CustomOp0() {T=float32, _attr0="str1", attr0=3}
s0/n3 = NoOp()
s0/s1/n4 = Identity(s0/s1/n1:0)
)")));
}

// Fills every field of a message, `depth` messages deep, so that a forgotten field shows.
void Fill(google::protobuf::Message* message, int depth, int* count) {
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const auto* field = message->GetDescriptor()->field(i);
    // Of a oneof one member, another one each time.
    if (field->real_containing_oneof() != nullptr &&
        field->index_in_oneof() != *count % field->real_containing_oneof()->field_count()) {
      continue;
    }
    for (int copy = 0; copy < (field->is_repeated() ? 8 / depth + 1 : 1); ++copy) {
      ++*count;
      const bool repeated = field->is_repeated();
      if (field->type() == google::protobuf::FieldDescriptor::TYPE_BYTES) {
        const std::string secret = absl::StrCat("SECRET", *count);
        repeated ? reflection->AddString(message, field, secret)
                 : reflection->SetString(message, field, secret);
      } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE && depth < 8) {
        Fill(repeated ? reflection->AddMessage(message, field)
                      : reflection->MutableMessage(message, field),
             depth + 1, count);
      }
    }
  }
}

TEST(AnonymizeTest, NoStringOfAnyFieldIsLeft) {
  GraphDef graph;
  int count = 0;
  Fill(&graph, 1, &count);
  std::string bytes = graph.SerializeAsString() + RawField(1000, "SECRET unknown");
  ASSERT_GT(count, 10000);
  const auto file = GraphFile::Read(bytes, GraphFormat::kGraphDef);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto result = Anonymize(*file);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->bytes.find("SECRET"), std::string::npos)
      << result->bytes.substr(result->bytes.find("SECRET") - 20, 60);
  EXPECT_THAT(result->mapping_json, HasSubstr("SECRET"));
}

TEST(AnonymizeTest, NothingAroundTheGraphIsLeft) {
  const std::string graph = GraphBytes("secret = NoOp()");
  const std::string meta_graph =
      RawField(1, RawField(4, "secret tag")) + RawField(2, graph) + RawField(4, "secret");
  for (const std::string& bytes :
       {meta_graph, RawNumber(1, 1) + RawField(2, meta_graph) + RawField(2, meta_graph),
        std::string("graph_def { node { name: 'secret' op: 'NoOp' } } asset_file_def { filename: "
                    "'secret' } # secret")}) {
    const Anonymized result = Anonymous(bytes);
    EXPECT_EQ(result.bytes.find("secret"), std::string::npos);
    const auto before = GraphFile::Read(bytes, absl::nullopt);
    const auto after = GraphFile::Read(result.bytes, absl::nullopt);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->format(), before->format());
    EXPECT_EQ(after->num_graphs(), before->num_graphs());
    EXPECT_EQ(after->graph(0), GraphBytes("n0 = NoOp()"));
  }
}

// A Const with a tensor of `dtype` and one dimension.
std::string Constant(DataType dtype, int size, const std::string& content) {
  GraphDef graph;
  NodeDef* node = graph.add_node();
  node->set_name("a");
  node->set_op("Const");
  auto* attr = node->add_attr();
  attr->set_key("value");
  TensorProto* tensor = attr->mutable_value()->mutable_tensor();
  tensor->set_dtype(dtype);
  tensor->mutable_tensor_shape()->add_dim()->set_size(size);
  tensor->set_tensor_content(content);
  return graph.SerializeAsString();
}

TEST(AnonymizeTest, OnlySmallIntegerConstantsKeepTheirValues) {
  const auto content = [](const std::string& bytes) {
    GraphDef graph;
    EXPECT_TRUE(graph.ParseFromString(Anonymous(bytes).bytes));
    const TensorProto& tensor = graph.node(0).attr(0).value().tensor();
    EXPECT_NE(tensor.dtype(), DT_INVALID);
    EXPECT_EQ(tensor.tensor_shape().dim_size(), 1);
    return tensor.tensor_content();
  };
  const std::string small(16 * 4, 'v');
  EXPECT_EQ(content(Constant(DT_INT32, 16, small)), small);
  EXPECT_EQ(content(Constant(DT_INT64, 16, small + small)), small + small);
  EXPECT_EQ(content(Constant(DT_INT32, 17, small + "vvvv")), "");
  EXPECT_EQ(content(Constant(DT_INT32, 16, std::string(1000, 'v'))), "");
  EXPECT_EQ(content(Constant(DT_INT32, -1, small)), "");
  EXPECT_EQ(content(Constant(DT_INT32, 16, small.substr(1))), "");
  EXPECT_EQ(content(Constant(DT_INT32, 16, small + small)), "");
  EXPECT_EQ(content(Constant(DT_INT32, 1, "secret")), "");
  EXPECT_EQ(content(Constant(DT_INT32, 0, "secret")), "");
  EXPECT_EQ(content(Constant(DT_INT64, 2, small.substr(0, 8))), "");
  EXPECT_EQ(content(Constant(DT_FLOAT, 2, "vvvvvvvv")), "");
  EXPECT_EQ(content(Constant(DT_BOOL, 2, "vv")), "");
}

TEST(AnonymizeTest, ConstantsKeepNoMoreValuesThanElements) {
  const auto values = [](DataType dtype, int count) {
    GraphDef graph;
    EXPECT_TRUE(graph.ParseFromString(Constant(dtype, 2, "")));
    auto* tensor = graph.mutable_node(0)->mutable_attr(0)->mutable_value()->mutable_tensor();
    for (int i = 0; i < count; ++i) tensor->add_int_val(7);
    EXPECT_TRUE(graph.ParseFromString(Anonymous(graph.SerializeAsString()).bytes));
    return graph.node(0).attr(0).value().tensor().int_val_size();
  };
  EXPECT_EQ(values(DT_INT32, 1), 1);  // TensorFlow repeats the last.
  EXPECT_EQ(values(DT_INT32, 2), 2);
  EXPECT_EQ(values(DT_INT32, 3), 0);
  EXPECT_EQ(values(DT_INT64, 2), 0);  // Not where its values are.
}

TEST(AnonymizeTest, OpsOfTensorFlowKeepNoAttributesOfOthers) {
  EXPECT_EQ(
      AnonymousText("a = Relu() {T=float32, secret_level=3, _secret=4}"),
      spillway::testing::DescribeGraph(GraphBytes("n0 = Relu() {T=float32, attr0=3, _attr0=4}")));
}

// Strings stay only as the constants of enumerations, under their own names.
TEST(AnonymizeTest, OtherStringsAreReplacedWhateverTheAttribute) {
  EXPECT_EQ(AnonymousText(R"(
a = Conv2D() {padding="SAME", data_format="for project X"}
b = MirrorPad() {mode="REFLECT"}
c = Relu() {secret="NHWC", _hint="SAME", message="SAME", T=float32}
d = MyOp() {padding="VALID", data_format="of Ann", secret="REFLECT", things=["VALID", "x"]}
)"),
            spillway::testing::DescribeGraph(GraphBytes(R"(
n0 = Conv2D() {padding="SAME", data_format="str0"}
n1 = MirrorPad() {mode="REFLECT"}
n2 = Relu() {_attr0="str1", attr0="str2", message="str1", T=float32}
n3 = CustomOp0() {padding="VALID", data_format="str3", attr0="str4", attr1=["str5", "str6"]}
)")));
}

// The kind of a value decides about it, not the name of its attribute.
TEST(AnonymizeTest, NumbersTypesAndShapesStay) {
  EXPECT_EQ(AnonymousText("a = MyOp() {u=int64, v=3, w=true, x=0.5f, y=[1,2], z=(2,?)}"),
            spillway::testing::DescribeGraph(GraphBytes(
                "n0 = CustomOp0() {attr0=int64, attr1=3, attr2=true, attr3=0.5f, attr4=[1,2], "
                "attr5=(2,?)}")));
  // Types and counts in the signature of an op, and common attributes.
  EXPECT_EQ(AnonymousText("a = Split() {T=float32, num_split=3}"),
            spillway::testing::DescribeGraph(GraphBytes("n0 = Split() {T=float32, num_split=3}")));
  EXPECT_EQ(AnonymousText("a = CTCGreedyDecoder() {blank_index=3, merge_repeated=true}"),
            spillway::testing::DescribeGraph(
                GraphBytes("n0 = CTCGreedyDecoder() {attr0=3, attr1=true}")));
}

TEST(AnonymizeTest, FunctionsStayConnected) {
  const Anonymized result = Anonymous(ReadTestGraph("cond_v2/graph.pb"));
  GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(result.bytes));
  ASSERT_GT(graph.library().function_size(), 0);
  for (const FunctionDef& function : graph.library().function()) {
    std::vector<std::string> names;
    for (const auto& arg : function.signature().input_arg()) names.push_back(arg.name());
    for (const NodeDef& node : function.node_def()) names.push_back(node.name());
    for (const NodeDef& node : function.node_def()) {
      for (const std::string& input : node.input()) {
        const std::string name = input.substr(input[0] == '^', input.find(':') - (input[0] == '^'));
        EXPECT_THAT(names, ::testing::Contains(name)) << function.signature().name();
      }
    }
    for (const auto& ret : function.ret()) {
      EXPECT_THAT(names, ::testing::Contains(ret.value().substr(0, ret.value().find(':'))));
    }
  }
}

// The plan without its names.
std::string Plan(const std::string& graph, v1::RewriteOptions options) {
  options.mutable_step()->set_batch_size(8);
  auto response = core::Rewrite(graph, options, core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return "";
  std::string plan = absl::StrCat("nodes ", response->report().node_count_after());
  const auto rewritten = ReadProto(response->graph_def());
  const auto nodes = spillway::testing::IndexNodes(rewritten);
  for (const v1::TensorSwap& swap : response->report().swaps()) {
    absl::StrAppend(&plan, "\n",
                    nodes.at(std::vector<std::string>(absl::StrSplit(swap.tensor(), ':'))[0]), " ",
                    swap.size_bytes());
    for (const v1::SwapIn& swap_in : swap.swap_ins()) {
      absl::StrAppend(&plan, " by ");
      for (const std::string& trigger : swap_in.triggers())
        absl::StrAppend(&plan, nodes.at(trigger), " ");
      for (const v1::InputRef& consumer : swap_in.consumers()) {
        absl::StrAppend(&plan, " ", nodes.at(consumer.node()), ":", consumer.input_index());
      }
    }
  }
  for (const v1::Decision& decision : response->report().decisions()) {
    absl::StrAppend(&plan, "\n", decision.reason(), " ", decision.size_bytes());
  }
  return plan;
}

// Parts of names that cannot be in the bytes by chance, or as an op type or an attribute's name.
bool IsTelling(absl::string_view part, const std::string& public_text) {
  return part.size() >= 6 && !core::FindOp(part).known && !absl::StrContains(public_text, part);
}

TEST(AnonymizeTest, ARewriteOfRealGraphsMakesTheSamePlan) {
  for (const char* name :
       {"mnist_deep/graph_shapes.pb", "cond_v1/graph.pb", "cond_v2/graph.pb", "lstm_while/graph.pb",
        "lstm_while_v2/graph.pb", "bert_tiny/graph.pb", "resnet26_2tower_b2/graph.pb",
        "horovod_like/graph.pb", "mixed_fp16/graph.pb"}) {
    const std::string graph = ReadTestGraph(name);
    const std::string anonymous = Anonymous(graph).bytes;
    v1::RewriteOptions scope, level;
    scope.mutable_scope();
    level.mutable_level()->set_swapout_threshold(1);
    level.mutable_level()->set_swapin_ahead(1);
    level.mutable_level()->set_swapin_groupby(0);
    level.mutable_level()->set_sync_mode(1);
    // It judges every tensor; sizes behind Horovod's ops are known by their names, which are gone.
    level.set_decision_detail(v1::DECISION_DETAIL_NONE);
    for (const v1::RewriteOptions& options : {scope, level}) {
      EXPECT_EQ(Plan(anonymous, options), Plan(graph, options))
          << name << " " << options.ShortDebugString();
    }
    // Ops, their outputs, attributes and devices may hold a word that is also a name.
    std::string public_text;
    const auto proto = ReadProto(anonymous);
    const auto add = [&public_text](const auto& nodes) {
      for (const auto& node : nodes) {
        absl::StrAppend(&public_text, " ", node.op(), " ", node.device());
        for (const auto& [key, value] : node.attr()) absl::StrAppend(&public_text, " ", key);
        // Of `node:output:0` the output.
        for (const std::string& input : node.input()) {
          const std::vector<std::string> spelling = absl::StrSplit(input, ':');
          if (spelling.size() == 3) absl::StrAppend(&public_text, " ", spelling[1]);
        }
      }
    };
    add(proto.node());
    for (const auto& function : proto.library().function()) add(function.node_def());
    std::set<std::string> parts;
    const auto original = ReadProto(graph);
    for (const auto& node : original.node()) {
      for (absl::string_view part : absl::StrSplit(node.name(), '/')) {
        if (IsTelling(part, public_text)) parts.emplace(part);
      }
    }
    for (const std::string& part : parts) {
      EXPECT_FALSE(absl::StrContains(anonymous, part)) << name << ": " << part;
    }
    EXPECT_GT(parts.size(), 5u) << name;
  }
}

// The forecast of memory and time.
std::string ForecastOf(const std::string& graph, v1::SimulateOptions options) {
  options.mutable_step()->set_batch_size(8);
  options.mutable_step()->mutable_hardware()->set_preset("p100_pcie");
  const auto report = core::SimulateGraph(graph, options, core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return "";
  const v1::Forecast& forecast = report->forecast();
  std::string text = absl::StrCat(report->node_count(), " nodes, ", forecast.step_time_ns(),
                                  " ns, ", v1::Fit_Name(forecast.fit()));
  for (const v1::DeviceForecast& device : forecast.devices()) {
    absl::StrAppend(&text, ", ", device.peak_bytes(), " of ", device.budget_bytes());
  }
  return text;
}

TEST(AnonymizeTest, TheForecastOfRealGraphsIsTheSame) {
  for (const char* name : {"mnist_deep/graph_shapes.pb", "cond_v1/graph.pb", "cond_v2/graph.pb",
                           "lstm_while/graph.pb", "lstm_while_v2/graph.pb", "bert_tiny/graph.pb",
                           "resnet26_2tower_b2/graph.pb", "mixed_fp16/graph.pb"}) {
    const std::string graph = ReadTestGraph(name);
    EXPECT_EQ(ForecastOf(Anonymous(graph).bytes, {}), ForecastOf(graph, {})) << name;
  }
}

// A rewritten graph is still one, and stripping it still works.
TEST(AnonymizeTest, UndoRecordsAreRenamed) {
  const std::string graph = ReadTestGraph("mnist_deep/graph_shapes.pb");
  v1::RewriteOptions scope;
  scope.mutable_scope();
  auto rewritten = core::Rewrite(graph, scope, core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  v1::RewriteOptions strip;
  strip.mutable_strip();
  const auto stripped = core::Rewrite(Anonymous(rewritten->graph_def()).bytes, strip,
                                      core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(stripped.ok()) << stripped.status();
  EXPECT_EQ(stripped->report().outcome(), v1::OUTCOME_STRIPPED);
  EXPECT_EQ(ReadProto(stripped->graph_def()).node_size(), ReadProto(graph).node_size());
  EXPECT_EQ(Plan(stripped->graph_def(), scope), Plan(graph, scope));
  // A graph of another program is still recognized.
  const auto foreign =
      core::Rewrite(Anonymous(GraphBytes("lms/swapout_x = Identity(a)\na = Const()")).bytes, {},
                    core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  EXPECT_EQ(foreign->report().outcome(), v1::OUTCOME_FOREIGN);
}

// A node whose undo record has a node whose undo record has ...
std::string NestedRecords(int depth) {
  std::string graph;
  for (int i = 0; i < depth; ++i) {
    graph = RawField(1, RawField(1, "secret") + RawField(2, "NoOp") +
                            RawField(5, RawField(1, "_spillway_undo") +
                                            RawField(2, RawField(1, RawField(2, "raw=" + graph)))));
  }
  return graph;
}

// No recursion over user input: 8000 took the stack.
TEST(AnonymizeTest, RecordsWithinRecordsAreDropped) {
  const auto file = GraphFile::Read(NestedRecords(8000), GraphFormat::kGraphDef);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto result = Anonymize(*file);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->bytes.find("secret"), std::string::npos);
  // The outermost and the one in it.
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(result->bytes, "raw=")).size(), 3u);
  EXPECT_EQ(result->bytes, Anonymous(NestedRecords(3)).bytes);
}

}  // namespace
}  // namespace spillway::format
