#include "rewrite_core/inspect/explore.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inline/kept_calls.h"
#include "rewrite_core/inline/step_graph.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "rewrite_core/simulate/step_subject.h"
#include "rewrite_core/strategy/budget/joint_search.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::core {
namespace {

// The maximum of a dimension and of a batch (options.proto).
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();
constexpr int64_t kTheSize = -1;
// The maximum number of sizes in one call (simulate.proto).
constexpr int kMaxSizes = 10'000;
// How often a search for the largest size continues behind a size that does not fit.
constexpr int kMaxMore = 8;
// The limit max_search_steps is for a plan of one size: all sizes of a call together get as many
// steps as a search for the largest one may take, which tries each power of two and then bisects.
constexpr int64_t kPlansPerCall = 64;

// Whether bytes or times of a tensor, or their sums, overflow 63 bits: larger than any memory.
bool IsOverflow(const absl::Status& status) {
  const v1::ErrorReason reason = GetErrorReason(status);
  return reason == v1::ERROR_REASON_BAD_ATTRIBUTE || reason == v1::ERROR_REASON_LIMIT_EXCEEDED;
}

// By how much a step must be faster with the plan of a larger size. (It looks like a defect if
// speed falls by more.)
constexpr double kClearlyFaster = 1.01;

// The forecast for a step once a strategy has fitted it to a machine, without writing the graph.
struct SwappedStep {
  // Its plan.
  ClonePlan clones;
  SwapPlan plan;
  // Absent if no plan fits. That of the unchanged graph if no swapping is needed.
  absl::optional<v1::Forecast> forecast;
  // For the unchanged graph, launched ahead, with unlimited memory.
  int64_t full_speed_ns = 0;
  // A lower bound on the step time of any plan; 0 if none fits.
  int64_t bound_ns = 0;
};

// The bound for a step whose operations run in the order given by these edges, of a plan that may
// have clones; 0 if none fits.
absl::StatusOr<int64_t> BoundNs(const std::vector<ControlEdge>& edges,
                                const v1::RewriteOptions& options, StepSimulator* simulator,
                                const StopToken& stop) {
  const StepFacts& facts = simulator->facts();
  SwapPlan plan;
  for (const ControlEdge& edge : edges) {
    const int32_t num_nodes = facts.graph().num_nodes();
    if (edge.from < num_nodes && edge.to < num_nodes) plan.controls.push_back(edge);
  }
  std::vector<NodeId> order;  // Empty: the step's own.
  if (!plan.controls.empty()) {
    StepTerms terms;
    terms.record_operations = true;
    auto ordered = simulator->Simulate(plan, terms, stop);
    if (!ordered.ok()) return ordered.status();
    order = LaunchOrder(*ordered);
  }
  return FindBoundNs(facts, options, order, simulator, stop);
}

// The forecast for a step with a plan; absent if it does not fit. `simulator`: of the step without.
absl::StatusOr<absl::optional<v1::Forecast>> ForecastPlan(const ClonePlan& clones,
                                                          const SwapPlan& plan,
                                                          StepSimulator* simulator,
                                                          const v1::Limits& limits,
                                                          const StopToken& stop) {
  std::unique_ptr<StepSubject> cloned;
  if (!clones.clones.empty()) {
    const StepFacts& facts = simulator->facts();
    auto made = StepSubject::WithClones(facts.graph(), clones, facts.step(), limits, stop);
    if (!made.ok()) return made.status();
    cloned = *std::move(made);
    auto on_clones = cloned->Simulator(stop);
    if (!on_clones.ok()) return on_clones.status();
    simulator = *on_clones;
  }
  auto forecast = MakeForecast(plan, ForecastBudget::kHardware, simulator, stop);
  if (!forecast.ok()) return forecast.status();
  // Each GPU fits on its own; together they may still interfere.
  if (forecast->fit() == v1::FIT_DOES_NOT_FIT) return absl::optional<v1::Forecast>();
  return absl::optional<v1::Forecast>(*std::move(forecast));
}

absl::StatusOr<SwappedStep> ForecastSwapped(const Graph& graph, const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop,
                                            int64_t* search_steps) {
  const PlanningStrategy& strategy = *FindStrategy(options);
  const v1::Step step = strategy.step(options);
  const StepFacts facts(graph, step);
  auto eligibility = Eligibility::Create(facts, options, stop);
  if (!eligibility.ok()) return eligibility.status();
  auto simulator = StepSimulator::Create(facts, stop);
  if (!simulator.ok()) return simulator.status();
  SwappedStep swapped;
  auto full_speed = (*simulator)->Simulate(SwapPlan(), StepTerms(), stop);
  if (!full_speed.ok()) return full_speed.status();
  swapped.full_speed_ns = full_speed->step_time_ns();

  auto result = strategy.plan({facts, *eligibility, options, limits, simulator->get(), stop,
                               /*only_plan=*/true, search_steps});
  const bool fits = GetErrorReason(result.status()) != v1::ERROR_REASON_DOES_NOT_FIT;
  if (fits && !result.ok()) return result.status();
  auto bound_ns = BoundNs(fits ? result->plan.controls : std::vector<ControlEdge>(), options,
                          simulator->get(), stop);
  if (!bound_ns.ok()) return bound_ns.status();
  swapped.bound_ns = *bound_ns;
  if (!fits) return swapped;
  swapped.clones = std::move(result->clones);
  swapped.plan = std::move(result->plan);
  auto forecast = ForecastPlan(swapped.clones, swapped.plan, simulator->get(), limits, stop);
  if (!forecast.ok()) return forecast.status();
  swapped.forecast = *std::move(forecast);
  // One that postpones nodes may pass the bound, which is for the step's order.
  const bool has_clones = !swapped.clones.clones.empty();
  if (has_clones && swapped.forecast && swapped.forecast->step_time_ns() < swapped.bound_ns) {
    swapped.bound_ns = 0;
  }
  return swapped;
}

class Explorer {
 public:
  Explorer(const v1::ExploreOptions& options, const v1::Limits& limits, const StopToken& stop,
           const ExploredSizeSink& on_size)
      : options_(options), limits_(limits), stop_(stop), on_size_(on_size) {}

