// Attribute values from untrusted bytes: the value or nullopt.
#include "rewrite_core/graph/attr_value.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/attr_text.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::core {
namespace {

using ::spillway::testing::ParseAttr;
using ::spillway::testing::RawField;
using ::spillway::testing::RawNumber;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The bytes of a value in the text form.
std::string Value(absl::string_view text) {
  std::string bytes;
  EXPECT_TRUE(ParseAttr(&text, &bytes));
  return bytes;
}

TEST(AttrValueTest, SingleValues) {
  EXPECT_EQ(AttrType(Value("int64")), 9);
  EXPECT_EQ(AttrInt(Value("-7")), -7);
  EXPECT_EQ(AttrInt(Value("0")), 0);
  EXPECT_EQ(AttrString(Value("\"frame\"")), "frame");
  EXPECT_EQ(AttrString(Value("\"\"")), "");
  const auto shape = AttrShape(Value("(2,?,0)"));
  ASSERT_TRUE(shape);
  EXPECT_FALSE(shape->unknown_rank);
  EXPECT_THAT(shape->dims, ElementsAre(2, kUnknownDim, 0));
  EXPECT_TRUE(AttrShape(Value("(*)"))->unknown_rank);
}

TEST(AttrValueTest, OfAnotherKindIsNothing) {
  EXPECT_EQ(AttrType(Value("3")), kDtInvalid);
  EXPECT_EQ(AttrInt(Value("float32")), absl::nullopt);
  EXPECT_EQ(AttrString(Value("3")), absl::nullopt);
  EXPECT_FALSE(AttrShape(Value("\"\"")));
  EXPECT_EQ(CountAttrTypes(Value("float32")), -1);
  EXPECT_EQ(CountAttrShapes(Value("(1)")), -1);
  EXPECT_THAT(AttrShapes(Value("(1)"), 5), IsEmpty());
  EXPECT_THAT(AttrStrings(Value("\"a\"")), IsEmpty());
  for (const std::string& empty : {std::string(), Value("[]")}) {
    EXPECT_EQ(AttrType(empty), kDtInvalid);
    EXPECT_EQ(AttrInt(empty), absl::nullopt);
  }
}

TEST(AttrValueTest, Lists) {
  EXPECT_EQ(CountAttrTypes(Value("[float32,int32]")), 2);
  EXPECT_EQ(CountAttrTypes(Value("[]")), 0);
  EXPECT_EQ(CountAttrShapes(Value("[(1),(),(*)]")), 3);
  EXPECT_THAT(AttrStrings(Value("[\"a\",\"\",\"b\"]")), ElementsAre("a", "", "b"));
  const auto shapes = AttrShapes(Value("[(1),(2,3),(4)]"), 2);
  ASSERT_EQ(shapes.size(), 2);
  EXPECT_THAT(shapes[1].dims, ElementsAre(2, 3));
}

TEST(AttrValueTest, ListsOfTypesMayBePackedOrNot) {
  const std::string packed = RawField(1, RawField(6, "\x01\x03\x09"));
  const std::string single = RawField(1, RawNumber(6, 1) + RawNumber(6, 3) + RawNumber(6, 9));
  const std::string mixed = RawField(1, RawNumber(6, 1) + RawField(6, "\x03\x09"));
  for (const std::string& value : {packed, single, mixed}) {
    std::vector<int> types;
    EXPECT_TRUE(ForEachAttrType(value, [&](DataType dtype) {
      types.push_back(dtype);
      return true;
    }));
    EXPECT_THAT(types, ElementsAre(1, 3, 9));
    EXPECT_EQ(CountAttrTypes(value), 3);
  }
}

TEST(AttrValueTest, AVisitMayStop) {
  int seen = 0;
  EXPECT_TRUE(
      ForEachAttrType(Value("[float32,int32,int64]"), [&](DataType) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

TEST(AttrValueTest, MalformedIsNothing) {
  const std::string cut_string = Value("\"frame\"").substr(0, 4);
  EXPECT_EQ(AttrString(cut_string), absl::nullopt);
  EXPECT_EQ(AttrInt("\x18"), absl::nullopt);                    // A tag without its number.
  EXPECT_EQ(AttrInt(RawNumber(3, 5) + "\x18"), absl::nullopt);  // A good one before it.
  EXPECT_FALSE(ParseShape("\x12\x05"));
  EXPECT_FALSE(AttrShape(RawField(7, "\x12\x05")));
  // Inside the list.
  const std::string bad_list = RawField(1, RawField(2, "a") + "\x12\x7f");
  EXPECT_EQ(CountAttrShapes(bad_list), -1);
  EXPECT_EQ(CountAttrTypes(bad_list), -1);
  EXPECT_THAT(AttrStrings(bad_list), IsEmpty());
}

TEST(AttrValueTest, DimensionsBelowMinusOneAreUnknown) {
  const auto shape = ParseShape(RawField(2, RawNumber(1, -5)) + RawField(2, ""));
  ASSERT_TRUE(shape);
  EXPECT_THAT(shape->dims, ElementsAre(kUnknownDim, 0));  // proto3 leaves a zero out.
}

TEST(AttrValueTest, WritersWriteWhatProtobufReads) {
  testing::AttrValue value;
  ASSERT_TRUE(value.ParseFromString(TypeAttr(kDtString)));
  EXPECT_EQ(value.type(), 7);
  ASSERT_TRUE(value.ParseFromString(BoolAttr(true)));
  EXPECT_TRUE(value.b());
  ASSERT_TRUE(value.ParseFromString(BoolAttr(false)));
  EXPECT_EQ(value.value_case(), testing::AttrValue::kB);
  ASSERT_TRUE(value.ParseFromString(StringAttr(std::string("a\0b", 3))));
  EXPECT_EQ(value.s(), std::string("a\0b", 3));
  ASSERT_TRUE(value.ParseFromString(StringListAttr({"x", ""})));
  EXPECT_THAT(value.list().s(), ElementsAre("x", ""));
  ASSERT_TRUE(value.ParseFromString(StringListAttr({})));
  EXPECT_EQ(value.value_case(), testing::AttrValue::kList);
}

}  // namespace
}  // namespace spillway::core
