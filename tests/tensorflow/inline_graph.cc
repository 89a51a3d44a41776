// inline_graph GRAPH OUT: writes the graph with its calls inlined and its If, Case and While
// lowered, as forecasts see it, but with the Identities at the borders of calls: inlining.py
// compares it with TensorFlow's. A graph without any comes back unchanged.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/inline/inline_calls.h"

namespace core = spillway::core;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: inline_graph GRAPH OUT\n";
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const spillway::v1::Limits limits = core::DefaultLimits();
  const core::StopToken stop;
  const auto fail = [](const absl::Status& status) {
    std::cerr << status << "\n";
    return 1;
  };
  auto graph = core::Graph::Parse(bytes, limits, stop);
  if (!graph.ok()) return fail(graph.status());
  auto inlined = core::InlineCalls(*graph, {}, limits, stop, core::Borders::kIdentities);
  if (!inlined.ok()) return fail(inlined.status());
  const std::string& result = inlined->graph_def.empty() ? bytes : inlined->graph_def;
  auto after = core::Graph::Parse(result, limits, stop);
  if (!after.ok()) return fail(after.status());
  auto stripped = core::Strip(*after, stop);
  if (!stripped.ok()) return fail(stripped.status());
  if (*stripped != bytes) {
    std::cerr << "strip gives other bytes\n";
    return 1;
  }
  std::ofstream(argv[2], std::ios::binary) << result;
  return 0;
}
