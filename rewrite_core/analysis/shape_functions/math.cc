#include "rewrite_core/analysis/shape_table.h"
namespace spillway::core {
namespace {
constexpr ShapeRule kRules[] = {
    {"MathX", Unchanged},
};
}
absl::Span<const ShapeRule> MathShapeRules() { return kRules; }
}  // namespace spillway::core
