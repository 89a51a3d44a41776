#include "rewrite_core/analysis/flow/training_ops.h"

#include <gtest/gtest.h>

namespace spillway::core {
namespace {

TEST(IsGradientOpTypeTest, TellsGradientsFromWhatOnlySoundsSo) {
  for (const char* op :
       {"ReluGrad", "Conv2DBackpropFilter", "FusedBatchNormGradV3", "MyOpGrad",
        "CudnnRNNBackpropV3", "SymbolicGradient", "TensorArrayGradV3", "BroadcastGradientArgs"}) {
    EXPECT_TRUE(IsGradientOpType(op)) << op;
  }
  for (const char* op :
       {"StopGradient", "PreventGradient", "ApplyGradientDescent", "AccumulatorTakeGradient",
        "Conv2DBackpropInput", "DebugGradientIdentity", "Relu"}) {
    EXPECT_FALSE(IsGradientOpType(op)) << op;
  }
}

}  // namespace
}  // namespace spillway::core
