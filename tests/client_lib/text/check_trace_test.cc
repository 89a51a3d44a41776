// The parts read of a trace, byte by byte.
#include "client_lib/text/check_trace.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::text {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using testing::RawField;
using testing::RawNumber;
using ::testing::UnorderedElementsAre;

constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr uint64_t kEpochUs = 1'700'000'000'000'000;

// A NodeExecStats that began `start_us` after the step, and ended `length_us` later.
std::string Node(const std::string& name, uint64_t start_us, uint64_t length_us,
                 const std::string& more = "") {
  return RawField(
      2, RawField(1, name) + RawNumber(2, kEpochUs + start_us) + RawNumber(5, length_us) + more);
}

std::string Device(const std::string& name, const std::string& nodes) {
  return RawField(1, RawField(1, name) + nodes);
}

// An AllocatorMemoryUsed with one record.
std::string Memory(const std::string& allocator, uint64_t in_use, uint64_t when_us, int64_t bytes) {
  return RawField(
      6, RawField(1, allocator) + RawNumber(5, in_use) +
             RawField(6, RawNumber(1, when_us) + RawNumber(2, static_cast<uint64_t>(bytes))));
}

// Slot 0, floats of this shape, in a buffer of 4096 bytes.
std::string Output(const std::string& shape) {
  return RawField(7, RawNumber(1, 0) + RawField(3, RawNumber(1, 1) + RawField(2, shape) +
                                                       RawField(4, RawNumber(1, 4096))));
}

std::string Dim(uint64_t size) { return RawField(2, RawNumber(1, size)); }

TEST(CheckTraceTest, NodesTimesAndPeaks) {
  const std::string step =
      Device(kGpu, Node("a", 0, 10, Memory("GPU_0_bfc", 2500, 10, 500) + Output(Dim(2) + Dim(3))) +
                       // Memory freed in the same microsecond went first.
                       Node("b", 10, 10, Memory("GPU_0_bfc", 2900, 20, 700)) +
                       Node("c", 20, 10, Memory("GPU_0_bfc", 2000, 20, -500)) +
                       Node("d", 30, 10, Memory("gpu_host_bfc", 9999, 25, 9999))) +
      Device("/device:GPU:0/stream:all", Node("a:MatMul", 5, 80)) +
      Device("/device:GPU:0/stream:9<MemcpyD2H>", Node("e:_Send", 5, 7)) +
      Device("/device:GPU:0/sync", Node("cuStreamSynchronize", 0, 1));
  for (const std::string& bytes : {step, RawField(1, step) + RawField(3, "another field")}) {
    const auto trace = ReadCheckTrace(bytes);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_THAT(trace->devices, ElementsAre(kGpu));
    EXPECT_EQ(trace->nodes.size(), 4u);
    EXPECT_EQ(trace->nodes.at("a").output_bytes, 24);
    EXPECT_FALSE(trace->nodes.at("b").output_bytes.has_value());
    EXPECT_EQ(trace->step_ns, 85'000);
    EXPECT_THAT(trace->allocated_peak_bytes, UnorderedElementsAre(Pair(kGpu, 700)));
    EXPECT_THAT(trace->in_use_peak_bytes, UnorderedElementsAre(Pair(kGpu, 2900)));
  }
}

TEST(CheckTraceTest, NanosecondsGoBeforeMicroseconds) {
  const std::string nanos = RawNumber(13, kEpochUs * 1000 + 500) + RawNumber(16, 1700);
  const auto trace = ReadCheckTrace(Device(kGpu, Node("a", 0, 9, nanos)));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->step_ns, 1700);
}

TEST(CheckTraceTest, ShapesThatCannotBeAreNotKnown) {
  const std::string huge = Dim(uint64_t{1} << 40) + Dim(uint64_t{1} << 40);
  const std::string negative = Dim(~uint64_t{0});
  const std::string unknown_rank = RawNumber(3, 1);
  for (const std::string& shape : {huge, negative, unknown_rank}) {
    const std::string bytes = Device(kGpu, Node("a", 0, 1, Output(shape)));
    const auto trace = ReadCheckTrace(bytes);
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->nodes.at("a").output_bytes, 4096);  // Requested, as the shape is incomplete.
  }
  const std::string scalar = Device(kGpu, Node("a", 0, 1, Output("")));
  EXPECT_EQ(ReadCheckTrace(scalar)->nodes.at("a").output_bytes, 4);
}

TEST(CheckTraceTest, NumbersWithoutSenseDoNoHarm) {
  constexpr uint64_t kMinusOne = ~uint64_t{0};
  const std::string node =
      RawField(2, RawField(1, "a") + RawNumber(2, kMinusOne) + RawNumber(5, kMinusOne) +
                      RawNumber(13, kMinusOne) + RawNumber(16, kMinusOne));
  std::string records;
  for (int i = 0; i < 5; ++i) {
    records += Memory("GPU_0_bfc", kMinusOne >> 1, 1, std::numeric_limits<int64_t>::max());
  }
  const std::string bytes = Device(kGpu, node + Node("b", 0, kMinusOne, records));
  const auto trace = ReadCheckTrace(bytes);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_GE(trace->step_ns.value_or(0), 0);
  EXPECT_GT(trace->allocated_peak_bytes.at(kGpu), 0);
}

TEST(CheckTraceTest, WhatIsNoTraceIsSaid) {
  const std::string whole = Device(kGpu, Node("a", 0, 1));
  for (const std::string& bytes :
       {std::string(), std::string("no message"), whole.substr(0, whole.size() - 3),
        Device(kGpu, ""), RawField(1, "")}) {
    const absl::Status status = ReadCheckTrace(bytes).status();
    EXPECT_EQ(core::GetErrorInfo(status).reason(), "BAD_OPTION") << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("FULL_TRACE"));
  }
}

// The errors as TensorFlow 2.15 words them, alone and in a log.
TEST(CheckTraceTest, TheErrorOfAStepThatRanOutOfMemory) {
  for (const std::string error :
       {"ResourceExhaustedError: Graph execution error",
        "OOM when allocating tensor with shape[64]",
        "NotFoundError: No algorithm worked!  Error messages: Profiling failure on CUDNN engine",
        "UnknownError: CUDNN failed to allocate the scratch space for the runner or to find one",
        "InternalError: No-scratch fallback runner requires nonzero scratch space"}) {
    for (const std::string& bytes : {error, "epoch 1\nTraceback\n  " + error + "\x1b[31m\nend\n"}) {
      const absl::Status status = ReadCheckTrace(bytes).status();
      EXPECT_EQ(core::GetErrorInfo(status).reason(), "BAD_OPTION") << status;
      const std::string message(status.message());
      EXPECT_THAT(message, ::testing::HasSubstr("ran out of GPU memory (")) << error;
      EXPECT_EQ(message.find('\x1b'), message.npos) << message;
      EXPECT_THAT(message, ::testing::Not(::testing::HasSubstr("end")));
    }
  }
  const auto said = [](const std::string& text) {
    return std::string(ReadCheckTrace(text).status().message());
  };
  EXPECT_THAT(said("NotFoundError: No such file"), ::testing::HasSubstr("FULL_TRACE"));
  // Its start is quoted.
  EXPECT_THAT(said("No algorithm worked! " + std::string(1000, 'x')),
              ::testing::SizeIs(::testing::Lt(450u)));
}

}  // namespace
}  // namespace spillway::text
