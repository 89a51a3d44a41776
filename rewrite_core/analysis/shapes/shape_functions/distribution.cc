// Exchange between devices and hosts: TensorFlow's collectives and NCCL.
#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Rows of all members, whose number is unknown.
void Rows(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (c.known(in)) c.set(0, c.ReplaceDim(in, 0, kUnknownDim));
}

// CollectiveBcastRecvV2(group_size, group_key, instance_key, shape).
void BroadcastRecvV2(ShapeContext& c) { c.set(0, c.ShapeFromValue(3)); }

// _NcclBroadcastRecv(shape).
void NcclBroadcastRecv(ShapeContext& c) { c.set(0, c.ShapeFromValue(0)); }

constexpr ShapeRule kDistributionRules[] = {
    {"CollectiveAllToAllV2", Unchanged},
    {"CollectiveAllToAllV3", Unchanged},
    {"CollectiveBcastRecv", StatedShape},
    {"CollectiveBcastRecvV2", BroadcastRecvV2},
    {"CollectiveBcastSend", StatedShape},
    {"CollectiveBcastSendV2", Unchanged},
    {"CollectiveGather", StatedShape},
    {"CollectiveGatherV2", Rows},
    {"CollectivePermute", Unchanged},
    {"CollectiveReduce", Unchanged},
    {"CollectiveReduceScatterV2", Rows},
    {"CollectiveReduceV2", Unchanged},
    {"CollectiveReduceV3", Unchanged},
    {"CrossReplicaSum", Unchanged},
    {"NcclAllReduce", Unchanged},
    {"NcclBroadcast", Unchanged},
    {"NcclReduce", Unchanged},
    {"_NcclBroadcastRecv", NcclBroadcastRecv},
    {"_NcclReduceRecv", Unchanged},
};

}  // namespace

absl::Span<const ShapeRule> DistributionShapeRules() { return kDistributionRules; }

}  // namespace spillway::core
