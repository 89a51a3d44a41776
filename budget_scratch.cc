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

  double best = 0; std::string line; SwapPlan best_plan; std::vector<Away> best_aways; int plays = 0;
  auto t0 = std::chrono::steady_clock::now();
  const double widths[] = {0.01, 0.03, 0.1, 1.0};
  for (double width : widths) for (double slack : {1.0, 1.15}) for (int gate : {0, 1, 4}) {
    BudgetSetting s; s.target_bytes = budget; s.gate_slots = gate; s.slack = slack;
    s.lowered.assign(order->num_slots(), 0);
    for (int iter = 0; iter < 60; ++iter) {
      auto chosen = planner->Cover(s);
      auto aways = planner->Schedule(chosen, s);
      auto swaps = planner->Plan(aways);
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
        if (ratio > best) { best = ratio; best_plan = plan; best_aways = aways; char buf[300]; std::snprintf(buf, 300, "width %.2f slack %.2f gate %d iter %d: %zu swaps %.2f GB %zu edges ahead %.4f peak %.3f", width, slack, gate, iter, plan.swaps.size(), b/1e9, edges, ratio, r->peak_bytes(0)/1e9); line = buf; }
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


  std::printf("constructed %.4f after %d plays\n", best, plays);
  if (best > 0) {
    uint64_t state = 12345;
    auto rnd = [&](int n) { state = state * 6364136223846793005ull + 1442695040888963407ull; return static_cast<int>((state >> 33) % n); };
    const int most = getenv("PLAYS") ? atoi(getenv("PLAYS")) : 1000;
    int64_t best_ns = static_cast<int64_t>(full / best) , best_bytes = 1ll << 60;
    StepTerms t0 = StepTerms::OneGpu(0, budget);
    best_ns = (*sim)->Simulate(best_plan, t0, stop)->step_time_ns();
    int taken = 0;
    for (int i = 0; i < most; ++i) {
      std::vector<Away> next = best_aways;
      int moves = 1 + rnd(2);
      while (moves-- > 0) {
        if (next.empty()) break;
        const int which = rnd(static_cast<int>(next.size()));
        Away& a = next[which];
        switch (rnd(6)) {
          case 0: case 1: { int d = 1 << rnd(7); a.trigger += rnd(2) ? d : -d; const Gap& g = planner->gaps()[a.gap]; a.trigger = std::max(g.after, std::min(g.before - 1, a.trigger)); break; }
          case 2: a.gate = rnd(9) - 0; break;
          case 3: next.erase(next.begin() + which); break;
          case 4: { // another gap in its place
            int ng = rnd(static_cast<int>(planner->gaps().size()));
            const Gap& g = planner->gaps()[ng]; const Gap& old = planner->gaps()[a.gap];
            if (g.bytes * 4 < old.bytes) break;
            bool dup = false; for (auto& o : next) dup |= o.gap == ng;
            if (dup) break;
            a.gap = ng; a.trigger = std::max(g.after, std::min(g.before - 1, g.before - 30)); break; }
          case 5: {
            int ng = rnd(static_cast<int>(planner->gaps().size()));
            const Gap& g = planner->gaps()[ng];
            if (g.bytes * 4 < planner->gaps()[a.gap].bytes) break;
            bool dup = false; for (auto& o : next) dup |= o.gap == ng;
            if (dup) break;
            next.push_back({ng, std::max(g.after, g.before - 30), 1}); break; }
        }
      }
      auto swaps = planner->Plan(next);
      SwapPlan plan; plan.swaps = *swaps;
      StepTerms tt = StepTerms::OneGpu(0, budget); tt.cutoff_ns = best_ns;
      auto r = (*sim)->Simulate(plan, tt, stop);
      CHECK_OK(r.status());
      if (!r->fits || r->is_partial) continue;
      int64_t b = 0; for (auto& a : next) b += planner->gaps()[a.gap].bytes;
      if (r->step_time_ns() < best_ns || (r->step_time_ns() == best_ns && b <= best_bytes)) { best_ns = r->step_time_ns(); best_bytes = b; best_aways = next; best_plan = plan; ++taken; }
    }
    size_t edges = 0; int64_t b = 0; for (auto& w : best_plan.swaps) { b += w.size_bytes; for (auto& i : w.swap_ins) edges += i.paces.size(); }
    std::printf("searched %d: %.4f, %d steps taken, %zu swaps %.2f GB %zu edges\n", most, double(full)/best_ns, taken, best_plan.swaps.size(), b/1e9, edges);
  }
  if (getenv("WHY")) {
    StepTerms tt = StepTerms::OneGpu(0, budget); tt.record_operations = true;
    auto r = (*sim)->Simulate(best_plan, tt, stop);
    int64_t end = 0; NodeId last = -1;
    for (OpId op : r->launch_ahead.order) {
      auto& t = r->launch_ahead.times[op]; NodeId n = r->ops[op].node;
      if (t.start_ns - end > 1000000) std::printf("idle %.2f ms before slot %d %s (given %.2f start %.2f; unlimited %.2f)\n", (t.start_ns - end)/1e6, order->slot(n), std::string(facts.graph().name(n)).c_str(), t.given_ns/1e6, t.start_ns/1e6, order->begin_ns(order->slot(n))/1e6);
      end = std::max(end, t.end_ns); last = n;
    }
    for (size_t i = 0; i < r->ops.size(); ++i) if (r->ops[i].swap >= 0 && r->ops[i].kind != OpKind::kHost) {
      auto& t = r->launch_ahead.times[i];
      auto& w = best_plan.swaps[r->ops[i].swap];
      int si = r->ops[i].swap_in;
      std::printf("%s %s %.1f MB given %.2f start %.2f end %.2f", si < 0 ? "out" : "in ", TensorName(facts.graph(), w.tensor).c_str(), w.size_bytes/1e6, t.given_ns/1e6, t.start_ns/1e6, t.end_ns/1e6);
      if (si >= 0) std::printf(" trigger slot %d consumer slot %d", order->slot(w.swap_ins[si].triggers[0]), order->slot(w.swap_ins[si].consumers[0].node));
      else std::printf(" made slot %d", order->slot(w.tensor.node));
      std::printf("\n");
    }
  }
  std::printf("%s\n%d plays in %.1f ms\n", line.c_str(), plays, std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() * 1e3);
}
