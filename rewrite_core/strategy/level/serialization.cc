#include "rewrite_core/strategy/level/serialization.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/common/cond_scope.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/python_slice.h"

namespace spillway::core {
namespace {

// TFLMS v2 recognizes losses by this part of a name.
constexpr char kLoss[] = "loss";

bool IsInitialization(absl::string_view op) { return op == "Assign" || op == "AssignVariableOp"; }

absl::Status BadItem(absl::string_view text, absl::string_view what) {
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat("serialization has ", Quoted(text), ", which ", what,
                                   "; give one such as 12, 3:5 or -10:"),
                      {{"option", "serialization"}, {"value", text}});
}

class Serializer {
 public:
  Serializer(const StepFacts& facts, const LevelFilters& filters, const LevelOrder& levels,
             const std::vector<bool>& devices, const StopToken& stop)
      : facts_(facts),
        soundness_(facts),
        graph_(facts.graph()),
        filters_(filters),
        levels_(levels),
        devices_(devices),
        stop_(stop) {}

  absl::StatusOr<Serialization> Run(const v1::RewriteOptions& options) {
    auto needs = Needs::Find(facts_, stop_);
    if (!needs.ok()) return needs.status();

    chosen_.assign(levels_.num_levels(), false);
    if (absl::Status s = ChooseNamed(options.level()); !s.ok()) return s;
    if (absl::Status s = SortNodes(); !s.ok()) return s;
    if (options.level().serialization_by_size() > 0) {
      const double limit = options.level().serialization_by_size() * kBytesPerGib;
      if (absl::Status s = ChooseLarge(limit); !s.ok()) return s;
    }
    LeaveOutInitialization();
    return Chain(*needs);
  }

 private:
  // Of slices with the same step and remainder the union is walked: so the work is bounded by the
  // number of levels for each step, however many slices are given.
  absl::Status ChooseNamed(const v1::LevelStrategy& options) {
    StopPoller poll(stop_);
    std::vector<Positions> slices;
    for (const std::string& text : options.serialization()) {
      if (poll.Tick()) return stop_.status("strategy");
      const auto selected = SelectPositions(text, levels_.num_levels());
      if (selected.has_value() && !selected->empty()) {
        slices.push_back(*selected);
        continue;
      }
      const std::string range = absl::StrCat("0 to ", levels_.num_levels() - 1);
      return WithDetail(BadItem(text, absl::StrCat("selects none of the graph's levels ", range)),
                        "levels", range);
    }
    const auto of_one = [](const Positions& p) { return std::make_pair(p.step, p.first % p.step); };
    const auto less = [&](const Positions& a, const Positions& b) {
      return std::make_pair(of_one(a), a.first) < std::make_pair(of_one(b), b.first);
    };
    if (!PolledSort(slices.begin(), slices.end(), less, &poll)) return stop_.status("strategy");
    int64_t next = 0;  // Those before it are chosen already.
    for (size_t i = 0; i < slices.size(); ++i) {
      if (i == 0 || of_one(slices[i]) != of_one(slices[i - 1])) next = 0;
      next = std::max(next, slices[i].first);
      for (; next <= slices[i].last; next += slices[i].step) {
        if (poll.Tick()) return stop_.status("strategy");
        chosen_[next] = true;
      }
      if (poll.Tick()) return stop_.status("strategy");
    }
    return absl::OkStatus();
  }

