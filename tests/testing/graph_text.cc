#include "tests/testing/graph_text.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/text_form.h"

namespace spillway::testing {
namespace {

[[noreturn]] void Die(absl::string_view what, absl::string_view detail) {
  std::cerr << "test data: " << what << ": " << detail << std::endl;
  std::abort();
}

}  // namespace

std::string GraphBytes(absl::string_view text) {
  auto bytes = ParseGraphText(text);
  if (!bytes.ok()) Die(bytes.status().ToString(), text);
  return *std::move(bytes);
}

absl::StatusOr<core::Graph> ParseGraph(absl::string_view bytes) {
  return core::Graph::Parse(bytes, core::DefaultLimits(), core::StopToken());
}

TestGraph::TestGraph(absl::string_view text) { Index(GraphBytes(text)); }

TestGraph TestGraph::FromBytes(std::string bytes) {
  TestGraph graph;
  graph.Index(std::move(bytes));
  return graph;
}

void TestGraph::Index(std::string bytes) {
  bytes_ = std::make_unique<const std::string>(std::move(bytes));
  auto graph = ParseGraph(*bytes_);
  if (!graph.ok()) Die(graph.status().ToString(), DescribeGraph(*bytes_));
  graph_ = std::make_unique<const core::Graph>(*std::move(graph));
}

core::NodeId TestGraph::operator[](absl::string_view name) const {
  const core::NodeId id = graph_->Find(name);
  if (id == core::kNoNode) Die("no such node", name);
  return id;
}

core::Tensor TestGraph::Output(absl::string_view spelling) const {
  const size_t colon = spelling.rfind(':');
  if (colon == absl::string_view::npos) return {Node(spelling), 0};
  int port = 0;
  if (!absl::SimpleAtoi(spelling.substr(colon + 1), &port)) Die("no such port", spelling);
  return {Node(spelling.substr(0, colon)), port};
}

std::string DescribeGraph(absl::string_view bytes) {
  if (auto graph = ParseGraph(bytes); graph.ok()) return PrintGraph(*graph);
  GraphDef proto;
  if (proto.ParseFromString(std::string(bytes))) return proto.DebugString();
  return absl::StrCat("0x", absl::BytesToHexString(bytes));
}

}  // namespace spillway::testing
