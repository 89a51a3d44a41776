#include "rewrite_core/analysis/shapes/shape_table.h"

#include "absl/container/flat_hash_map.h"

namespace spillway::core {

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

}  // namespace spillway::core
