#include "rewrite_core/inspect/simulate_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/graph_text.h"

namespace spillway::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GraphBytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Two layers with the same weights. Levels: x and w 0, r 1, y 2, z 3. `other` is not in the step.
constexpr char kTwoLayers[] = R"(
  x = Placeholder() {dtype=float32, shape=(?,64)}
  w = VariableV2() {dtype=float32, shape=(64,64)}
  r = Identity(w) {T=float32}
  y = MatMul(x, r) {T=float32}
  z = MatMul(y, r) {T=float32}
  other = Relu(z) {T=float32}
)";
constexpr int64_t kWeightBytes = 64 * 64 * 4;
constexpr int64_t kLayerBytes = 4 * 64 * 4;  // At batch 4.
// Latency, and 2 ns per byte.
constexpr int64_t kCopyNs = 1000 + 2 * kLayerBytes;

// A launch takes 10 ns, and nothing else in a kernel takes time.
v1::SimulateOptions Options() {
  v1::SimulateOptions options;
  v1::Step& step = *options.mutable_step();
  step.set_batch_size(4);
  step.add_targets("z");
  v1::Hardware& hardware = *step.mutable_hardware();
  hardware.set_peak_flops(1e300);
  hardware.set_mem_bytes_per_s(1e300);
  hardware.set_launch_s(1e-8);
  hardware.set_copy_latency_s(1e-6);
  hardware.set_d2h_bytes_per_s(1e9);
  hardware.set_h2d_bytes_per_s(0.5e9);
  return options;
}

v1::SimulateReport Simulated(absl::string_view graph, const v1::SimulateOptions& options) {
  auto report = SimulateGraph(GraphBytes(graph), options, DefaultLimits(), StopToken());
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : v1::SimulateReport();
}

TEST(SimulateGraphTest, OptionsAreCheckedBeforeTheGraphIsRead) {
  v1::SimulateOptions options;
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(-1);
  v1::RewriteOptions rewrite;
  *rewrite.mutable_step() = options.step();
  auto report = SimulateGraph("not a graph", options, DefaultLimits(), StopToken());
  const auto rewritten = Rewrite("not a graph", rewrite, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(report.status()), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_EQ(report.status().message(), rewritten.status().message());
  v1::Hardware* hardware = options.mutable_step()->mutable_hardware();
  hardware->GetReflection()->MutableUnknownFields(hardware)->AddVarint(99, 1);
  report = SimulateGraph("not a graph", options, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(report.status()), v1::ERROR_REASON_UNKNOWN_OPTION);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("Hardware has field 99"));
}

TEST(SimulateGraphTest, EveryFigureOfTwoLayers) {
  const v1::SimulateReport report = Simulated(kTwoLayers, Options());
  const v1::Forecast& forecast = report.forecast();
  EXPECT_EQ(forecast.fit(), v1::FIT_FITS);
  EXPECT_FALSE(forecast.has_out_of_memory());
  // The copy of x, then a launch for each layer. Even launched ahead, y waits for the copy.
  EXPECT_EQ(forecast.synchronous_step_time_ns(), kCopyNs + 20);
  EXPECT_EQ(forecast.step_time_ns(), kCopyNs + 20);
  EXPECT_EQ(forecast.host_peak_bytes(), kLayerBytes);
  ASSERT_EQ(forecast.devices_size(), 1);
  const v1::DeviceForecast& gpu = forecast.devices(0);
  EXPECT_EQ(gpu.device(), "");
  EXPECT_EQ(gpu.resident_bytes(), kWeightBytes);
  // x and y, or y and z.
  EXPECT_EQ(gpu.peak_bytes() - gpu.resident_bytes(), 2 * kLayerBytes);
  EXPECT_EQ(gpu.compute_ns(), 20);
  EXPECT_EQ(gpu.stall_ns(), kCopyNs);
  EXPECT_EQ(gpu.copy_in_ns(), kCopyNs);
  EXPECT_EQ(gpu.copy_in_bytes(), kLayerBytes);
  EXPECT_EQ(gpu.copy_out_ns(), 0);
  EXPECT_EQ(gpu.copy_out_bytes(), 0);
  EXPECT_EQ(gpu.bounds().memory_bytes(), kWeightBytes + 2 * kLayerBytes);
  EXPECT_THAT(report.targets(), ElementsAre("z"));
  EXPECT_EQ(report.node_count(), 5);
  EXPECT_EQ(report.hardware().hardware().gpu_memory_bytes(),
            15955132416);  // The rest is the default preset.
  EXPECT_THAT(report.warnings(), IsEmpty());
  EXPECT_THAT(report.memory(), IsEmpty());
  EXPECT_THAT(report.distances(), IsEmpty());
}

