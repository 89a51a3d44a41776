#include "rewrite_core/analysis/memory/host_variables.h"

#include <gtest/gtest.h>

#include <string>

#include "rewrite_core/analysis/step_facts.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::IsOk;
using testing::TestGraph;
using testing::ValueOrDie;

int64_t HostVariableBytesOf(const std::string& text) {
  const TestGraph graph(text);
  const v1::Step step;
  const StepFacts facts(*graph, step);
  EXPECT_THAT(facts.Compute({Fact::kBuffers}, {}), IsOk());
  return ValueOrDie(HostVariableBytes(*graph, facts.placement(), facts.buffers(), {}), "variables");
}

// Floats of 4 bytes: 10 and 6 on the worker's CPU, read and updated under any device; not those on
// its GPU and on a parameter server.
constexpr char kVariables[] =
    "x = Abs() @/job:worker/task:1/gpu:0 {T=float32, _output_shapes=[(2,3)]}\n"
    "near = VarHandleOp() @/job:worker/task:1/cpu:0 {dtype=float32, shape=(2,5)}\n"
    "read = ReadVariableOp(near) @/job:worker/task:1/gpu:0 {dtype=float32}\n"
    "held = VariableV2() @/job:worker/replica:0/task:1/cpu:0 {dtype=float32, shape=(2,3)}\n"
    "add = AssignSub(held, x) {T=float32}\n"
    "gpu = VarHandleOp() @/job:worker/task:1/gpu:0 {dtype=float32, shape=(2,7)}\n"
    "far = VarHandleOp() @/job:ps/task:1 {dtype=float32, shape=(2,9)}\n";

TEST(HostVariablesTest, ThoseBesideTheGpus) {
  EXPECT_EQ(HostVariableBytesOf(kVariables), 4 * (10 + 6));
  EXPECT_EQ(HostVariableBytesOf("x = Abs() {T=float32}"), 0);
}

TEST(HostVariablesTest, UnknownIfTheSizeOfOneIs) {
  const std::string text = std::string(kVariables) + "open = VarHandleOp() @";
  EXPECT_EQ(HostVariableBytesOf(text + "/cpu:0 {dtype=float32, shape=(?,5)}"), kUnknownSize);
  EXPECT_EQ(HostVariableBytesOf(text + "/job:ps/cpu:0 {dtype=float32, shape=(?,5)}"), 64);
}

}  // namespace
}  // namespace spillway::core
