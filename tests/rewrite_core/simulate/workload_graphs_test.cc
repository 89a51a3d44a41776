// Workloads of whole training graphs.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <string>

#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload_builder.h"
#include "tests/testing/files.h"
#include "tests/testing/step.h"

namespace spillway::core {
namespace {
using testing::Step;
using testing::TestGraph;
double Ms(std::chrono::steady_clock::time_point t0) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count();
}
void Show(const std::string& name, const v1::RewriteOptions& o) {
  Step s(TestGraph::FromBytes(testing::ReadFile("/work/shared/graphs/"+name+"/graph_shapes.pb")), o);
  WorkloadNotes notes;
  Workload w = s.Build(nullptr, &notes);
  for (int i = 0; i < 3; ++i) {
    auto t = std::chrono::steady_clock::now();
    auto p = Placement::Find(*s.graph, s.topology, s.shapes, {});
    double a = Ms(t);
    t = std::chrono::steady_clock::now();
    auto b = Buffers::Find(*s.graph, s.topology, s.shapes, *p, nullptr, {});
    double bb = Ms(t);
    t = std::chrono::steady_clock::now();
    auto c = Costs::Estimate(*s.graph, s.shapes, *p, *b, s.hardware, 0, nullptr, {});
    double cc = Ms(t);
    t = std::chrono::steady_clock::now();
    auto ac = FindActiveNodes(*s.graph, s.topology, s.shapes, {}, nullptr, {});
    double aa = Ms(t);
    t = std::chrono::steady_clock::now();
    s.Build();
    std::cout << name << " ms placement " << a << " buffers " << bb << " cost " << cc << " active " << aa << " workload " << Ms(t) << "\n";
  }
  double sum = 0;
  std::map<std::string, std::pair<double, int>> by_op;
  std::map<OpKind, std::pair<double, int>> kinds;
  for (auto& op : w.ops) {
    kinds[op.kind].first += op.duration_ns * 1e-9;
    kinds[op.kind].second++;
    if (op.kind == OpKind::kCompute) {
      sum += op.duration_ns * 1e-9;
      auto& e = by_op[std::string(s.graph->op(op.node))];
      e.first += op.duration_ns * 1e-9;
      e.second += op.duration_ns > 0;
    }
  }
  double res = 0;
  for (auto& b : w.buffers) if (b.resident && b.device >= 0) res += b.bytes;
  std::cout << name << " active " << std::count(s.active.flags.begin(), s.active.flags.end(), true) << "/" << s.graph->num_nodes() << " targets " << s.active.targets.size() << " source " << int(s.active.source)
            << " devices " << w.devices.size() << " sum " << sum << " s; resident MiB " << res / 1048576
            << " unknown buffers " << notes.unknown_buffers << " costs " << notes.unknown_costs << " loops " << notes.loops << " merges " << notes.merges << "\n";
  for (auto& [k, v] : kinds) std::cout << "   kind " << int(k) << " n " << v.second << " s " << v.first << "\n";
  std::vector<std::pair<double, std::string>> top;
  for (auto& [k, v] : by_op) top.push_back({v.first, k + " x" + std::to_string(v.second)});
  std::sort(top.rbegin(), top.rend());
  for (size_t i = 0; i < 9 && i < top.size(); ++i) std::cout << "     " << top[i].first << " " << top[i].second << "\n";
  for (auto mode : {SimulationMode::kLaunchAhead, SimulationMode::kSynchronous}) {
    SimulationOptions so; so.mode = mode; so.launch_ns = 10000;
    auto r = Simulate(w, so, {});
    if (!r.ok()) { std::cout << r.status() << "\n"; continue; }
    std::cout << "   sim: t " << r->step_time_ns * 1e-9;
    for (auto& d : r->devices) std::cout << " peak GiB " << d.peak_bytes / 1073741824.0 << " stall " << d.stall_ns * 1e-9 << " out " << d.copy_out_bytes << " in " << d.copy_in_bytes << " peak at " << (d.peak_op >= 0 ? std::string(s.graph->name(w.ops[d.peak_op].node)) : "-");
    std::cout << " host " << r->host_peak_bytes << "\n";
  }
}
TEST(Calib, All) {
  v1::RewriteOptions o;
  Show("resnet50_tf1", o);
  Show("tfcnn_resnet50_b200", o);
  Show("bert_base", o);
  for (int b : {150, 200}) {
    v1::RewriteOptions f;
    auto* x = f.add_feeds();
    x->set_name("images:0");
    for (int d : {b, 224, 224, 3}) x->add_dims(d);
    x = f.add_feeds();
    x->set_name("labels:0");
    x->add_dims(b);
    Show("resnet50_free", f);
  }
}
}  // namespace
}  // namespace spillway::core