std::vector<std::pair<int64_t, int64_t>> TimelineOf(const v1::DeviceMemory& memory) {
  std::vector<std::pair<int64_t, int64_t>> timeline;
  for (const v1::MemorySample& sample : memory.timeline()) {
    timeline.emplace_back(sample.time_ns(), sample.bytes() - kWeightBytes);
  }
  return timeline;
}

TEST(SimulateGraphTest, MemoryOverTheStep) {
  v1::SimulateOptions options = Options();
  options.set_memory(true);
  for (const v1::Execution execution :
       {v1::EXECUTION_UNSPECIFIED, v1::EXECUTION_LAUNCHED_AHEAD, v1::EXECUTION_SYNCHRONOUS}) {
    options.set_execution(execution);
    const v1::SimulateReport report = Simulated(kTwoLayers, options);
    EXPECT_EQ(report.simulated().execution(), execution == v1::EXECUTION_SYNCHRONOUS
                                                  ? v1::EXECUTION_SYNCHRONOUS
                                                  : v1::EXECUTION_LAUNCHED_AHEAD);
    EXPECT_FALSE(report.simulated().unlimited_memory());
    EXPECT_EQ(report.simulated().step_time_ns(), kCopyNs + 20);
    EXPECT_FALSE(report.has_trace());
    ASSERT_EQ(report.memory_size(), 1);
    const v1::DeviceMemory& memory = report.memory(0);
    const auto timeline = TimelineOf(memory);
    // x is allocated, then y; x is freed as z is allocated; z, for the target, is freed at the end.
    ASSERT_GE(timeline.size(), 3u);
    EXPECT_THAT(timeline[0], Pair(0, kLayerBytes));
    EXPECT_THAT(timeline[1], Pair(kCopyNs, 2 * kLayerBytes));
    for (const auto& [time, bytes] : timeline) EXPECT_LE(bytes, 2 * kLayerBytes) << time;
    EXPECT_LE(timeline.back().first, kCopyNs + 20);
    EXPECT_EQ(memory.resident_bytes(), kWeightBytes);
    EXPECT_EQ(memory.peak_bytes(), kWeightBytes + 2 * kLayerBytes);
    EXPECT_EQ(memory.peak_ns(), kCopyNs);
    std::vector<std::string> alive;
    for (const v1::LiveTensor& live : memory.live_at_peak()) {
      alive.push_back(live.tensor().tensor());
      EXPECT_EQ(live.resident(), live.tensor().tensor() == "w:0");
      EXPECT_EQ(live.tensor().size_bytes(), live.resident() ? kWeightBytes : kLayerBytes);
    }
    EXPECT_THAT(alive, ElementsAre("w:0", "x:0", "y:0"));
  }
}

// A kernel of one second, and another launched behind it: launched ahead its memory is allocated at
// the launch, synchronously when it runs.
TEST(SimulateGraphTest, TheTwoPlaysDiffer) {
  v1::SimulateOptions options = Options();
  options.set_memory(true);
  options.set_trace(true);
  options.mutable_step()->mutable_hardware()->set_launch_s(0);
  options.mutable_step()->mutable_hardware()->set_peak_flops(2 * 64 * 64 * 64);  // For one MatMul.
  constexpr char kThreeLayers[] = R"(
    w = VariableV2() {dtype=float32, shape=(64,64)}
    x = Identity(w) {T=float32}
    a = MatMul(x, x) {T=float32}
    b = MatMul(a, x) {T=float32}
    z = MatMul(b, x) {T=float32}
  )";
  const v1::SimulateReport ahead = Simulated(kThreeLayers, options);
  options.set_execution(v1::EXECUTION_SYNCHRONOUS);
  const v1::SimulateReport sync = Simulated(kThreeLayers, options);
  for (const v1::SimulateReport* report : {&ahead, &sync}) {
    ASSERT_EQ(report->trace().spans_size(), 3);
    EXPECT_EQ(report->trace().spans(2).node(), "z");
    EXPECT_GT(report->trace().spans(2).start_ns(), 0);
  }
  EXPECT_EQ(ahead.trace().spans(2).given_ns(), 0);
  EXPECT_EQ(sync.trace().spans(2).given_ns(), sync.trace().spans(2).start_ns());
  EXPECT_EQ(TimelineOf(ahead.memory(0)).back().first, 0);
  EXPECT_GT(TimelineOf(sync.memory(0)).back().first, 0);
  EXPECT_EQ(ahead.simulated().step_time_ns(), ahead.forecast().step_time_ns());
  EXPECT_EQ(sync.simulated().step_time_ns(), sync.forecast().synchronous_step_time_ns());
}

