// The undo record: written, read, and refused if damaged.
#include "rewrite_core/graph/undo.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/attr_value.h"
#include "tests/testing/attr_text.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::core {
namespace {

using ::spillway::testing::FailsWith;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsOk;
using ::spillway::testing::ParseAttr;
using ::spillway::testing::PrintAttr;
using ::spillway::testing::RawField;
using ::spillway::testing::RawNumber;
using ::spillway::testing::TestGraph;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

auto IsBadRecord() {
  return FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_BAD_UNDO_RECORD, "'n'");
}

std::string UndoValue(absl::string_view text) {
  std::string bytes;
  EXPECT_TRUE(ParseAttr(&text, &bytes));
  return bytes;
}

TEST(UndoTest, RecordsReadAsTheyAreWritten) {
  UndoRecord record;
  record.inputs = {{0, "a:0"}, {12, "x=y"}};
  record.controls = {"t", "t"};
  EXPECT_EQ(UndoAttr(record), UndoValue(R"(["0=a:0","12=x=y","^t","^t"])"));
  const auto read = ParseUndoAttr("n", UndoAttr(record));
  ASSERT_THAT(read, IsOk());
  EXPECT_FALSE(read->added);
  EXPECT_THAT(read->inputs, ElementsAre(Pair(0, "a:0"), Pair(12, "x=y")));
  EXPECT_THAT(read->controls, ElementsAre("t", "t"));
  EXPECT_FALSE(read->raw);

  UndoRecord added;
  added.added = true;
  EXPECT_EQ(UndoAttr(added), UndoValue(R"(["added"])"));
  EXPECT_TRUE(ParseUndoAttr("n", UndoAttr(added))->added);

  UndoRecord inlined;
  inlined.added = true;
  inlined.call = "a/b=^c";
  EXPECT_EQ(UndoAttr(inlined), UndoValue(R"(["call=a/b=^c"])"));
  EXPECT_TRUE(ParseUndoAttr("n", UndoAttr(inlined))->added);
  EXPECT_EQ(ParseUndoAttr("n", UndoAttr(inlined))->call, inlined.call);

  UndoRecord idle;
  idle.raw = "x";
  idle.idle = true;
  EXPECT_EQ(UndoAttr(idle), UndoValue(R"(["idle","raw=x"])"));
  EXPECT_TRUE(ParseUndoAttr("n", UndoAttr(idle))->idle);

  UndoRecord raw;
  raw.raw = std::string("\x0a\x00=^", 4);
  EXPECT_EQ(UndoAttr(raw), UndoValue(R"(["raw=\n\x00=^"])"));
  EXPECT_EQ(ParseUndoAttr("n", UndoAttr(raw))->raw, raw.raw);
  EXPECT_THAT(ParseUndoAttr("n", UndoAttr(raw))->inputs, IsEmpty());
}

TEST(UndoTest, DamagedRecordsAreRefused) {
  const std::string kDamaged[] = {
      "",
      UndoValue("[]"),
      UndoValue("\"added\""),  // No list.
      UndoValue("[1,2]"),
      UndoValue("float32"),
      UndoValue(R"(["adde"])"),
      UndoValue(R"(["=a"])"),
      UndoValue(R"(["-1=a"])"),
      UndoValue(R"(["x=a"])"),
      UndoValue(R"(["0"])"),
      UndoValue(R"([""])"),
      UndoValue(R"(["99999999999=a"])"),
      UndoValue(R"(["1=a","0=b"])"),  // Out of order.
      UndoValue(R"(["1=a","1=b"])"),  // Twice.
      // Forms that exclude each other.
      UndoValue(R"(["added","0=a"])"),
      UndoValue(R"(["added","^t"])"),
      UndoValue(R"(["raw=x","0=a"])"),
      UndoValue(R"(["raw=x","added"])"),
      UndoValue(R"(["added","added"])"),
      UndoValue(R"(["call=c","added"])"),
      UndoValue(R"(["idle"])"),
      UndoValue(R"(["idle","added"])"),
      UndoValue(R"(["idle","idle","raw=x"])"),
      UndoValue(R"(["call=c","0=a"])"),
      // Truncated, and broken inside the list: a partial record is worse than none.
      UndoAttr({true, {}, {}, {}, {}, {}}).substr(0, 5),
      RawField(1, RawField(2, "0=a") + "\x12\x7f"),
      RawField(1, RawField(2, "^t") + "\x07"),
  };
  for (const std::string& value : kDamaged) {
    EXPECT_THAT(ParseUndoAttr("n", value), IsBadRecord()) << PrintAttr(value);
  }
}

