// Weight updates: Apply ops by reference output the reference; by resource they output nothing.
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Input 0 is the variable, and its shape that of all slots.
void Apply(ShapeContext& c) { c.set(0, c.input(0)); }

constexpr ShapeRule kOptimizerRules[] = {
    {"ApplyAdaMax", Apply},
    {"ApplyAdadelta", Apply},
    {"ApplyAdagrad", Apply},
    {"ApplyAdagradDA", Apply},
    {"ApplyAdagradV2", Apply},
    {"ApplyAdam", Apply},
    {"ApplyAddSign", Apply},
    {"ApplyCenteredRMSProp", Apply},
    {"ApplyFtrl", Apply},
    {"ApplyFtrlV2", Apply},
    {"ApplyGradientDescent", Apply},
    {"ApplyMomentum", Apply},
    {"ApplyPowerSign", Apply},
    {"ApplyProximalAdagrad", Apply},
    {"ApplyProximalGradientDescent", Apply},
    {"ApplyRMSProp", Apply},
    {"SparseApplyAdadelta", Apply},
    {"SparseApplyAdagrad", Apply},
    {"SparseApplyAdagradDA", Apply},
    {"SparseApplyAdagradV2", Apply},
    {"SparseApplyCenteredRMSProp", Apply},
    {"SparseApplyFtrl", Apply},
    {"SparseApplyFtrlV2", Apply},
    {"SparseApplyMomentum", Apply},
    {"SparseApplyProximalAdagrad", Apply},
    {"SparseApplyProximalGradientDescent", Apply},
    {"SparseApplyRMSProp", Apply},
};

}  // namespace

absl::Span<const ShapeRule> OptimizerShapeRules() { return kOptimizerRules; }

}  // namespace spillway::core
