#include "server/work/plan_key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"

namespace spillway::server {
namespace {

std::string KeyOf(absl::string_view graph, absl::string_view options = "") {
  const auto key = PlanKey(graph, options, core::StopToken());
  EXPECT_TRUE(key.ok()) << key.status();
  return key.value_or("");
}

TEST(PlanKeyTest, IsTheSameForAllSerializations) {
  const testing::GraphDef graph = testing::ReadProto(testing::ReadTestGraph("mnist_deep/graph.pb"));
  EXPECT_EQ(KeyOf(testing::WriteProto(graph), "o"), KeyOf(testing::WriteProtoBackward(graph), "o"));
}

TEST(PlanKeyTest, EveryByteCounts) {
  const std::string graph = testing::ReadTestGraph("mnist_deep/graph.pb");
  std::set<std::string> keys = {KeyOf(graph), KeyOf(graph, "o"), KeyOf(graph, "p")};
  EXPECT_EQ(keys.size(), 3);
  // Flips some of the bytes, each separately, for any meaning.
  for (size_t at = 0; at < graph.size(); at += 997) {
    std::string other = graph;
    other[at] ^= 1;
    EXPECT_TRUE(keys.insert(KeyOf(other)).second) << at;
  }
}

TEST(PlanKeyTest, WhereTheGraphEndsCounts) {
  EXPECT_NE(KeyOf("graphs", ""), KeyOf("graph", "s"));
  // Also beyond the buffered part.
  const std::string large(100'000, 'g');
  EXPECT_NE(KeyOf(large, ""), KeyOf(large.substr(1), "g"));
  EXPECT_NE(KeyOf(large), KeyOf(large + "g"));
}

}  // namespace
}  // namespace spillway::server
