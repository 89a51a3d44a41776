#include "tests/testing/attr_text.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/random.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

using ::spillway::testing::RawField;
using ::spillway::testing::RawNumber;

// An AttrValue written by protobuf.
template <typename Set>
std::string Attr(const Set& set) {
  testing::AttrValue value;
  set(&value);
  return value.SerializeAsString();
}

struct TextCase {
  const char* text;
  std::string bytes;
};

std::vector<TextCase> Cases() {
  using V = testing::AttrValue;
  const float inf = std::numeric_limits<float>::infinity();
  const auto shape = [](std::initializer_list<int64_t> dims) {
    testing::TensorShapeProto proto;
    for (int64_t dim : dims) proto.add_dim()->set_size(dim);
    return proto;
  };
  return {
      {"float32", Attr([](V* v) { v->set_type(1); })},
      {"uint4", Attr([](V* v) { v->set_type(30); })},
      {"0", Attr([](V* v) { v->set_i(0); })},
      {"-1", Attr([](V* v) { v->set_i(-1); })},
      {"9223372036854775807", Attr([](V* v) { v->set_i(std::numeric_limits<int64_t>::max()); })},
      {"-9223372036854775808", Attr([](V* v) { v->set_i(std::numeric_limits<int64_t>::min()); })},
      {"true", Attr([](V* v) { v->set_b(true); })},
      {"false", Attr([](V* v) { v->set_b(false); })},
      {"0.5f", Attr([](V* v) { v->set_f(0.5f); })},
      {"-0f", Attr([](V* v) { v->set_f(-0.0f); })},
      {"3f", Attr([](V* v) { v->set_f(3); })},
      {"0.100000001f", Attr([](V* v) { v->set_f(0.1f); })},  // 9 digits distinguish all floats.
      {"1.00000002e+30f", Attr([](V* v) { v->set_f(1e30f); })},
      {"inff", Attr([inf](V* v) { v->set_f(inf); })},
      {"-inff", Attr([inf](V* v) { v->set_f(-inf); })},
      {"\"\"", Attr([](V* v) { v->set_s(""); })},
      {"\"a b\"", Attr([](V* v) { v->set_s("a b"); })},
      {"\"a\\x00\\\"\\\\\\n\"", Attr([](V* v) { v->set_s(std::string("a\0\"\\\n", 5)); })},
      // A hexadecimal escape must not absorb the digit after it.
      {"\"\\x01\\x31\"", Attr([](V* v) {
         v->set_s(
             "\x01"
             "1");
       })},
      {"()", Attr([](V* v) { v->mutable_shape(); })},
      {"(2,?,3)", Attr([&](V* v) {
         *v->mutable_shape() = shape({2, -1, 3});
       })},
      {"(0)", Attr([&](V* v) { *v->mutable_shape() = shape({0}); })},
      {"(*)", Attr([](V* v) { v->mutable_shape()->set_unknown_rank(true); })},
      {"[]", Attr([](V* v) { v->mutable_list(); })},
      {"[1,2,-3]", Attr([](V* v) {
         for (int i : {1, 2, -3}) v->mutable_list()->add_i(i);
       })},
      {"[0.5f]", Attr([](V* v) { v->mutable_list()->add_f(0.5f); })},
      {"[true,false]", Attr([](V* v) {
         v->mutable_list()->add_b(true);
         v->mutable_list()->add_b(false);
       })},
      {"[float32,int64]", Attr([](V* v) {
         v->mutable_list()->add_type(1);
         v->mutable_list()->add_type(9);
       })},
      {"[\"a\",\"\"]", Attr([](V* v) {
         v->mutable_list()->add_s("a");
         v->mutable_list()->add_s("");
       })},
      {"[(?,8),(),(*)]", Attr([&](V* v) {
         *v->mutable_list()->add_shape() = shape({-1, 8});
         v->mutable_list()->add_shape();
         v->mutable_list()->add_shape()->set_unknown_rank(true);
       })},
      {"0x", ""},  // Not set.
  };
}

