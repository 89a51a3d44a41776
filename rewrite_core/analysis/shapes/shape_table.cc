#include "rewrite_core/analysis/shapes/shape_table.h"

#include "absl/container/flat_hash_map.h"

namespace spillway::core {
namespace {

using Dims = absl::Span<const int64_t>;

// Appends a view's elements. False if one is not in `array`.
bool AppendView(Dims array, int64_t first, Dims sizes, Dims steps, DimVector* items) {
  if (sizes.empty()) {
    if (first < 0 || first >= static_cast<int64_t>(array.size())) return false;
    items->push_back(array[first]);
    return true;
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    if (!AppendView(array, first + i * steps[0], sizes.subspan(1), steps.subspan(1), items)) {
      return false;
    }
  }
  return true;
}

}  // namespace

ShapeFunction FindShapeFunction(absl::string_view op) {
  // Built on first use and never changed.
  static const auto& table = *[] {
    auto* rules = new absl::flat_hash_map<absl::string_view, ShapeFunction>;
    for (const auto& family :
         {ArrayShapeRules(),         ControlFlowShapeRules(),  DataShapeRules(),
          DiagonalShapeRules(),      DistributionShapeRules(), HorovodShapeRules(),
          ImageShapeRules(),         ListShapeRules(),         MathShapeRules(),
          MiscellaneousShapeRules(), NnShapeRules(),           OptimizerShapeRules(),
          QuantizedShapeRules(),     RandomShapeRules(),       RecurrentShapeRules(),
          ScalarShapeRules(),        SlicingShapeRules(),      SpaceToBatchShapeRules(),
          SparseShapeRules(),        StateShapeRules(),        StringShapeRules()}) {
      for (const ShapeRule& rule : family) rules->emplace(rule.op, rule.function);
    }
    return rules;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

void Scalars(ShapeContext& c) { c.set_all(kScalar); }

void Unchanged(ShapeContext& c) { c.set_all(c.input(0)); }

void BroadcastBinary(ShapeContext& c) { c.set(0, c.Broadcast(c.input(0), c.input(1))); }

void ShapeFromFirst(ShapeContext& c) { c.set(0, c.ShapeFromValue(0)); }

bool PutsOutIntegers(ShapeContext& c, int port) { return IsValueType(c.output_type(port)); }

ArrayView WholeArray(ShapeContext& c, ShapeId shape) {
  ArrayView view;
  view.sizes.assign(c.dims(shape).begin(), c.dims(shape).end());
  view.steps.resize(view.sizes.size());
  int64_t step = 1;
  for (size_t i = view.sizes.size(); i-- > 0; step = c.Mul(step, view.sizes[i])) {
    view.steps[i] = step;
  }
  return view;
}

void SetViewedValue(ShapeContext& c, int port, int input, const ArrayView& view) {
  // Only for few dimensions, as usual for shapes: each element costs a visit of all.
  constexpr size_t kMaxDimensions = 16;
  const auto array = PutsOutIntegers(c, port) ? c.Value(input) : absl::nullopt;
  if (!array || view.sizes.size() > kMaxDimensions) return;
  int64_t count = 1;
  for (int64_t size : view.sizes) count = c.Mul(count, size);
  if (count < 0 || count > ShapePool::kMaxListSize) return;
  DimVector items;
  const bool is_part = count == 0 || (!array->empty() && AppendView(*array, view.first, view.sizes,
                                                                    view.steps, &items));
  if (is_part) c.set_value(port, items);
}

}  // namespace spillway::core
