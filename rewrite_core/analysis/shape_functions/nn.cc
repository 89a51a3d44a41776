#include "rewrite_core/analysis/shape_table.h"
namespace spillway::core {
namespace {
constexpr ShapeRule kRules[] = {
    {"NnX", Unchanged},
};
}
absl::Span<const ShapeRule> NnShapeRules() { return kRules; }
}  // namespace spillway::core