  absl::StatusOr<v1::ExploreReport> Run(absl::string_view graph_def) {
    if (absl::Status s = CheckOptions(); !s.ok()) return s;
    auto step_graph = StepGraph::Parse(graph_def, options_.step(), limits_, stop_);
    if (!step_graph.ok()) return step_graph.status();
    step_graph_ = *std::move(step_graph);
    if (step_graph_->has_calls()) *report_.mutable_inlining() = step_graph_->inlining();
    if (absl::Status s = TrySizes(); !s.ok()) return s;
    // Without a budget all sizes fit, and none is the largest.
    if (!options_.no_budget()) {
      auto largest = FindLargest(/*swapped=*/false);
      if (!largest.ok()) return largest.status();
      if (*largest > 0) {
        report_.set_largest_fitting_size(*largest);
        report_.set_largest_fit(tried_[*largest].unswapped().fit());
      }
      if (options_.swapping()) {
        largest = FindLargest(/*swapped=*/true);
        if (!largest.ok()) return largest.status();
        if (*largest > 0) {
          report_.set_largest_fitting_size_swapped(*largest);
          report_.set_largest_fit_swapped(tried_[*largest].swapped().fit());
        }
      }
    }
    if (options_.swapping()) {
      // Sizes that only the other search tried.
      for (const auto& row : tried_) {
        absl::StatusOr<bool> fits = FitsSwapped(row.first);
        if (!fits.ok()) return fits.status();
      }
      if (absl::Status s = TryPlansOfLargerSizes(); !s.ok()) return s;
    }
    for (auto& [size, explored] : tried_) {
      ReportKeptCalls(report_.inlining(), explored.mutable_unswapped());
      *report_.add_sizes() = std::move(explored);
    }
    AddOverflow();
    return std::move(report_);
  }

