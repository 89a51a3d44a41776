#include "rewrite_core/graph/canonical_form.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rewrite_core/base/sha256.h"
#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"

namespace spillway::core {
namespace {

using testing::BytesField;

std::string FormOf(const std::string& bytes) {
  std::string form;
  EXPECT_TRUE(WriteCanonicalForm(bytes, StopToken(), [&form](absl::string_view piece) {
                form.append(piece.data(), piece.size());
              }).ok());
  return form;
}

std::string Entry(const std::string& name, const std::string& value) {
  return BytesField(1, name) + BytesField(2, value);
}

TEST(CanonicalFormTest, AllSerializationsHaveTheSame) {
  for (const char* name : {"mnist_deep/graph.pb", "lstm_while/graph.pb", "cond_v2/graph.pb"}) {
    const std::string bytes = testing::ReadTestGraph(name);
    const testing::GraphDef graph = testing::ReadProto(bytes);
    const std::string forward = testing::WriteProto(graph);
    const std::string backward = testing::WriteProtoBackward(graph);
    ASSERT_NE(backward, forward) << name;
    EXPECT_EQ(FormOf(backward), FormOf(forward)) << name;
    // In hash table order.
    EXPECT_EQ(FormOf(graph.SerializeAsString()), FormOf(forward)) << name;
  }
}

TEST(CanonicalFormTest, ComesInPiecesThatAreNeitherSmallNorLarge) {
  std::string bytes = testing::ReadTestGraph("mnist_deep/graph.pb");
  bytes += BytesField(3, std::string(1'000'000, 'x'));  // One field.
  std::vector<size_t> sizes;
  EXPECT_TRUE(WriteCanonicalForm(bytes, StopToken(), [&sizes](absl::string_view piece) {
                sizes.push_back(piece.size());
              }).ok());
  ASSERT_GT(sizes.size(), 15u);
  sizes.pop_back();
  for (size_t size : sizes) EXPECT_EQ(size, 65536u);
  // Even a large field must be interruptible.
  const std::atomic<bool> cancelled{true};
  const StopToken stop(absl::InfiniteFuture(), &cancelled);
  size_t written = 0;
  EXPECT_FALSE(WriteCanonicalForm(BytesField(3, std::string(1'000'000, 'x')), stop,
                                  [&written](absl::string_view piece) { written += piece.size(); })
                   .ok());
  EXPECT_LE(written, 65536u);
}

TEST(CanonicalFormTest, ItsSha256IsThatOfItsBytes) {
  const std::string bytes = testing::ReadTestGraph("mnist_deep/graph.pb");
  const auto of_form = Sha256Of(FormOf(bytes), StopToken());
  ASSERT_TRUE(of_form.ok());
  const testing::GraphDef graph = testing::ReadProto(bytes);
  for (const std::string& other :
       {bytes, testing::WriteProto(graph), testing::WriteProtoBackward(graph)}) {
    const auto sha256 = CanonicalSha256(other, StopToken());
    ASSERT_TRUE(sha256.ok());
    EXPECT_EQ(*sha256, absl::BytesToHexString(*of_form));
  }
  EXPECT_NE(*CanonicalSha256(bytes + BytesField(9, "more"), StopToken()),
            absl::BytesToHexString(*of_form));
  const std::atomic<bool> cancelled{true};
  EXPECT_FALSE(CanonicalSha256(bytes, StopToken(absl::InfiniteFuture(), &cancelled)).ok());
}

// Protobuf reads the same message from the form as from the graph. (For graphs without functions,
// which the tests' schema keeps as bytes.)
TEST(CanonicalFormTest, MeansTheSame) {
  for (const char* name : {"mnist_deep/graph.pb", "lstm_while/graph.pb"}) {
    const std::string bytes = testing::ReadTestGraph(name);
    const std::string form = FormOf(bytes);
    EXPECT_EQ(form.size(), bytes.size());
    EXPECT_EQ(FormOf(form), form);
    EXPECT_EQ(testing::WriteProto(testing::ReadProto(form)),
              testing::WriteProto(testing::ReadProto(bytes)))
        << name;
  }
}

TEST(CanonicalFormTest, AnyOtherDifferenceIsSeen) {
  const std::string bytes = testing::ReadTestGraph("mnist_deep/graph.pb");
  const std::string form = FormOf(bytes);
  const testing::GraphDef graph = testing::ReadProto(bytes);
  const auto expect_other = [&](const testing::GraphDef& other, const char* what) {
    EXPECT_NE(FormOf(other.SerializeAsString()), form) << what;
  };
  testing::GraphDef other = graph;
  other.mutable_node()->SwapElements(3, 4);
  expect_other(other, "nodes in another order");
  other = graph;
  other.mutable_node(3)->set_device("/gpu:7");
  expect_other(other, "another device");
  other = graph;
  (*other.mutable_node(3)->mutable_attr())["new"].set_b(true);
  expect_other(other, "another attribute");
  other = graph;
  ASSERT_FALSE(other.node(3).attr().empty());
  other.mutable_node(3)->mutable_attr()->begin()->second.set_s("another value");
  expect_other(other, "another value");
}

// If two entries have the same key, the last one counts.
TEST(CanonicalFormTest, EntriesOfOneKeyStayInTheirOrder) {
  const std::string a = BytesField(5, Entry("key", "1")), b = BytesField(5, Entry("key", "2"));
  EXPECT_NE(FormOf(BytesField(1, a + b)), FormOf(BytesField(1, b + a)));
  const std::string c = BytesField(5, Entry("other", "3"));
  EXPECT_EQ(FormOf(BytesField(1, a + c + b)), FormOf(BytesField(1, c + a + b)));
}

// Every map in a GraphDef: of nodes, of functions with their nodes and arguments, and of functions
// as attribute values, at any depth.
TEST(CanonicalFormTest, EveryMapIsSorted) {
  const std::string a = Entry("a", ""), b = Entry("b", "");
  const auto expect_same = [&](const auto& wrap, const char* what) {
    EXPECT_EQ(FormOf(wrap(a, b)), FormOf(wrap(b, a))) << what;
  };
  using S = const std::string&;
  expect_same([](S x, S y) { return BytesField(1, BytesField(5, x) + BytesField(5, y)); },
              "NodeDef.attr");
  const auto in_function = [](int field) {
    return [field](S x, S y) {
      return BytesField(2, BytesField(1, BytesField(field, x) + BytesField(field, y)));
    };
  };
  for (const int field : {4, 5, 6, 7, 8}) {
    expect_same(in_function(field), absl::StrCat("FunctionDef, field ", field).c_str());
  }
  expect_same(
      [](S x, S y) {
        return BytesField(2, BytesField(1, BytesField(3, BytesField(5, x) + BytesField(5, y))));
      },
      "FunctionDef.node_def.attr");
  expect_same(
      [](S x, S y) {
        return BytesField(
            2, BytesField(1, BytesField(7, BytesField(2, BytesField(1, x) + BytesField(1, y)))));
      },
      "FunctionDef.arg_attr.value.attr");
  const auto in_value = [](S value) { return BytesField(1, BytesField(5, Entry("f", value))); };
  expect_same(
      [&](S x, S y) { return in_value(BytesField(10, BytesField(2, x) + BytesField(2, y))); },
      "AttrValue.func.attr");
  expect_same(
      [&](S x, S y) {
        return in_value(BytesField(1, BytesField(9, BytesField(2, x) + BytesField(2, y))));
      },
      "AttrValue.list.func.attr");
}

// From an argument's number.
TEST(CanonicalFormTest, KeysMayBeNumbers) {
  const std::string one = BytesField(8, std::string("\x08\x01\x10\x07", 4));
  const std::string two = BytesField(8, std::string("\x08\x02\x10\x07", 4));
  EXPECT_EQ(FormOf(BytesField(2, BytesField(1, one + two))),
            FormOf(BytesField(2, BytesField(1, two + one))));
}

TEST(CanonicalFormTest, WhatIsNoGraphStaysAsItIs) {
  for (const std::string& bytes : {std::string(), std::string("no graph at all"),
                                   std::string("\x0a\x7f", 2), std::string(1000, '\xff')}) {
    EXPECT_EQ(FormOf(bytes), bytes);
  }
}

TEST(CanonicalFormTest, LargeMapsAndDeepOnesStayAsTheyAre) {
  std::string many;
  for (int i = kMaxSortedEntries; i >= 0; --i) many += BytesField(5, Entry(absl::StrCat(i), ""));
  EXPECT_EQ(FormOf(BytesField(1, many)), BytesField(1, many));
  const std::string a = Entry("a", ""), b = Entry("b", "");
  // Each function's name is an attribute of the enclosing one.
  const auto nested = [](std::string attrs, int depth) {
    for (int i = 0; i < depth; ++i) attrs = BytesField(2, Entry("f", BytesField(10, attrs)));
    return BytesField(1, BytesField(5, Entry("f", BytesField(10, attrs))));
  };
  const std::string x = BytesField(2, a) + BytesField(2, b),
                    y = BytesField(2, b) + BytesField(2, a);
  EXPECT_EQ(FormOf(nested(x, 10)), FormOf(nested(y, 10)));
  EXPECT_NE(FormOf(nested(x, 1'000)), FormOf(nested(y, 1'000)));
}

}  // namespace
}  // namespace spillway::core