// A tensor that goes to the host and back, through ordinary nodes of any graph.
TEST(SimulateGraphTest, TheTraceOfASwap) {
  constexpr char kSwapped[] = R"(
    w = VariableV2() @/gpu:0 {dtype=float32, shape=(64,64)}
    x = Identity(w) @/gpu:0 {T=float32}
    a = MatMul(x, x) @/gpu:0 {T=float32}
    b = MatMul(a, a) @/gpu:0 {T=float32}
    out = Identity(a) @/cpu:0 {T=float32}
    in = Identity(out, ^b) @/cpu:0 {T=float32}
    z = MatMul(in, b) @/gpu:0 {T=float32}
  )";
  v1::SimulateOptions options = Options();
  options.set_trace(true);
  const v1::SimulateReport report = Simulated(kSwapped, options);
  EXPECT_THAT(report.memory(), IsEmpty());
  EXPECT_THAT(report.distances(), IsEmpty());
  std::vector<std::string> spans;
  for (const v1::TraceSpan& span : report.trace().spans()) {
    spans.push_back(absl::StrCat(v1::Engine_Name(span.engine()), " ", span.node(), " ",
                                 span.start_ns(), "+", span.duration_ns(), " ", span.bytes()));
    EXPECT_EQ(span.device(), 0);
    EXPECT_EQ(span.waited_ns(), 0);
    EXPECT_LE(span.given_ns(), span.start_ns());
  }
  // Two launches, the copy of a behind the first; then `back`, which waits for both; then z.
  const int64_t out_ns = 1000 + kWeightBytes, in_ns = 1000 + 2 * kWeightBytes;
  EXPECT_THAT(spans, ElementsAre("ENGINE_COMPUTE a 0+10 0", "ENGINE_COMPUTE b 10+10 0",
                                 absl::StrCat("ENGINE_COPY_OUT a 10+", out_ns, " ", kWeightBytes),
                                 absl::StrCat("ENGINE_COPY_IN in ", 10 + out_ns, "+", in_ns, " ",
                                              kWeightBytes),
                                 absl::StrCat("ENGINE_COMPUTE z ", 10 + out_ns + in_ns, "+10 0")));
  EXPECT_EQ(report.trace().spans(3).copied_out(), 2);
  EXPECT_FALSE(report.trace().spans(2).has_copied_out());
  EXPECT_EQ(report.simulated().step_time_ns(), 20 + out_ns + in_ns);
}

// The memory is enough for one of two kernels at a time, so the second waits until the first
// releases it. (Synchronously: launched ahead, buffers are released at the launch.)
TEST(SimulateGraphTest, TheTraceTellsWhoWaitsForMemory) {
  constexpr char kTwoBranches[] = R"(
    w = VariableV2() {dtype=float32, shape=(64,64)}
    x = Identity(w) {T=float32}
    a = MatMul(x, x) @/gpu:0 {T=float32}
    out = Identity(a) @/cpu:0 {T=float32}
    b = MatMul(x, x) @/gpu:0 {T=float32}
    done = NoOp(^b, ^out)
  )";
  v1::SimulateOptions options = Options();
  options.set_trace(true);
  options.mutable_step()->clear_targets();
  options.mutable_step()->add_targets("done");
  options.mutable_step()->set_grappler(v1::GRAPPLER_AS_IS);  // The step's outputs are unused.
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(2 * kWeightBytes);
  const v1::SimulateReport report = Simulated(kTwoBranches, options);
  ASSERT_EQ(report.forecast().fit(), v1::FIT_FITS);
  ASSERT_EQ(report.trace().spans_size(), 3);
  const v1::TraceSpan& copy = report.trace().spans(1);
  const v1::TraceSpan& b = report.trace().spans(2);
  EXPECT_EQ(copy.engine(), v1::ENGINE_COPY_OUT);
  EXPECT_EQ(b.node(), "b");
  EXPECT_EQ(b.given_ns(), copy.start_ns() + copy.duration_ns());
  EXPECT_GT(b.waited_ns(), 0);
  EXPECT_LE(b.waited_ns(), b.given_ns());
}

