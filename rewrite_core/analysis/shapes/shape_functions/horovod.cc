// Horovod's ops: the same shapes on every worker, except for gathers.
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// HorovodAllgather(tensor): joined along dimension 0, which may differ between workers.
void Allgather(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (c.known(in)) c.set(0, c.ReplaceDim(in, 0, kUnknownDim));
}

constexpr ShapeRule kHorovodRules[] = {
    {"HorovodAllgather", Allgather},
    {"HorovodAllreduce", Unchanged},
    {"HorovodBroadcast", Unchanged},
};

}  // namespace

absl::Span<const ShapeRule> HorovodShapeRules() { return kHorovodRules; }

}  // namespace spillway::core
