// Plans that were tampered with: names, numbers and edges in wrong places. Each is refused as
// BAD_PLAN, or keeps the properties of a rewrite (properties.h): nothing is left for the verifier,
// and no node is dead that was alive.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/property/properties.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/sanitizers.h"

namespace spillway::testing {
namespace {

class Tampering {
 public:
  Tampering(const GraphDef& graph, Random* random) : random_(*random) {
    for (const NodeDef& node : graph.node()) {
      names_.push_back(node.name());
      for (int i = 0; i < node.input_size(); ++i) {
        const InputName input = SplitInput(node.input(i));
        if (input.control) continue;
        reads_.push_back({absl::StrCat(input.node, ":", input.port), node.name(), i});
      }
    }
  }

  // Adds a clone of a node with a reader, or changes one.
  void OnceInClones(v1::Plan* plan) {
    plan->set_format_version(2);
    if (plan->clones().empty() || random_.OneIn(3)) {
      const Read& read = random_.Pick(reads_);
      v1::PlannedClone* clone = plan->add_clones();
      clone->set_node(std::string(SplitInput(read.tensor).node));
      Serve(read, clone->add_consumers());
      if (!random_.OneIn(4)) clone->set_trigger(Name());
      return;
    }
    v1::PlannedClone& clone = *plan->mutable_clones(random_.Below(plan->clones_size()));
    switch (random_.Below(6)) {
      case 0:
        return clone.set_node(Name());
      case 1:
        return clone.set_trigger(random_.OneIn(4) ? "" : Name());
      case 2:
        return Serve(random_.Pick(reads_), clone.add_consumers());
      case 3:
        return clone.clear_consumers();
      case 4:
        return clone.add_updates(Name());
      default: {
        v1::CloneInput* input = clone.add_inputs();
        input->set_input_index(random_.Between(-1, 2));
        input->set_clone(random_.Between(-1, plan->clones_size()));
      }
    }
  }

  void Once(v1::Plan* plan) {
    if (random_.OneIn(3)) return OnceInClones(plan);
    v1::PlannedSwap* swap =
        plan->swaps().empty() ? nullptr : plan->mutable_swaps(random_.Below(plan->swaps_size()));
    v1::PlannedSwapIn* swap_in = swap == nullptr || swap->swap_ins().empty()
                                     ? nullptr
                                     : swap->mutable_swap_ins(random_.Below(swap->swap_ins_size()));
    switch (random_.Below(swap_in == nullptr ? 2 : 11)) {
      case 0: {  // A tensor that somebody reads.
        const Read& read = random_.Pick(reads_);
        v1::PlannedSwap* added = plan->add_swaps();
        added->set_tensor(read.tensor);
        Serve(read, added->add_swap_ins());
        return;
      }
      case 1: {
        v1::AddedControl* control = plan->add_controls();
        control->set_source(Name());
        control->set_node(Name());
        control->set_kind(random_.OneIn(2) ? v1::EDGE_KIND_ORDER : v1::EDGE_KIND_SERIALIZATION);
        return;
      }
      case 2:
        return swap_in->add_triggers(Name());
      case 3:
        return swap_in->add_pace_nodes(Name());
      case 4:
        return swap->add_deadline_nodes(Name());
      case 5:
        if (swap_in->triggers().empty()) return;
        *swap_in->mutable_triggers(random_.Below(swap_in->triggers_size())) = Name();
        return;
      case 6:
        return Serve(random_.Pick(reads_), swap_in);
      case 7:
        swap->set_tensor(random_.Pick(reads_).tensor);
        return;
      case 8:  // Another reader, if any, in a swap-in of its own.
        for (int tries = 0; tries < 100; ++tries) {
          const Read& read = random_.Pick(reads_);
          if (read.tensor != swap->tensor()) continue;
          return Serve(read, swap->add_swap_ins());
        }
        return;
      case 9:
        *plan->add_swaps() = *swap;
        return;
      case 10:
        if (swap_in->consumers().empty()) return;
        swap_in->mutable_consumers(random_.Below(swap_in->consumers_size()))
            ->set_input_index(random_.Between(-2, 3));
        return;
    }
  }

 private:
  struct Read {
    std::string tensor, node;
    int index;
  };

  static void Serve(const Read& read, v1::InputRef* ref) {
    ref->set_node(read.node);
    ref->set_input_index(read.index);
  }
  static void Serve(const Read& read, v1::PlannedSwapIn* swap_in) {
    Serve(read, swap_in->add_consumers());
  }

  std::string Name() { return random_.OneIn(50) ? "nobody" : random_.Pick(names_); }

  Random& random_;
  std::vector<std::string> names_;
  std::vector<Read> reads_;
};

struct TamperedKind {
  const char* name;
  RandomGraphOptions options;
};

constexpr TamperedKind kTampered[] = {
    {"Plain", {15, false, false, true, true}},
    {"Conds", {15, true, false, true, false}},
    {"Loops", {15, false, true, true, false}},
    {"CondsAndLoops", {20, true, true, true, false}},
};

void PrintTo(const TamperedKind& kind, std::ostream* out) { *out << kind.name; }

class HostilePlanTest : public ::testing::TestWithParam<TamperedKind> {};

TEST_P(HostilePlanTest, IsRefusedOrSound) {
  const int seeds = (kAddressSanitizer ? 150 : 600) * LongRunFactor(20);
  int refused = 0, applied = 0, failures = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const GraphDef graph = MakeRandomGraph(seed / 10, GetParam().options);
    const std::string input = WriteProto(graph);
    v1::RewriteOptions options;
    options.mutable_scope()->add_optimizer_scopes("gradients");
    options.mutable_scope()->add_optimizer_scopes("train");
    options.add_outputs(v1::OUTPUT_PLAN);
    const auto saved = core::Rewrite(input, options, core::DefaultLimits(), core::StopToken());
    if (!saved.ok()) continue;  // No start was found.
    v1::Plan plan = saved->plan();
    Tampering tampering(graph, &random);
    for (int i = random.Between(1, 3); i > 0; --i) tampering.Once(&plan);
    v1::RewriteOptions apply;
    plan.SerializeToString(apply.mutable_apply()->mutable_plan());
    const Verdict verdict = CheckRewrite(input, apply, &random);
    (verdict.refused ? refused : applied) += 1;
    if (verdict.failure.empty() || ++failures > 3) continue;
    ADD_FAILURE() << DescribeCase(absl::StrCat(GetParam().name, " seed ", seed), verdict.failure,
                                  input, apply)
                  << plan.DebugString();
  }
  EXPECT_EQ(failures, 0);
  std::cout << refused << " refused, " << applied << " applied\n";
  EXPECT_GT(refused, seeds / 10);
  EXPECT_GT(applied, seeds / 50);
}

INSTANTIATE_TEST_SUITE_P(All, HostilePlanTest, ::testing::ValuesIn(kTampered),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace spillway::testing