// A step that does not fit is simulated with unlimited memory, and the report says so.
TEST(SimulateGraphTest, AStepThatDoesNotFitIsPlayedAllTheSame) {
  v1::SimulateOptions options = Options();
  options.set_memory(true);
  options.set_trace(true);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(kWeightBytes);
  const v1::SimulateReport report = Simulated(kTwoLayers, options);
  EXPECT_EQ(report.forecast().fit(), v1::FIT_DOES_NOT_FIT);
  EXPECT_TRUE(report.simulated().unlimited_memory());
  EXPECT_EQ(report.simulated().step_time_ns(), kCopyNs + 20);
  EXPECT_EQ(report.memory(0).peak_bytes(), report.forecast().devices(0).peak_bytes());
  EXPECT_EQ(report.trace().spans_size(), 3);
  // An execution model of a newer API is refused.
  options.set_execution(static_cast<v1::Execution>(7));
  const auto refused = SimulateGraph(GraphBytes(kTwoLayers), options, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(refused.status()), v1::ERROR_REASON_UNKNOWN_OPTION);
}

TEST(SimulateGraphTest, DistancesOfTheGpusEdges) {
  v1::SimulateOptions options = Options();
  options.set_memory(true);
  const v1::SimulateReport report = Simulated(kTwoLayers, options);
  ASSERT_EQ(report.distances_size(), 2);
  // w to r, r to y, y to z. x is fed, so it is on the host; `other` does not run. w is a reference,
  // which has no bytes.
  EXPECT_EQ(report.distances(0).distance(), 1);
  EXPECT_EQ(report.distances(0).edge_count(), 3);
  EXPECT_EQ(report.distances(0).tensor_bytes(), kWeightBytes + kLayerBytes);
  // r to z.
  EXPECT_EQ(report.distances(1).distance(), 2);
  EXPECT_EQ(report.distances(1).edge_count(), 1);
  EXPECT_EQ(report.distances(1).tensor_bytes(), kWeightBytes);
}

TEST(SimulateGraphTest, AByteTooLittle) {
  v1::SimulateOptions options = Options();
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  // The sum of the bytes is not enough if one tensor has more than half of them: TensorFlow's
  // allocator then returns the whole chunk.
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(2 * kWeightBytes +
                                                                   2 * kLayerBytes);
  EXPECT_EQ(Simulated(kTwoLayers, options).forecast().fit(), v1::FIT_FITS);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(kWeightBytes + 2 * kLayerBytes -
                                                                   1);
  const v1::Forecast forecast = Simulated(kTwoLayers, options).forecast();
  EXPECT_EQ(forecast.fit(), v1::FIT_DOES_NOT_FIT);
  EXPECT_FALSE(forecast.has_step_time_ns());
  EXPECT_FALSE(forecast.has_synchronous_step_time_ns());
  EXPECT_EQ(forecast.out_of_memory().node(), "y");
  EXPECT_FALSE(forecast.out_of_memory().host());
  EXPECT_EQ(forecast.out_of_memory().requested_bytes(), kLayerBytes);
  EXPECT_EQ(forecast.out_of_memory().in_use_bytes(), kWeightBytes + kLayerBytes);
  EXPECT_EQ(forecast.out_of_memory().budget_bytes(), kWeightBytes + 2 * kLayerBytes - 1);
  // The memory that the step would need.
  EXPECT_EQ(forecast.devices(0).peak_bytes(), kWeightBytes + 2 * kLayerBytes);
  options.set_no_budget(true);
  const v1::Forecast free = Simulated(kTwoLayers, options).forecast();
  EXPECT_EQ(free.fit(), v1::FIT_FITS);
  EXPECT_FALSE(free.devices(0).has_bounds());
}

// ---- Whether it fits: the third answer ----