  // Sets nodes_ to the ops that may be chained, by level, in the order of the chain.
  absl::Status SortNodes() {
    StopPoller poll(stop_);
    nodes_.resize(levels_.num_levels());
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll.Tick()) return stop_.status("strategy");
      const absl::string_view name = graph_.name(id);
      if (levels_.level(id) == kNoLevel || !facts_.active_nodes().needed[id] ||
          !devices_[graph_.device_id(id)] || filters_.is_inactive(id) || filters_.IsBuiltIn(id) ||
          facts_.shapes().IsFed(id) || absl::StrContains(name, kCondScope) ||
          absl::StrContains(name, kLoss)) {
        continue;
      }
      nodes_[levels_.level(id)].push_back(id);
    }
    for (std::vector<NodeId>& level : nodes_) {
      const auto less = [&](NodeId a, NodeId b) {
        return std::make_pair(facts_.topology().level(a), a) <
               std::make_pair(facts_.topology().level(b), b);
      };
      if (!PolledSort(level.begin(), level.end(), less, &poll)) return stop_.status("strategy");
    }
    return absl::OkStatus();
  }

  // Chooses the levels whose ops read and write more than `limit` bytes.
  absl::Status ChooseLarge(double limit) {
    StopPoller poll(stop_);
    for (int32_t level = 0; level < levels_.num_levels(); ++level) {
      double bytes = 0;
      const auto add = [&](Tensor tensor) {
        const int64_t size = facts_.shapes().size_bytes(tensor);
        if (size != kUnknownSize) bytes += static_cast<double>(size);
      };
      for (NodeId id : nodes_[level]) {
        for (Tensor input : graph_.inputs(id)) {
          if (poll.Tick()) return stop_.status("strategy");
          if (!input.is_control()) add(input);
        }
        for (int port = 0; port < facts_.shapes().num_outputs(id); ++port) {
          if (poll.Tick()) return stop_.status("strategy");
          add({id, port});
        }
      }
      if (bytes > limit) chosen_[level] = true;
    }
    return absl::OkStatus();
  }

  void LeaveOutInitialization() {
    int32_t last = kNoLevel;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (facts_.active_nodes().needed[id] || !IsInitialization(graph_.op(id))) continue;
      last = std::max(last, levels_.level(id));
    }
    std::fill(chosen_.begin(), chosen_.begin() + last + 1, false);
  }

  absl::StatusOr<Serialization> Chain(const Needs& needs) {
    Serialization result;
    StopPoller poll(stop_);
    NodeId last = kNoNode;
    for (int32_t level = 0; level < levels_.num_levels(); ++level) {
      if (!chosen_[level]) {
        last = kNoNode;
        continue;
      }
      bool any = false;
      for (NodeId id : nodes_[level]) {
        if (poll.Tick()) return stop_.status("strategy");
        if (last != kNoNode) {
          if (!MayChain(needs, last, id)) continue;
          if (!Reads(id, last)) result.edges.push_back({last, id, v1::EDGE_KIND_SERIALIZATION});
          any = any || levels_.level(last) == level;
        }
        last = id;
      }
      result.level_count += any;
    }
    return result;
  }

  // Whether `id` already waits for `producer`.
  bool Reads(NodeId id, NodeId producer) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    return std::any_of(inputs.begin(), inputs.end(),
                       [producer](Tensor input) { return input.node == producer; });
  }

  bool MayChain(const Needs& needs, NodeId u, NodeId v) const {
    const auto place = [&](NodeId id) {
      return std::make_tuple(facts_.topology().level(id), levels_.level(id), id);
    };
    return place(u) < place(v) && needs.MayWait(v, u) &&
           soundness_.WaitInOrder(u, v) == EdgeFault::kNone;
  }

  const StepFacts& facts_;
  const Soundness soundness_;
  const Graph& graph_;
  const LevelFilters& filters_;
  const LevelOrder& levels_;
  const std::vector<bool>& devices_;
  const StopToken& stop_;
  std::vector<bool> chosen_;                // By level.
  std::vector<std::vector<NodeId>> nodes_;  // By level.
};

}  // namespace

absl::Status CheckSerialization(const v1::LevelStrategy& options) {
  for (const std::string& text : options.serialization()) {
    if (SelectPositions(text, /*size=*/1).has_value()) continue;
    return BadItem(text, "is neither an index nor a Python slice of levels");
  }
  return absl::OkStatus();
}

absl::StatusOr<Serialization> SerializeLevels(const StepFacts& facts,
                                              const v1::RewriteOptions& options,
                                              const LevelFilters& filters, const LevelOrder& levels,
                                              const std::vector<bool>& devices,
                                              const StopToken& stop) {
  if (options.level().serialization().empty() && options.level().serialization_by_size() == 0) {
    return Serialization();
  }
  return Serializer(facts, filters, levels, devices, stop).Run(options);
}

}  // namespace spillway::core
