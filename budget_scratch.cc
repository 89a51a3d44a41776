#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <chrono>
#include "rewrite_core/capabilities.h"
#include "rewrite_core/step_subject.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
using namespace spillway; using namespace spillway::core;
#define CHECK_OK(x) do { if (!(x).ok()) { std::printf("%s\n", std::string((x).message()).c_str()); std::exit(1);} } while (0)
int main(int argc, char** argv) {
  // graph batch preset reserve [budget bytes share of peak]
  std::ifstream f(argv[1], std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(f), {}};
  v1::RewriteOptions options;
  v1::Step& step = *options.mutable_step();
  if (atoi(argv[2]) > 0) step.set_batch_size(atoi(argv[2]));
  step.mutable_hardware()->set_preset(argv[3]);
  step.mutable_hardware()->set_allocator_reserve(atof(argv[4]));
  const StopToken stop;
  auto subject = StepSubject::Parse(bytes, step, DefaultLimits(), stop);
  CHECK_OK(subject.status());
  auto sim = (*subject)->Simulator(stop);
  CHECK_OK(sim.status());
  const StepFacts& facts = (*subject)->facts();
  auto elig = Eligibility::Create(facts, options, stop);
  CHECK_OK(elig.status());
  StepTerms terms; terms.record_operations = true;
  auto un = (*sim)->Simulate(SwapPlan(), terms, stop);
  CHECK_OK(un.status());
  const int64_t full = un->step_time_ns(), peak = un->peak_bytes(0);
  int64_t budget = facts.hardware().device_budget_bytes();
  if (argc > 5) budget = static_cast<int64_t>(atof(argv[5]) * peak);
  auto order = StepOrder::Create(facts, 0, *un, stop);
  CHECK_OK(order.status());
  const int64_t live = *std::max_element(order->live_bytes().begin(), order->live_bytes().end());
  std::printf("full %.3f ms peak %.3f GB (order says %.3f) budget %.3f GB slots %d\n", full/1e6, peak/1e9, live/1e9, budget/1e9, order->num_slots());
  auto planner = BudgetPlanner::Create(facts, *elig, *order, stop);
  CHECK_OK(planner.status());
  std::printf("gaps %zu\n", planner->gaps().size());

  double best = 0; std::string line; int plays = 0;
  auto t0 = std::chrono::steady_clock::now();
  const double widths[] = {0.01, 0.03, 0.1, 1.0};
  for (double width : widths) for (double slack : {1.0, 1.15}) for (int gate : {0, 1, 4}) {
    BudgetSetting s; s.target_bytes = budget; s.gate_slots = gate; s.slack = slack;
    s.lowered.assign(order->num_slots(), 0);
    for (int iter = 0; iter < 60; ++iter) {
      auto chosen = planner->Cover(s);
      auto swaps = planner->Plan(chosen, s);
      CHECK_OK(swaps.status());
      SwapPlan plan; plan.swaps = *swaps;
      StepTerms tt = StepTerms::OneGpu(0, budget);
      if (best > 0) tt.cutoff_ns = full / best;
      ++plays;
      auto r = (*sim)->Simulate(plan, tt, stop);
      CHECK_OK(r.status());
      if (r->is_partial) break;
      if (r->fits) {
        int64_t b = 0; size_t edges = 0;
        for (auto& w : plan.swaps) { b += w.size_bytes; for (auto& i : w.swap_ins) edges += i.paces.size(); }
        double ratio = double(full) / r->step_time_ns();
        if (ratio > best) { best = ratio; char buf[300]; std::snprintf(buf, 300, "width %.2f slack %.2f gate %d iter %d: %zu swaps %.2f GB %zu edges ahead %.4f peak %.3f", width, slack, gate, iter, plan.swaps.size(), b/1e9, edges, ratio, r->peak_bytes(0)/1e9); line = buf; }
        break;
      }
      auto* o = r->failure();
      if (o->node < 0) { break; }
      Slot at = order->slot(o->node); if (at < 0) at = order->num_slots() / 2;
      const Slot w = std::max<Slot>(3, width * order->num_slots());
      const int64_t by = std::max<int64_t>(std::min<int64_t>(o->missing_bytes, budget / 50), budget / 200);
      for (Slot t = std::max(0, at - w); t <= std::min(order->num_slots() - 1, at + w); ++t) s.lowered[t] += by;
    }
  }
  std::printf("%s\n%d plays in %.1f ms\n", line.c_str(), plays, std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() * 1e3);
}