v1::Forecast ForecastOf(absl::string_view graph, const v1::SimulateOptions& options) {
  return Simulated(graph, options).forecast();
}

TEST(FitTest, UnknownSizesMakeItUnknown) {
  v1::SimulateOptions options = Options();
  EXPECT_EQ(ForecastOf(kTwoLayers, options).fit(), v1::FIT_FITS);
  options.mutable_step()->clear_batch_size();
  const v1::Forecast forecast = ForecastOf(kTwoLayers, options);
  EXPECT_EQ(forecast.fit(), v1::FIT_UNKNOWN);
  EXPECT_FALSE(forecast.has_out_of_memory());
  EXPECT_TRUE(forecast.has_step_time_ns());
  ASSERT_EQ(forecast.fit_unknown_size(), 1);
  // The copy of x, y and z.
  EXPECT_EQ(forecast.fit_unknown(0).cause(), v1::FIT_UNKNOWN_CAUSE_SIZES);
  EXPECT_EQ(forecast.fit_unknown(0).count(), 3);
  EXPECT_EQ(forecast.fit_unknown(0).node(), "x");
  EXPECT_THAT(forecast.fit_unknown(0).message(), AllOf(HasSubstr("'x'"), HasSubstr("batch_size")));
}

TEST(FitTest, WhatIsKnownMayBeTooMuchAlready) {
  v1::SimulateOptions options = Options();
  options.mutable_step()->clear_batch_size();
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(kWeightBytes - 1);
  const v1::Forecast forecast = ForecastOf(kTwoLayers, options);
  EXPECT_EQ(forecast.fit(), v1::FIT_DOES_NOT_FIT);
  EXPECT_THAT(forecast.fit_unknown(), IsEmpty());
  options.set_no_budget(true);
  EXPECT_EQ(ForecastOf(kTwoLayers, options).fit(), v1::FIT_FITS);
}

// The memory that a loop keeps for each iteration, if the number of iterations is unknown.
TEST(FitTest, ALoopMakesItUnknown) {
  const std::string loop = R"(
    s = Const() {dtype=float32, _output_shapes=[()]}
    enter = Enter(s) {T=float32, frame_name="f"}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, merge) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    body = Tanh(switch:1) {T=float32}
    most = Const() {dtype=int32, _output_shapes=[()]}
    stack = StackV2(most) {elem_type=float32}
    entered = Enter(stack) {T=resource, frame_name="f"}
    push = StackPushV2(entered, body) {T=float32}
    next = NextIteration(body, ^push) {T=float32}
    z = Exit(switch) {T=float32}
  )";
  const v1::Forecast forecast = ForecastOf(loop, Options());
  EXPECT_EQ(forecast.fit(), v1::FIT_UNKNOWN);
  ASSERT_EQ(forecast.fit_unknown_size(), 1);
  EXPECT_EQ(forecast.fit_unknown(0).cause(), v1::FIT_UNKNOWN_CAUSE_LOOPS);
  EXPECT_EQ(forecast.fit_unknown(0).node(), "enter");
  EXPECT_THAT(forecast.fit_unknown(0).message(), ::testing::HasSubstr("one such loop is 'f'"));
  // The count may be given. A loop that keeps nothing takes the same memory however often it runs.
  v1::SimulateOptions counted = Options();
  counted.mutable_step()->add_loop_counts()->set_name("f");
  counted.mutable_step()->mutable_loop_counts(0)->set_count(1000);
  const v1::Forecast told = ForecastOf(loop, counted);
  EXPECT_EQ(told.fit(), v1::FIT_FITS);
  EXPECT_GE(told.devices(0).peak_bytes(), 1000 * 256);
  const std::string keeps_nothing = absl::StrReplaceAll(
      loop, {{", ^push", ""}, {"push = StackPushV2(entered, body) {T=float32}", ""}});
  EXPECT_EQ(ForecastOf(keeps_nothing, Options()).fit(), v1::FIT_FITS);
  // Tensors kept on the host take no GPU memory.
  const std::string host =
      absl::StrReplaceAll(loop, {{") {", ") @/cpu:0 {"}, {"(less)", "(less) @/cpu:0"}});
  EXPECT_EQ(ForecastOf(absl::StrCat(host, "\n g = NoOp() @/gpu:0"), Options()).fit(), v1::FIT_FITS);
}