// ---- Undoing one node ----

struct UndoCase {
  const char* what;
  const char* edited;    // The node in the edited graph.
  const char* original;  // Empty: it did not exist. Null: the record does not fit.
};

// The record is in the attribute, as it is in a graph.
constexpr UndoCase kUndoCases[] = {
    {"a data input", R"(n = AddN(s, b, ^c) {N=2, _spillway_undo=["0=a:0"]})",
     "n = AddN(a:0, b, ^c) {N=2}"},
    {"two data inputs", R"(n = AddN(s, t) {_spillway_undo=["0=a","1=b:1"]})", "n = AddN(a, b:1)"},
    {"an added control input", R"(n = NoOp(^c, ^t) {_spillway_undo=["^t"]})", "n = NoOp(^c)"},
    {"the only input", R"(n = NoOp(^t) {_spillway_undo=["^t"]})", "n = NoOp()"},
    {"one of two controls of one name, the last", R"(n = NoOp(^t, ^c, ^t) {_spillway_undo=["^t"]})",
     "n = NoOp(^t, ^c)"},
    {"both of them", R"(n = NoOp(^t, ^c, ^t) {_spillway_undo=["^t","^t"]})", "n = NoOp(^c)"},
    // TensorFlow's importer sorts control inputs; names identify them.
    {"controls in another order", R"(n = Neg(a, ^t, ^c) {_spillway_undo=["^t"]})",
     "n = Neg(a, ^c)"},
    {"an added node", R"(n = NoOp() {_spillway_undo=["added"]})", ""},
    {"a node of a call", R"(n = NoOp() {_spillway_undo=["call=c"]})", ""},
    {"the whole node", R"(n = NoOp() {_spillway_undo=["raw=\n\x09\n\x01n\x12\x04Neg!"]})",
     "! 0x0a090a016e12044e656721"},

    {"an added control input that is gone", R"(n = NoOp(^c) {_spillway_undo=["^t"]})", nullptr},
    {"one of two is gone", R"(n = NoOp(^t) {_spillway_undo=["^t","^t"]})", nullptr},
    {"only a data input of that name", R"(n = Neg(t) {_spillway_undo=["^t"]})", nullptr},
    {"a data input that is gone", R"(n = Neg(a) {_spillway_undo=["1=b"]})", nullptr},
    {"the position of a control input", R"(n = Neg(a, ^c) {_spillway_undo=["1=b"]})", nullptr},
};

TEST(UndoTest, EachKindIsUndoneOrDoesNotFit) {
  for (const UndoCase& c : kUndoCases) {
    SCOPED_TRACE(c.what);
    const std::string bytes = GraphBytes(c.edited);
    testing::GraphDef proto;
    ASSERT_TRUE(proto.ParseFromString(bytes));
    const std::string value = proto.node(0).attr().at("_spillway_undo").SerializeAsString();
    const auto record = ParseUndoAttr("n", value);
    ASSERT_THAT(record, IsOk());
    // Without the tag and the length, of one or two bytes each.
    const std::string node_def = bytes.substr(bytes.size() - proto.node(0).ByteSizeLong());
    std::string undone;
    const StopToken stop;
    StopPoller poll(stop);
    const absl::Status status = AppendUndone("n", node_def, *record, stop, &poll, &undone);
    if (c.original == nullptr) {
      EXPECT_THAT(status, IsBadRecord());
      continue;
    }
    EXPECT_THAT(status, IsOk());
    EXPECT_EQ(undone, GraphBytes(c.original));
  }
}

}  // namespace
}  // namespace spillway::core