TEST(AttrTextTest, PrintsAndReadsWhatProtobufWrites) {
  for (const TextCase& c : Cases()) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(PrintAttr(c.bytes), c.text);
    absl::string_view text = c.text;
    std::string bytes;
    EXPECT_TRUE(ParseAttr(&text, &bytes));
    EXPECT_EQ(text, "");
    EXPECT_EQ(bytes, c.bytes);
  }
}

// Values without a text form are printed as bytes, so that nothing is lost.
TEST(AttrTextTest, AnythingElseIsBytes) {
  testing::AttrValue func, tensor, named_dim;
  func.mutable_func()->set_name("f");
  tensor.mutable_tensor()->set_dtype(1);
  named_dim.mutable_shape()->add_dim()->set_name("batch");
  const std::string kOdd[] = {
      func.SerializeAsString(),
      tensor.SerializeAsString(),
      named_dim.SerializeAsString(),
      RawNumber(6, 999),                                       // An unknown type.
      RawNumber(6, 101),                                       // A reference.
      RawNumber(5, 2),                                         // A bool that is neither 0 nor 1.
      RawField(7, RawField(2, RawNumber(1, -5))),              // A dimension below -1.
      RawNumber(3, 1) + RawNumber(3, 2),                       // Given twice.
      RawField(1, RawNumber(3, 1)),                            // A list that is not packed.
      RawField(1, RawField(3, "\x01") + RawField(6, "\x01")),  // A list of two kinds.
      testing::RawVarint(3 << 3) + testing::RawVarint(1, 2),   // An over-long number.
      testing::RawVarint(4 << 3 | 5) + std::string("\x01\x00\xc0\x7f", 4),  // A NaN with a payload.
      "\xff\xff",                                                           // No message at all.
  };
  for (const std::string& bytes : kOdd) {
    const std::string text = PrintAttr(bytes);
    EXPECT_EQ(text, PrintHex(bytes));
    absl::string_view rest = text;
    std::string back;
    EXPECT_TRUE(ParseAttr(&rest, &back));
    EXPECT_EQ(back, bytes) << text;
  }
}

TEST(AttrTextTest, RandomBytesComeBackToo) {
  testing::Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Below(12), '\0');
    for (char& c : bytes) c = static_cast<char>(random.OneIn(2) ? random.Below(64) : random.Next());
    const std::string text = PrintAttr(bytes);
    absl::string_view rest = text;
    std::string back;
    ASSERT_TRUE(ParseAttr(&rest, &back)) << text;
    ASSERT_EQ(rest, "");
    ASSERT_EQ(back, bytes) << text;
  }
}

TEST(AttrTextTest, StopsBehindTheValue) {
  absl::string_view text = "[1, 2 ], next=3";
  std::string bytes;
  EXPECT_TRUE(ParseAttr(&text, &bytes));
  EXPECT_EQ(text, ", next=3");
}

TEST(AttrTextTest, WhatIsNoValueIsRefused) {
  for (const char* bad :
       {"", "float", "1.5", "nan", "[1", "[1,]", "[,]", "[1 2]", "[1,1f]", "[[1]]", "\"", "\"\\x\"",
        "(", "(1", "(a)", "(1,,2)", "0x1", "TRUE", "9223372036854775808"}) {
    absl::string_view text = bad;
    std::string bytes;
    // 0x1 is read as the number 0 and trailing text.
    EXPECT_FALSE(ParseAttr(&text, &bytes) && text.empty()) << bad;
  }
}

TEST(AttrTextTest, Hex) {
  EXPECT_EQ(PrintHex(std::string("\x00\xab", 2)), "0x00ab");
  absl::string_view text = "0x00AbZ";
  std::string bytes = "kept";
  EXPECT_TRUE(ParseHex(&text, &bytes));
  EXPECT_EQ(bytes, std::string("kept\x00\xab", 6));
  EXPECT_EQ(text, "Z");
  for (absl::string_view bad : {"", "00", "0x1", "x00"}) {
    absl::string_view rest = bad;
    EXPECT_FALSE(ParseHex(&rest, &bytes)) << bad;
    EXPECT_EQ(rest, bad);
  }
}

}  // namespace
}  // namespace spillway::testing