// Tensors of 256 bytes: on the true side a, a2 and a3 are live together, on the false side only b
// and its producer or reader.
TEST(SimulateGraphTest, AConditionalTakesOneSide) {
  const std::string cond = R"(
    p = Placeholder() @/cpu:0 {dtype=bool, shape=()}
    x = Abs() @/gpu:0 {T=float32, _output_shapes=[(8,8)]}
    sw = Switch(x, p) @/gpu:0 {T=float32}
    a = MatMul(sw:1, sw:1) @/gpu:0 {T=float32, _output_shapes=[(8,8)]}
    a2 = MatMul(a, a) @/gpu:0 {T=float32, _output_shapes=[(8,8)]}
    a3 = MatMul(a, a2) @/gpu:0 {T=float32, _output_shapes=[(8,8)]}
    b = MatMul(sw, sw) @/gpu:0 {T=float32, _output_shapes=[(8,8)]}
    m = Merge(a3, b) @/gpu:0 {N=2, T=float32}
    z = MatMul(m, m) @/gpu:0 {T=float32, _output_shapes=[(8,8)]})";
  v1::SimulateOptions options;
  options.mutable_step()->add_targets("z");
  v1::SimulateReport report = Simulated(cond, options);
  EXPECT_EQ(report.forecast().devices(0).peak_bytes(), 3 * 256);
  EXPECT_EQ(report.node_count(), 8);  // All except b.
  ASSERT_EQ(report.warnings_size(), 1);
  EXPECT_EQ(report.warnings(0).code(), v1::WARNING_CODE_WORSE_SIDE);
  EXPECT_THAT(report.warnings(0).message(),
              HasSubstr("'p' is assumed true (768 B are allocated on that side, 256 B on the "
                        "other)"));
  v1::Feed* feed = options.mutable_step()->add_feeds();
  feed->set_name("p");
  feed->add_values(0);
  report = Simulated(cond, options);
  EXPECT_EQ(report.forecast().devices(0).peak_bytes(), 2 * 256);
  EXPECT_EQ(report.node_count(), 6);
  EXPECT_THAT(report.warnings(), IsEmpty());
  feed->set_values(0, 1);
  report = Simulated(cond, options);
  EXPECT_EQ(report.forecast().devices(0).peak_bytes(), 3 * 256);
  EXPECT_EQ(report.node_count(), 8);
  EXPECT_THAT(report.warnings(), IsEmpty());
}

TEST(SimulateGraphTest, WhatIsNotKnownIsSaid) {
  v1::SimulateOptions options = Options();
  options.mutable_step()->clear_batch_size();
  options.mutable_step()->clear_targets();
  const v1::SimulateReport report = Simulated(kTwoLayers, options);
  std::vector<v1::WarningCode> codes;
  for (const v1::Warning& warning : report.warnings()) codes.push_back(warning.code());
  EXPECT_THAT(codes, ElementsAre(v1::WARNING_CODE_TARGETS_ARE_SINKS, v1::WARNING_CODE_UNKNOWN_SIZES,
                                 v1::WARNING_CODE_UNKNOWN_COSTS));
  EXPECT_THAT(report.targets(), ElementsAre("other"));
  const v1::SimulateReport host = Simulated("a = NoOp() @/cpu:0", {});
  EXPECT_THAT(host.forecast().devices(), IsEmpty());
  ASSERT_EQ(host.warnings_size(), 2);
  EXPECT_EQ(host.warnings(0).code(), v1::WARNING_CODE_NO_GPU);
}

// Counted as in TFLMS v2's histogram: an edge once for each input, a tensor once.
TEST(SimulateGraphTest, ATensorReadTwiceCountsOnceInBytes) {
  v1::SimulateOptions options = Options();
  options.set_memory(true);
  const v1::SimulateReport report = Simulated(R"(
    w = VariableV2() {dtype=float32, shape=(64,64)}
    x = Identity(w) {T=float32}
    y = MatMul(x, x) {T=float32}
    z = MatMul(y, y) {T=float32}
  )",
                                              options);
  ASSERT_EQ(report.distances_size(), 1);
  EXPECT_EQ(report.distances(0).edge_count(), 5);
  EXPECT_EQ(report.distances(0).tensor_bytes(), 2 * kWeightBytes);
}

}  // namespace
}  // namespace spillway::core
