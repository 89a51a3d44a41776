// BudgetPlanner::Cover beside the least bytes of any sufficient choice of its gaps, which another
// program finds (integer_program.h), on small training graphs; and that least beside the lower
// bounds of the same step.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/testing/integer_program.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::GraphDef;
using testing::IntegerProgram;
using testing::Random;
using testing::TestGpuStep;
using testing::TestGraph;

// ---- Graphs.

constexpr int kBatch = 256;

std::string Shape(int a, int b) { return absl::StrCat("[(", a, ",", b, ")]"); }

// Layers of these widths one behind the other: a product, a Relu, their gradients, and the update
// of the weights. `skip`: each second layer of the same width as the one before it adds that.
class Chain {
 public:
  Chain(std::vector<int> widths, bool skip) : widths_(std::move(widths)) {
    text_ = absl::StrCat("x = Placeholder() @/gpu:0 {dtype=float32, shape=(", kBatch, ",",
                         widths_[0], "), _output_shapes=", Shape(kBatch, widths_[0]),
                         "}\nrate = Const() @/gpu:0 {dtype=float32}\n");
    for (size_t i = 1; i < widths_.size(); ++i) {
      const std::string weights = Shape(widths_[i - 1], widths_[i]);
      absl::StrAppend(&text_, "w", i, " = VariableV2() @/gpu:0 {dtype=float32, shape=(",
                      widths_[i - 1], ",", widths_[i], "), _output_shapes=", weights, "}\n");
      Line(absl::StrCat("r", i), "Identity", {absl::StrCat("w", i)}, weights);
    }
    std::string last = "x";
    std::vector<std::string> inputs;
    for (size_t i = 1; i < widths_.size(); ++i) {
      inputs.push_back(last);
      Line(absl::StrCat("p", i), "MatMul", {last, absl::StrCat("r", i)}, Of(i));
      Line(absl::StrCat("a", i), "Relu", {absl::StrCat("p", i)}, Of(i));
      adds_.push_back(skip && i % 2 == 0 && widths_[i] == widths_[i - 1]);
      if (adds_.back()) Line(absl::StrCat("s", i), "AddV2", {last, absl::StrCat("a", i)}, Of(i));
      last = absl::StrCat(adds_.back() ? "s" : "a", i);
    }
    std::string gradient = last;
    for (size_t i = widths_.size() - 1; i > 0; --i) {
      const std::string after = gradient;
      Line(absl::StrCat("G/a", i), "ReluGrad", {after, absl::StrCat("a", i)}, Of(i));
      gradient = absl::StrCat("G/a", i);
      Line(absl::StrCat("G/w", i), "MatMul", {inputs[i - 1], gradient},
           Shape(widths_[i - 1], widths_[i]), ", transpose_a=true");
      Line(absl::StrCat("update", i), "ApplyGradientDescent",
           {absl::StrCat("w", i), "rate", absl::StrCat("G/w", i)},
           Shape(widths_[i - 1], widths_[i]));
      if (i == 1) break;
      Line(absl::StrCat("G/p", i), "MatMul", {gradient, absl::StrCat("r", i)}, Of(i - 1),
           ", transpose_b=true");
      gradient = absl::StrCat("G/p", i);
      if (adds_[i - 1]) {
        Line(absl::StrCat("G/s", i), "AddV2", {gradient, after}, Of(i - 1));
        gradient = absl::StrCat("G/s", i);
      }
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string Of(size_t layer) const { return Shape(kBatch, widths_[layer]); }
  void Line(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const std::string& shapes, const std::string& more = "") {
    absl::StrAppend(&text_, name, " = ", op, "(", absl::StrJoin(inputs, ", "),
                    ") @/gpu:0 {T=float32, _output_shapes=", shapes, more, "}\n");
  }

  const std::vector<int> widths_;
  std::vector<bool> adds_;
  std::string text_;
};

std::string RandomChain(bool thin, bool skip, Random* random) {
  const int layers = random->Between(5, skip ? 8 : 9);
  std::vector<int> widths;
  for (int i = 0; i <= layers; ++i) {
    // Of all sizes; or some, as networks have.
    const int width = thin ? random->Between(1, 640) : 64 << random->Below(4);
    widths.push_back(skip && i > 0 && random->OneIn(2) ? widths.back() : width);
  }
  return Chain(widths, skip).text();
}

// Any graph, with a size for each of its tensors.
std::string RandomNet(uint64_t seed) {
  testing::RandomGraphOptions options;
  options.forward_ops = 18;
  options.devices = false;
  GraphDef graph = testing::MakeRandomGraph(seed, options);
  Random random(seed);
  for (testing::NodeDef& node : *graph.mutable_node()) {
    auto* list = (*node.mutable_attr())["_output_shapes"].mutable_list();
    list->Clear();
    for (int i = 0; i < (node.op() == "Split" ? 2 : 1); ++i) {
      auto* shape = list->add_shape();
      shape->add_dim()->set_size(random.Between(1, 64));
      shape->add_dim()->set_size(random.Between(1, 4'000));
    }
  }
  return graph.SerializeAsString();
}

// ---- Covers.

std::vector<GapId> CoverWithin(const TestGpuStep& step, int64_t target) {
  BudgetSetting setting;
  setting.targets.assign(step.order.num_slots(), target);
  return step.planner.Cover(setting);
}

int64_t MostInUse(const TestGpuStep& step, const std::vector<GapId>& chosen) {
  std::vector<int64_t> live = step.order.live_bytes();
  for (GapId i : chosen) {
    const Gap& gap = step.planner.gaps()[i];
    for (Slot slot(gap.after + 1); slot < gap.before; ++slot) live[slot] -= gap.bytes;
  }
  return *std::max_element(live.begin(), live.end());
}

struct Traffic {
  int64_t in = 0, out = 0;
};

Traffic TrafficOf(const TestGpuStep& step, const std::vector<GapId>& chosen) {
  std::map<OrderBuffer, int64_t> buffers;
  Traffic traffic;
  for (GapId i : chosen) {
    const Gap& gap = step.planner.gaps()[i];
    traffic.in += gap.bytes;
    buffers[gap.buffer] = gap.bytes;
  }
  for (const auto& [buffer, bytes] : buffers) traffic.out += bytes;
  return traffic;
}

// The choice of gaps within the target that has the least bytes in, out, or both. Its bytes; -1: it
// was not found in time.
int64_t LeastWithin(const TestGpuStep& step, int64_t target, bool counts_in, bool counts_out) {
  constexpr double kUnit = kAllocationBytes;  // All sizes are in such.
  IntegerProgram program;
  std::vector<int> away;
  std::map<OrderBuffer, int> out;
  for (const Gap& gap : step.planner.gaps()) {
    const double units = static_cast<double>(gap.bytes) / kUnit;
    away.push_back(program.AddChoice(counts_in ? units : 0));
    if (!counts_out) continue;
    const auto [it, is_new] = out.try_emplace(gap.buffer, 0);
    if (is_new) it->second = program.AddChoice(units);
    program.AddRow({{it->second, 1}, {away.back(), -1}}, 0);
  }
  for (Slot slot(0); slot < step.order.num_slots(); ++slot) {
    const int64_t lacking = step.order.live_bytes()[slot] - target;
    if (lacking <= 0) continue;
    std::vector<std::pair<int, double>> freed;
    for (size_t g = 0; g < away.size(); ++g) {
      const Gap& gap = step.planner.gaps()[g];
      if (gap.spans(slot)) {
        freed.emplace_back(away[g], static_cast<double>(gap.bytes) / kUnit);
      }
    }
    program.AddRow(freed, std::ceil(static_cast<double>(lacking) / kUnit));
  }
  const IntegerProgram::Outcome outcome = program.Minimize();
  EXPECT_NE(outcome, IntegerProgram::Outcome::kImpossible);
  if (outcome != IntegerProgram::Outcome::kOptimal) return -1;
  std::vector<GapId> chosen;
  for (size_t g = 0; g < away.size(); ++g) {
    if (program.is_chosen(away[g])) chosen.push_back(GapId(g));
  }
  EXPECT_LE(MostInUse(step, chosen), target);
  const Traffic traffic = TrafficOf(step, chosen);
  return (counts_in ? traffic.in : 0) + (counts_out ? traffic.out : 0);
}

// How much more a cover moves than the least, in parts of that.
struct Excess {
  double sum = 0, most = 0;
  int64_t count = 0;
  void Add(int64_t bytes, int64_t least) {
    const double excess = static_cast<double>(bytes) / static_cast<double>(least) - 1;
    sum += excess;
    most = std::max(most, excess);
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
  std::string text() const {
    return absl::StrFormat("%.1f%% on average, at most %.0f%%", 100 * mean(), 100 * most);
  }
};

// The part of the removable bytes that a budget leaves in use. At the largest so little is covered
// that one gap may be worth all others: there the cover is at its worst.
constexpr double kShares[] = {0.0, 0.2, 0.4, 0.6, 0.8};
constexpr double kLittle = 0.7;

struct Kind {
  std::string name;
  std::string (*make)(uint64_t seed);
  bool is_text;
  int seeds;
  double most_mean;  // Of bytes moved in above the least, when little is covered.
};

class ExactCoverTest : public ::testing::TestWithParam<Kind> {};

TEST_P(ExactCoverTest, IsNearTheLeast) {
  const Kind& kind = GetParam();
  int64_t exact = 0, given_up = 0, most_nodes = 0, most_gaps = 0;
  Excess much, little, both;
  for (int seed = 0; seed < kind.seeds && !HasFailure(); ++seed) {
    const std::string made = kind.make(seed);
    const TestGpuStep step(kind.is_text ? TestGraph(made) : TestGraph::FromBytes(made));
    const std::vector<int64_t>& live = step.order.live_bytes();
    if (live.empty() || step.planner.gaps().empty()) continue;
    most_nodes = std::max<int64_t>(most_nodes, step.order.num_slots());
    most_gaps = std::max(most_gaps, static_cast<int64_t>(step.planner.gaps().size()));
    std::vector<GapId> all;
    for (GapId i(0); i < step.planner.num_gaps(); ++i) all.push_back(i);
    const int64_t most = *std::max_element(live.begin(), live.end());
    const int64_t least = MostInUse(step, all);
    for (const double share : kShares) {
      const int64_t target =
          least + static_cast<int64_t>(share * static_cast<double>(most - least));
      if (target >= most) continue;
      const std::vector<GapId> chosen = CoverWithin(step, target);
      ASSERT_LE(MostInUse(step, chosen), target) << seed << ", " << share;
      const int64_t least_in = LeastWithin(step, target, true, false);
      const int64_t least_out = LeastWithin(step, target, false, true);
      const int64_t least_both = LeastWithin(step, target, true, true);
      if (least_in < 0 || least_out < 0 || least_both < 0) {
        ++given_up;
        continue;
      }
      const Traffic traffic = TrafficOf(step, chosen);
      ASSERT_GE(traffic.in, least_in) << seed << ", " << share;
      ASSERT_GE(traffic.in + traffic.out, least_both) << seed << ", " << share;
      exact += traffic.in == least_in;
      (share < kLittle ? much : little).Add(traffic.in, least_in);
      both.Add(traffic.in + traffic.out, least_both);
      // The bounds ignore which readers can read a swap-in, so they may be lower.
      LowerBoundOptions options;
      options.device_budget_bytes = {target};
      const auto bounds = ComputeLowerBounds(step.simulator->unswapped(),
                                             step.unswapped.launch_ahead.order, options, {});
      ASSERT_TRUE(bounds.ok()) << bounds.status();
      ASSERT_LE(bounds->front().swap_in_bytes, least_in) << seed << ", " << share;
      ASSERT_LE(bounds->front().swap_out_bytes, least_out) << seed << ", " << share;
    }
  }
  std::cout << kind.name << ": " << both.count << " covers of up to " << most_gaps << " gaps over "
            << most_nodes << " nodes, " << exact
            << " exact; bytes in above the least: " << much.text()
            << "; where there is little to cover " << little.text() << "; in and out "
            << both.text() << "; " << given_up << " not solved in time\n";
  EXPECT_GT(much.count, kind.seeds * 2);
  EXPECT_GT(little.count, kind.seeds / 2);
  EXPECT_LT(given_up, kind.seeds / 10 + 1);
  EXPECT_LT(much.mean(), 0.03);
  EXPECT_LT(little.mean(), kind.most_mean);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExactCoverTest,
    ::testing::Values(Kind{"thin_chains",
                           [](uint64_t seed) {
                             Random random(seed);
                             return RandomChain(/*thin=*/true, /*skip=*/false, &random);
                           },
                           true, 60, 0.1},
                      Kind{"chains",
                           [](uint64_t seed) {
                             Random random(seed);
                             return RandomChain(/*thin=*/false, /*skip=*/false, &random);
                           },
                           true, 60, 0.25},
                      Kind{"residual_chains",
                           [](uint64_t seed) {
                             Random random(seed);
                             return RandomChain(/*thin=*/seed % 2 == 0, /*skip=*/true, &random);
                           },
                           true, 60, 0.1},
                      Kind{"random_nets", RandomNet, false, 60, 0.15},
                      Kind{"training_nets",
                           [](uint64_t seed) {
                             testing::TrainingGraphOptions options;
                             options.nodes = 150 + 25 * static_cast<int64_t>(seed);
                             return testing::MakeTrainingGraph(options);
                           },
                           false, 8, 0.1}),
    testing::CaseName());

}  // namespace
}  // namespace spillway::core