 private:
  absl::Status CheckOptions() {
    if (absl::Status s = CheckKnownFields(options_); !s.ok()) return s;
    if (absl::Status s = CheckStep(options_.step()); !s.ok()) return s;
    bool in_feed = false;
    bool is_batch = true;  // Every dimension -1 is the first one.
    for (const v1::Feed& feed : options_.step().feeds()) {
      for (int i = 0; i < feed.dims_size(); ++i) {
        if (feed.dims(i) != kTheSize) continue;
        in_feed = true;
        is_batch = is_batch && i == 0;
      }
    }
    if (!options_.step().profile().empty()) {
      return InvalidError(
          v1::ERROR_REASON_CONFLICTING_OPTIONS,
          "a profile is given, whose times and bytes are those of one size; leave it out",
          {{"option", "profile"}});
    }
    by_batch_size_ = !in_feed;
    report_.set_size_is_batch(is_batch);
    if (by_batch_size_ && options_.step().has_batch_size()) {
      return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                          "batch_size is given, and no dimension of the feeds is open: nothing "
                          "varies; leave batch_size out, or leave a dimension open",
                          {{"option", "batch_size"}});
    }
    if (options_.no_budget() && options_.sizes().empty()) {
      return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                          "no_budget is given, and no sizes: with unlimited memory every size "
                          "fits; give sizes, or leave no_budget out",
                          {{"option", "no_budget"}});
    }
    if (!v1::Recompute_IsValid(options_.recompute())) {
      v1::RewriteOptions budget;
      budget.mutable_budget()->set_recompute(options_.recompute());
      return FindStrategy(budget)->check(budget, stop_);
    }
    if (options_.recompute() > v1::RECOMPUTE_OFF && !options_.swapping()) {
      return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                          "recompute is given, and it needs swapping; give swapping, too, or leave "
                          "recompute out",
                          {{"option", "recompute"}, {"other_option", "swapping"}});
    }
    if (options_.no_budget() && options_.swapping()) {
      return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                          "no_budget is given, and swapping: with unlimited memory nothing needs "
                          "to be swapped; leave one of them out",
                          {{"option", "no_budget"}, {"other_option", "swapping"}});
    }
    multiple_ = options_.has_multiple_of() ? options_.multiple_of() : 1;
    if (multiple_ < 1 || multiple_ > kMaxSize) {
      return BadOptionError("multiple_of", multiple_, absl::StrCat("give 1 to ", kMaxSize));
    }
    if (options_.sizes_size() > kMaxSizes) {
      return BadOptionError("sizes", options_.sizes_size(),
                            absl::StrCat("give at most ", kMaxSizes));
    }
    for (int64_t size : options_.sizes()) {
      if (size < 1 || size > kMaxSize) {
        return BadOptionError("sizes", size, absl::StrCat("give sizes from 1 to ", kMaxSize));
      }
    }
    return absl::OkStatus();
  }

  v1::Step StepAt(int64_t size) const {
    v1::Step step = options_.step();
    if (by_batch_size_) step.set_batch_size(size);
    for (v1::Feed& feed : *step.mutable_feeds()) {
      for (int i = 0; i < feed.dims_size(); ++i) {
        if (feed.dims(i) == kTheSize) feed.set_dims(i, size);
      }
    }
    return step;
  }

  absl::StatusOr<v1::SimulateReport> Simulate(int64_t size) const {
    v1::SimulateOptions options;
    *options.mutable_step() = StepAt(size);
    options.set_no_budget(options_.no_budget());
    return SimulateGraph(step_graph_->graph(), options, stop_);
  }

  // Whether the step fits at that size with swapping. Each size is only tried once.
  absl::StatusOr<bool> FitsSwapped(int64_t size) {
    auto unswapped_fits = Fits(size);
    if (!unswapped_fits.ok()) return unswapped_fits.status();
    const auto it = tried_.find(size);
    if (it == tried_.end()) return false;  // It overflows.
    v1::ExploredSize& explored = it->second;
    if (explored.has_full_speed_sizes_per_s()) return explored.has_swapped();
    if (absl::Status s = CheckSteps(); !s.ok()) return s;
    auto step = PlanAt(size);
    if (!step.ok()) return AtSize(size, step.status());
    explored.set_full_speed_sizes_per_s(PerSecond(step->full_speed_ns) * size);
    if (step->bound_ns > 0) explored.set_bound_sizes_per_s(PerSecond(step->bound_ns) * size);
    if (step->forecast.has_value()) SetSwapped(*std::move(step->forecast), &explored);
    if (on_size_) on_size_(explored);
    return explored.has_swapped();
  }

  absl::StatusOr<SwappedStep> PlanAt(int64_t size) {
    v1::RewriteOptions options;
    *options.mutable_step() = StepAt(size);
    options.mutable_budget()->set_recompute(options_.recompute());
    options.set_decision_detail(v1::DECISION_DETAIL_NONE);
    return ForecastSwapped(step_graph_->graph(), options, limits_, stop_, &search_steps_);
  }

  static void SetSwapped(v1::Forecast forecast, v1::ExploredSize* explored) {
    explored->set_swapped_steps_per_s(PerSecond(forecast.step_time_ns()));
    explored->set_swapped_sizes_per_s(explored->swapped_steps_per_s() *
                                      static_cast<double>(explored->size()));
    *explored->mutable_swapped() = std::move(forecast);
  }

  // How much of full speed the planned step keeps.
  static double ShareOf(const v1::ExploredSize& explored) {
    return explored.swapped_sizes_per_s() / explored.full_speed_sizes_per_s();
  }

  // A search may find a better plan for a larger size than for a smaller one, which it fits, too:
  // then speed would fall from one size to the next only because of the search. Such sizes are few,
  // so that plans are made again instead of kept.
  absl::Status TryPlansOfLargerSizes() {
    const v1::ExploredSize* larger = nullptr;  // The last one with a plan,
    absl::optional<SwappedStep> step;          // and this plan, once it was made again.
    for (auto it = tried_.rbegin(); it != tried_.rend(); ++it) {
      v1::ExploredSize& explored = it->second;
      if (!explored.has_swapped()) continue;
      if (larger != nullptr && ShareOf(explored) * kClearlyFaster < ShareOf(*larger)) {
        const int64_t size = larger->has_plan_of_size() ? larger->plan_of_size() : larger->size();
        if (!step.has_value()) {
          if (absl::Status s = CheckSteps(); !s.ok()) return s;
          auto made = PlanAt(size);
          if (!made.ok()) return made.status();
          step = *std::move(made);
        }
        if (absl::Status s = TryPlan(*step, size, &explored); !s.ok()) return s;
      }
      larger = &explored;
      if (!explored.has_plan_of_size()) step.reset();
    }
    return absl::OkStatus();
  }

  // Takes that plan, of another size, if it is clearly faster.
  absl::Status TryPlan(const SwappedStep& step, int64_t size, v1::ExploredSize* explored) {
    const v1::Step at = StepAt(explored->size());
    const StepFacts facts(step_graph_->graph(), at);
    auto simulator = StepSimulator::Create(facts, stop_);
    if (!simulator.ok()) return simulator.status();
    auto forecast = ForecastPlan(step.clones, step.plan, simulator->get(), limits_, stop_);
    if (!forecast.ok()) return forecast.status();
    if (!forecast->has_value() || (*forecast)->fit() != v1::FIT_FITS) return absl::OkStatus();
    const double steps_per_s = PerSecond((*forecast)->step_time_ns());
    if (steps_per_s < explored->swapped_steps_per_s() * kClearlyFaster) return absl::OkStatus();
    SetSwapped(**std::move(forecast), explored);
    explored->set_plan_of_size(size);
    // It may be of another order, for which the bound is not.
    if (explored->bound_sizes_per_s() < explored->swapped_sizes_per_s()) {
      explored->clear_bound_sizes_per_s();
    }
    return absl::OkStatus();
  }

  // Ends a call whose plans have taken too much work together; the last may pass the bound.
  absl::Status CheckSteps() const {
    const int64_t most = SaturatingMultiply(kPlansPerCall, limits_.max_search_steps());
    if (search_steps_ <= most) return absl::OkStatus();
    return Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_SEARCH_TOO_LONG,
        absl::StrCat(
            "the searches for plans of all sizes took more than ", most, " steps (", kPlansPerCall,
            " times the limit max_search_steps); give fewer sizes, or a larger multiple_of"),
        {{"limit", "max_search_steps"}, {"value", absl::StrCat(limits_.max_search_steps())}});
  }

  // Whether the step fits as far as is known.
  static bool MayFit(const v1::Forecast& forecast) {
    return forecast.fit() != v1::FIT_DOES_NOT_FIT;
  }

  // 0 if nothing takes time.
  static double PerSecond(int64_t time_ns) { return time_ns > 0 ? 1e9 / time_ns : 0; }

  // Whether the step fits at that size. Each size is only tried once.
  absl::StatusOr<bool> Fits(int64_t size) {
    if (const auto it = tried_.find(size); it != tried_.end())
      return MayFit(it->second.unswapped());
    if (stop_.ShouldStop(1)) return stop_.status("explore");
    auto simulated = Simulate(size);
    if (!simulated.ok()) {
      const bool smaller_works = !tried_.empty() && tried_.begin()->first < size;
      if (!smaller_works || !IsOverflow(simulated.status())) {
        return AtSize(size, simulated.status());
      }
      if (overflow_.ok() || size < overflow_size_) {
        overflow_size_ = size;
        overflow_ = simulated.status();
      }
      return false;
    }
    if (tried_.empty()) {
      if (absl::Status s = CheckThatSizeMatters(size, simulated->forecast()); !s.ok()) return s;
    }
    v1::ExploredSize& explored = tried_[size];
    explored.set_size(size);
    *explored.mutable_unswapped() = std::move(*simulated->mutable_forecast());
    // A size that fits in only one of the two ways has a time, too.
    if (MayFit(explored.unswapped()) && explored.unswapped().step_time_ns() > 0) {
      explored.set_steps_per_s(PerSecond(explored.unswapped().step_time_ns()));
      explored.set_sizes_per_s(explored.steps_per_s() * size);
    }
    *report_.mutable_hardware() = std::move(*simulated->mutable_hardware());
    *report_.mutable_targets() = std::move(*simulated->mutable_targets());
    *report_.mutable_warnings() = std::move(*simulated->mutable_warnings());
    if (on_size_ && !options_.swapping()) on_size_(explored);
    return MayFit(explored.unswapped());
  }

  absl::StatusOr<bool> Fits(int64_t size, bool swapped) {
    return swapped ? FitsSwapped(size) : Fits(size);
  }

  // Long lists go from coarse to fine: the smallest and the largest, then the middle ones between
  // tried sizes, and so on, so that a stopped call has covered the whole range. Short lists are
  // easier to read in ascending order.
  static std::vector<int64_t> InOrder(std::vector<int64_t> sizes) {
    constexpr size_t kShort = 16;
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() <= kShort) return sizes;
    std::vector<int64_t> ordered = {sizes.front(), sizes.back()};
    std::deque<std::pair<size_t, size_t>> gaps = {{0, sizes.size() - 1}};
    while (!gaps.empty()) {
      const auto [low, high] = gaps.front();
      gaps.pop_front();
      if (high - low < 2) continue;
      const size_t middle = low + (high - low) / 2;
      ordered.push_back(sizes[middle]);
      gaps.push_back({low, middle});
      gaps.push_back({middle, high});
    }
    return ordered;
  }

  // Tries the requested sizes, each in both ways before the next.
  absl::Status TrySizes() {
    for (int64_t size : InOrder({options_.sizes().begin(), options_.sizes().end()})) {
      absl::StatusOr<bool> fits = Fits(size);
      if (fits.ok() && options_.swapping()) fits = FitsSwapped(size);
      if (!fits.ok()) return fits.status();
    }
    return absl::OkStatus();
  }

  // Returns a multiple of multiple_ that fits, while the next two do not; 0 if none fits. Bisects
  // between the largest size known to fit and the next one known not to: fitting is not monotonic.
  absl::StatusOr<int64_t> FindLargest(bool swapped) {
    const int64_t most = kMaxSize / multiple_;
    int64_t low = 0, high = most + 1;
    const auto check = [&](int64_t multiple) -> absl::Status {
      absl::StatusOr<bool> fits = Fits(multiple * multiple_, swapped);
      if (!fits.ok()) return fits.status();
      (*fits ? low : high) = multiple;
      return absl::OkStatus();
    };
    int64_t step = std::clamp<int64_t>(LargestKnown(swapped) / multiple_, 1, most);
    if (absl::Status s = check(step); !s.ok()) return s;
    for (int more = 0;; ++more) {
      high = std::min(high, (NextUnfit(swapped, low * multiple_) + multiple_ - 1) / multiple_);
      // Doubles until one does not fit.
      for (step = 2 * low; low > 0 && step < high; step = 2 * low) {
        if (absl::Status s = check(step); !s.ok()) return s;
      }
      while (high - low > 1) {
        if (absl::Status s = check(low + (high - low) / 2); !s.ok()) return s;
      }
      if (low == 0 || low + 2 > most || more == kMaxMore) return low * multiple_;
      high = most + 1;
      if (absl::Status s = check(low + 2); !s.ok()) return s;
      if (high <= most) return low * multiple_;
    }
  }

  // Of the sizes tried: whether it fits; nothing if it was not tried in that way.
  static absl::optional<bool> Known(const v1::ExploredSize& explored, bool swapped) {
    if (!swapped) return MayFit(explored.unswapped());
    if (!explored.has_full_speed_sizes_per_s()) return absl::nullopt;
    return explored.has_swapped();
  }

  // The largest size tried that fits, or 0. Unswapped fits count in both ways.
  int64_t LargestKnown(bool swapped) const {
    int64_t largest = 0;
    for (const auto& [size, explored] : tried_) {
      if (MayFit(explored.unswapped()) || Known(explored, swapped).value_or(false)) largest = size;
    }
    return largest;
  }

  // The smallest size tried above `size` that does not fit; above kMaxSize if none.
  int64_t NextUnfit(bool swapped, int64_t size) const {
    int64_t next = kMaxSize + 1;
    if (!overflow_.ok() && overflow_size_ > size) next = overflow_size_;
    for (auto it = tried_.upper_bound(size); it != tried_.end(); ++it) {
      if (!Known(it->second, swapped).value_or(true)) return std::min(next, it->first);
    }
    return next;
  }

  // If the size changes neither memory nor time, the graph does not depend on it. This compares
  // with a distant size, because close ones may be rounded to the same bytes.
  absl::Status CheckThatSizeMatters(int64_t size, const v1::Forecast& forecast) const {
    constexpr int64_t kFar = 1024;
    const int64_t other = size <= kMaxSize / kFar ? size * kFar : size / kFar;
    const auto simulated = Simulate(other);
    if (absl::IsInvalidArgument(simulated.status())) return absl::OkStatus();  // It depends.
    if (!simulated.ok()) return simulated.status();
    if (forecast.SerializeAsString() != simulated->forecast().SerializeAsString()) {
      return absl::OkStatus();
    }
    return InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("sizes ", size, " and ", other, " give the same step: ",
                     by_batch_size_
                         ? "the graph fixes the batch of all that its targets read; leave the "
                           "dimensions of its feeds that vary open, or take a graph with an open "
                           "batch"
                         : "nothing that the targets need depends on the open dimensions of the "
                           "feeds; leave those open that do"),
        {{"option", by_batch_size_ ? "batch_size" : "feeds"}});
  }

  // Prepends the size to an error about the graph. Errors about options name their values.
  static absl::Status AtSize(int64_t size, const absl::Status& status) {
    if (!absl::IsInvalidArgument(status)) return status;
    const v1::ErrorReason reason = GetErrorReason(status);
    if (reason == v1::ERROR_REASON_BAD_OPTION || reason == v1::ERROR_REASON_NAME_MATCHES_NOTHING) {
      return status;
    }
    absl::Status named(
        status.code(),
        absl::StrCat("at size ", size, " (to skip it: sizes, multiple_of): ", status.message()));
    status.ForEachPayload(
        [&named](absl::string_view url, const absl::Cord& info) { named.SetPayload(url, info); });
    return named;
  }

  // Sizes that overflow have no row: warns from which size on, and why.
  void AddOverflow() {
    if (overflow_.ok()) return;
    v1::Warning* warning = report_.add_warnings();
    warning->set_code(v1::WARNING_CODE_NOT_SIMULATED);
    warning->set_message(absl::StrCat("size ", overflow_size_,
                                      " counts as one that does not fit: ", overflow_.message()));
  }

  const v1::ExploreOptions& options_;
  const v1::Limits& limits_;
  const StopToken& stop_;
  const ExploredSizeSink& on_size_;
  std::unique_ptr<const StepGraph> step_graph_;
  bool by_batch_size_ = false;
  int64_t multiple_ = 1;
  std::map<int64_t, v1::ExploredSize> tried_;
  int64_t overflow_size_ = 0;  // The smallest whose bytes overflow,
  absl::Status overflow_;      // and the error; OK if none.
  int64_t search_steps_ = 0;   // Of the plans of all sizes.
  v1::ExploreReport report_;
};

}  // namespace

absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                          const v1::ExploreOptions& options,
                                          const v1::Limits& limits, const StopToken& stop,
                                          const ExploredSizeSink& on_size) {
  return Explorer(options, limits, stop, on_size).Run(graph_def);
}

}  // namespace spillway::core
