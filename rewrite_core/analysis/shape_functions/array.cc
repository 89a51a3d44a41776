// Arrays.
#include "rewrite_core/analysis/shape_table.h"
namespace spillway::core {
namespace {
void Placeholder(ShapeContext& c) {
  const ShapeId shape = c.ShapeAttr("shape");
  // A scalar meant "unknown" before producer 22.
  if (shape != kScalar || c.producer() > 21) c.set(0, shape);
}
constexpr ShapeRule kRules[] = {
    {"Placeholder", Placeholder},
};
}  // namespace
absl::Span<const ShapeRule> ArrayShapeRules() { return kRules; }
}  // namespace spillway::core
