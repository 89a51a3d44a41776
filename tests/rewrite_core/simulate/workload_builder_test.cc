#include "rewrite_core/simulate/workload_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/graph/graph_edit.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using testing::GraphDef;
using testing::PrintPlan;
using testing::TestGraph;
using testing::TestStep;
using ::testing::UnorderedElementsAre;
using testing::ValueOrDie;

// A launch takes 1 ns, and nothing else in a kernel takes time; a copy takes 1000 ns and 1 ns (out)
// or 2 ns (in) per byte. `targets`: separated by spaces.
v1::Step Options(absl::string_view targets) {
  v1::Step options;
  options.set_grappler(v1::GRAPPLER_AS_IS);  // Nodes that nothing reads are as good as others here.
  v1::Hardware& hardware = *options.mutable_hardware();
  hardware.set_peak_flops(1e300);
  hardware.set_mem_bytes_per_s(1e300);
  hardware.set_launch_s(1e-9);
  hardware.set_copy_latency_s(1e-6);
  hardware.set_d2h_bytes_per_s(1e9);
  hardware.set_h2d_bytes_per_s(0.5e9);
  for (absl::string_view target : absl::StrSplit(targets, ' ', absl::SkipEmpty())) {
    options.add_targets(std::string(target));
  }
  return options;
}

// A workload as text, one line per operation; transposed tensors have a mark ('):
//   gpu0 b 1ns: waits a; reads a:0@gpu0; writes b:0@gpu0 (256, over a:0@gpu0)
// Copies are called `out T` and `in T`, a plan's swap nodes `swap T`.
class Words {
 public:
  Words(const TestStep& step, const Workload& workload) : step_(step), w_(workload) {}

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (OpId op(0); op < static_cast<int32_t>(w_.ops.size()); ++op) {
      std::string line =
          absl::StrCat(Where(w_.ops[op].device), " ", Name(op), " ", w_.ops[op].duration_ns, "ns:");
      Append(&line, "waits", w_.waits_for[op], [this](OpId id) { return Name(id); });
      Append(&line, "reads", w_.reads[op], [this](BufferId id) { return Buffer(id); });
      const auto writes = w_.writes[op];
      const auto reuses = w_.reuses[op];
      std::vector<std::string> written;
      for (size_t i = 0; i < writes.size(); ++i) {
        std::string text = absl::StrCat(Buffer(writes[i]), " (", w_.buffers[writes[i]].bytes);
        if (!reuses.empty() && reuses[i] >= 0) absl::StrAppend(&text, ", over ", Buffer(reuses[i]));
        written.push_back(text + ")");
      }
      if (!written.empty()) absl::StrAppend(&line, " writes ", absl::StrJoin(written, " "), ";");
      lines.push_back(line);
    }
    return lines;
  }
  std::vector<std::string> Resident() const {
    std::vector<std::string> resident;
    for (size_t i = 0; i < w_.buffers.size(); ++i) {
      if (!w_.buffers[i].resident) continue;
      resident.push_back(absl::StrCat(Buffer(static_cast<BufferId>(i)), " ", w_.buffers[i].bytes));
    }
    return resident;
  }

 private:
  std::string Where(int32_t device) const {
    return device < 0 ? "host" : absl::StrCat("gpu", device);
  }
  std::string Name(OpId op) const {
    const absl::string_view node = step_.graph->name(w_.ops[op].node);
    switch (w_.ops[op].kind) {
      case OpKind::kCopyOut:
        return absl::StrCat("out ", node);
      case OpKind::kCopyIn:
        return absl::StrCat("in ", node);
      case OpKind::kHost:
        // A host operation of a GPU's node is a swap node of the plan.
        if (step_.facts.placement().node(w_.ops[op].node) >= 0) return absl::StrCat("swap ", node);
        return std::string(node);
      case OpKind::kCompute:
        return absl::StrCat(w_.ops[op].transposes ? "transpose " : "", node);
    }
    return "";
  }
  std::string Buffer(BufferId id) const {
    return absl::StrCat(TensorName(*step_.graph, w_.buffers[id].tensor), "@",
                        Where(w_.buffers[id].device), w_.buffers[id].transposed ? "'" : "");
  }
  template <typename Id, typename Text>
  static void Append(std::string* line, const char* what, absl::Span<const Id> ids, Text text) {
    std::vector<std::string> words;
    for (Id id : ids) words.push_back(text(id));
    if (!words.empty()) absl::StrAppend(line, " ", what, " ", absl::StrJoin(words, " "), ";");
  }

  const TestStep& step_;
  const Workload& w_;
};

std::vector<std::string> Lines(const TestStep& step, const SwapPlan* plan = nullptr) {
  return Words(step, step.Build(plan)).Lines();
}

TEST(WorkloadBuilderTest, AChainOnOneGpu) {
  const TestStep step(
      "a = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "id = Identity(a) {T=float32, _output_shapes=[(8,8)]}\n"
      "b = Relu(id) {T=float32, _output_shapes=[(8,8)]}\n"
      "c = MatMul(b, a, ^a) {T=float32, _output_shapes=[(8,8)]}\n"
      "unused = Relu(a) {T=float32}",
      Options("c"));
  // id forwards: it reads a's buffer and writes none. b may not take over a while c reads it. The
  // simulator decides that; here b is only a candidate.
  EXPECT_THAT(Lines(step),
              UnorderedElementsAre(
                  "gpu0 a 1ns: writes a:0@gpu0 (256);", "gpu0 id 0ns: waits a; reads a:0@gpu0;",
                  "gpu0 b 1ns: waits id; reads a:0@gpu0; writes b:0@gpu0 (256, over a:0@gpu0);",
                  "gpu0 c 1ns: waits b a; reads b:0@gpu0 a:0@gpu0; writes c:0@gpu0 (256);"));
}

TEST(WorkloadBuilderTest, ATensorIsCopiedOncePerDestination) {
  const TestStep step(
      "a = Abs() @/gpu:0 {T=float32, _output_shapes=[(8,8)]}\n"
      "h1 = Relu(a) @/cpu:0 {T=float32, _output_shapes=[(8,8)]}\n"
      "h2 = Relu(a) @/cpu:0 {T=float32, _output_shapes=[(8,8)]}\n"
      "b = MatMul(h1, h1) @/gpu:0 {T=float32, _output_shapes=[(8,8)]}\n"
      "c = MatMul(a, h1) @/gpu:1 {T=float32, _output_shapes=[(8,8)]}\n"
      "end = NoOp(^b, ^c, ^h2) @/cpu:0",
      Options("end"));
  EXPECT_THAT(Lines(step),
              UnorderedElementsAre(
                  "gpu0 a 1ns: writes a:0@gpu0 (256);",
                  "gpu0 out a 1256ns: waits a; reads a:0@gpu0; writes a:0@host (256);",
                  "host h1 0ns: waits out a; reads a:0@host; writes h1:0@host (256);",
                  "host h2 0ns: waits out a; reads a:0@host;",
                  "gpu0 in h1 1512ns: waits h1; reads h1:0@host; writes h1:0@gpu0 (256);",
                  "gpu0 b 1ns: waits in h1; reads h1:0@gpu0; writes b:0@gpu0 (256);",
                  // To the other GPU through host memory, on its own.
                  "gpu0 out a 1256ns: waits a; reads a:0@gpu0; writes a:0@host (256);",
                  "gpu1 in a 1512ns: waits out a; reads a:0@host; writes a:0@gpu1 (256);",
                  "gpu1 in h1 1512ns: waits h1; reads h1:0@host; writes h1:0@gpu1 (256);",
                  "gpu1 c 1ns: waits in a in h1; reads a:0@gpu1 h1:0@gpu1; writes c:0@gpu1 (256);",
                  "host end 0ns: waits b c h2;"));
}

TEST(WorkloadBuilderTest, ScalarsAndUnknownSizesAreCopiedInTheirLatency) {
  const TestStep step(
      "flag = Abs() {T=bool, _output_shapes=[()]}\n"
      "x = Abs() {T=float32}\n"
      "sw = Switch(x, flag) {T=float32}\n"
      "h = Relu(x) @/cpu:0 {T=float32}\n"
      "end = NoOp(^sw, ^h)",
      Options("end"));
  WorkloadNotes notes;
  const Workload workload = step.Build(nullptr, &notes);
  EXPECT_THAT(Words(step, workload).Lines(),
              UnorderedElementsAre(
                  "gpu0 flag 1ns: writes flag:0@gpu0 (1);", "gpu0 x 1ns: writes x:0@gpu0 (0);",
                  "gpu0 out flag 1001ns: waits flag; reads flag:0@gpu0; writes flag:0@host (1);",
                  "gpu0 sw 0ns: waits x out flag; reads x:0@gpu0 flag:0@host;",
                  "gpu0 out x 1000ns: waits x; reads x:0@gpu0; writes x:0@host (0);",
                  "host h 0ns: waits out x; reads x:0@host;", "gpu0 end 0ns: waits sw h;"));
  EXPECT_EQ(notes.unknown_buffers, 1);
  EXPECT_EQ(notes.unknown_costs, 1);
}

TEST(WorkloadBuilderTest, ResidentAreAllVariablesAndTheConstantsThatRun) {
  const TestStep step(
      "v = VariableV2() {dtype=float32, shape=(5,2), _output_shapes=[(5,2)]}\n"
      "slot = VarHandleOp() {dtype=float32, shape=(20)}\n"
      "cpu = VariableV2() @/cpu:0 {dtype=float32, shape=(30), _output_shapes=[(30)]}\n"
      "k = Const() {dtype=float32, _output_shapes=[(2,5)]}\n"
      "idle = Const() {dtype=float32, _output_shapes=[(6)]}\n"
      "n = Const() {dtype=int32, _output_shapes=[(7)]}\n"
      "read = Identity(v) {T=float32, _output_shapes=[(5,2)]}\n"
      "y = MatMul(read, k, ^n) {T=float32, _output_shapes=[(5,5)]}",
      Options("y"));
  const Workload workload = step.Build();
  const Words words(step, workload);
  EXPECT_THAT(words.Resident(),
              UnorderedElementsAre("v:0@gpu0 40", "slot:0@gpu0 80", "k:0@gpu0 40"));
  EXPECT_THAT(
      words.Lines(),
      UnorderedElementsAre(
          "gpu0 v 0ns:", "gpu0 k 0ns:", "gpu0 n 0ns:", "gpu0 read 0ns: waits v; reads v:0@gpu0;",
          "gpu0 y 1ns: waits read k n; reads v:0@gpu0 k:0@gpu0; writes y:0@gpu0 (100);"));
}

TEST(WorkloadBuilderTest, HorovodKeepsOneBufferPerGpu) {
  constexpr char kGraph[] =
      "a = HorovodAllreduce(x) @/gpu:0 {T=float32, _output_shapes=[(8)]}\n"
      "b = HorovodGroupedAllreduce(x) @/gpu:0 {T=float32, _output_shapes=[(8)]}\n"
      "c = HorovodBroadcast(x) @/gpu:1 {T=float32, _output_shapes=[(8)]}\n"
      "x = Abs() @/gpu:0 {T=float32, _output_shapes=[(8)]}";
  v1::Step options = Options("a b c");
  const TestStep with(kGraph, options);
  const Workload one = with.Build();
  EXPECT_THAT(Words(with, one).Resident(), UnorderedElementsAre("a:0@gpu0 134217728"));
  options.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  const TestStep without(kGraph, options);
  const Workload none = without.Build();
  EXPECT_THAT(Words(without, none).Resident(), ::testing::IsEmpty());
}

TEST(WorkloadBuilderTest, WhatIsFedComesFromTheHost) {
  v1::Step options = Options("y");
  v1::Feed* feed = options.add_feeds();
  feed->set_name("x");
  feed->add_dims(8);
  feed->add_dims(8);
  const TestStep step(
      "before = Abs() {T=float32}\n"
      "x = PlaceholderWithDefault(before) {dtype=float32, shape=(?,8)}\n"
      "y = MatMul(x, x) {T=float32, _output_shapes=[(8,8)]}",
      options);
  EXPECT_THAT(Lines(step), UnorderedElementsAre(
                               "host x 0ns: writes x:0@host (256);",
                               "gpu0 in x 1512ns: waits x; reads x:0@host; writes x:0@gpu0 (256);",
                               "gpu0 y 1ns: waits in x; reads x:0@gpu0; writes y:0@gpu0 (256);"));
}

TEST(WorkloadBuilderTest, LoopsRunOnceAndMergesWaitForAll) {
  const TestStep step(
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "enter = Enter(x) {T=float32, frame_name=\"f\", _output_shapes=[(8,8)]}\n"
      "m = Merge(enter, next) {N=2, T=float32, _output_shapes=[(8,8),()]}\n"
      "cond = LoopCond(c)\n"
      "c = Const(^m) @/cpu:0 {dtype=bool, _output_shapes=[()]}\n"
      "sw = Switch(m, cond) {T=float32, _output_shapes=[(8,8),(8,8)]}\n"
      "body = MatMul(sw:1, sw:1) {T=float32, _output_shapes=[(8,8)]}\n"
      "next = NextIteration(body) {T=float32, _output_shapes=[(8,8)]}\n"
      "exit = Exit(sw) {T=float32, _output_shapes=[(8,8)]}",
      Options("exit next"));
  WorkloadNotes notes;
  const Workload workload = step.Build(nullptr, &notes);
  EXPECT_EQ(notes.loops, 1);
  EXPECT_EQ(notes.merges, 0);
  std::vector<std::string> lines = Words(step, workload).Lines();
  EXPECT_THAT(lines, ::testing::Contains("gpu0 m 0ns: waits enter; reads x:0@gpu0;"));
  EXPECT_THAT(lines, ::testing::Contains(
                         "gpu0 body 1ns: waits sw; reads x:0@gpu0; writes body:0@gpu0 (256);"));

  const TestStep branches(
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "y = Abs() {T=float32, _output_shapes=[(32)]}\n"
      "m = Merge(y, x) {N=2, T=float32}\n"
      "z = MatMul(m, m) {T=float32, _output_shapes=[(8,8)]}",
      Options("z"));
  const Workload both = branches.Build(nullptr, &notes);
  EXPECT_EQ(notes.loops, 0);
  EXPECT_EQ(notes.merges, 1);
  // It shares the larger buffer's memory.
  EXPECT_THAT(Words(branches, both).Lines(),
              UnorderedElementsAre("gpu0 x 1ns: writes x:0@gpu0 (256);",
                                   "gpu0 y 1ns: writes y:0@gpu0 (128);",
                                   "gpu0 m 0ns: waits y x; reads y:0@gpu0 x:0@gpu0;",
                                   "gpu0 z 1ns: waits m; reads x:0@gpu0; writes z:0@gpu0 (256);"));
}

TEST(WorkloadBuilderTest, OutputsTakeOverWhatFitsAndHasTheFewestReaders) {
  const TestStep step(
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "g = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "s = Abs() {T=float32, _output_shapes=[(1)]}\n"
      "h = Abs() {T=int64, _output_shapes=[(32)]}\n"
      "r = ReluGrad(x, g) {T=float32, _output_shapes=[(8,8)]}\n"  // x has two more readers.
      "q = MatMul(x, x) {T=float32, _output_shapes=[(8,8)]}\n"
      "t = AddV2(r, s) {T=float32, _output_shapes=[(8,8)]}\n"  // s is too small.
      "u = AddV2(q, q) {T=float32, _output_shapes=[(8,8)]}\n"  // Held twice.
      "k = Greater(h, h) {T=int64, _output_shapes=[(256)]}\n"
      "end = NoOp(^t, ^u, ^k)",
      Options("end"));
  const std::vector<std::string> lines = Lines(step);
  EXPECT_THAT(lines, ::testing::Contains("gpu0 r 1ns: waits x g; reads x:0@gpu0 g:0@gpu0; "
                                         "writes r:0@gpu0 (256, over g:0@gpu0);"));
  EXPECT_THAT(lines, ::testing::Contains("gpu0 t 1ns: waits r s; reads r:0@gpu0 s:0@gpu0; "
                                         "writes t:0@gpu0 (256, over r:0@gpu0);"));
  EXPECT_THAT(lines,
              ::testing::Contains("gpu0 u 1ns: waits q; reads q:0@gpu0; writes u:0@gpu0 (256);"));
}

TEST(WorkloadBuilderTest, APlansNodesAreThereAsIfWritten) {
  const TestStep step(
      "a = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "b = MatMul(a, a) {T=float32, _output_shapes=[(8,8)]}\n"
      "c = MatMul(b, a) {T=float32, _output_shapes=[(8,8)]}\n"
      "wait = NoOp()",  // Only the plan makes it run.
      Options("c"));
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = step.graph.Output("a");
  swap.dtype = kDtFloat32;
  swap.swap_ins = {PlannedSwapIn{{{step.graph["c"], 1}}, {step.graph["wait"]}}};
  plan.swaps = {swap};
  plan.controls = {{step.graph["wait"], step.graph["b"]}};
  EXPECT_THAT(Lines(step, &plan),
              UnorderedElementsAre(
                  "gpu0 a 1ns: writes a:0@gpu0 (256);", "gpu0 wait 0ns:",
                  "gpu0 b 1ns: waits a wait; reads a:0@gpu0; writes b:0@gpu0 (256);",
                  "gpu0 out a 1256ns: waits a; reads a:0@gpu0; writes a:0@host (256);",
                  "host swap a 0ns: waits out a; reads a:0@host;",
                  "host swap a 0ns: waits swap a wait; reads a:0@host;",
                  "gpu0 in a 1512ns: waits swap a; reads a:0@host; writes a:0@gpu0 (256);",
                  "gpu0 c 1ns: waits b in a; reads b:0@gpu0 a:0@gpu0; writes c:0@gpu0 (256);"));
}

// As the layout pass does it: where a tensor enters the other layout, leaves it, and is swapped.
TEST(WorkloadBuilderTest, WhatIsInTheOtherLayoutIsTransposed) {
  constexpr char kImages[] = "T=float32, _output_shapes=[(2,4,4,8)]";
  const std::string conv =
      absl::StrCat("{strides=[1,1,1,1], padding=\"SAME\", data_format=\"NHWC\", ", kImages, "}\n");
  v1::Step options = Options("z");
  options.set_grappler(v1::GRAPPLER_AUTO);
  const TestStep step(absl::StrCat("x = Abs() {", kImages, "}\n",
                                   "w = Abs() {T=float32, _output_shapes=[(1,1,8,8)]}\n",
                                   "a = Conv2D(x, w) ", conv, "b = Relu(a) {", kImages, "}\n",
                                   "c = Conv2D(b, w) ", conv, "z = Relu(c) {", kImages, "}"),
                      options);
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = step.graph.Output("b");
  swap.dtype = kDtFloat32;
  swap.swap_ins = {PlannedSwapIn{{{step.graph["c"], 0}}, {}}};
  plan.swaps = {swap};
  EXPECT_THAT(
      Lines(step, &plan),
      UnorderedElementsAre(
          "gpu0 x 1ns: writes x:0@gpu0 (1024);", "gpu0 w 1ns: writes w:0@gpu0 (256);",
          "gpu0 transpose x 1ns: waits x; reads x:0@gpu0; writes x:0@gpu0' (1024);",
          "gpu0 a 1ns: waits transpose x w; reads x:0@gpu0' w:0@gpu0; writes a:0@gpu0 (1024);",
          "gpu0 b 1ns: waits a; reads a:0@gpu0; writes b:0@gpu0 (1024, over a:0@gpu0);",
          "gpu0 transpose b 1ns: waits b; reads b:0@gpu0; writes b:0@gpu0' (1024);",
          "gpu0 out b 2024ns: waits transpose b; reads b:0@gpu0'; writes b:0@host (1024);",
          "host swap b 0ns: waits out b; reads b:0@host;",
          "host swap b 0ns: waits swap b; reads b:0@host;",
          "gpu0 in b 3048ns: waits swap b; reads b:0@host; writes b:0@gpu0 (1024);",
          "gpu0 transpose b 1ns: waits in b; reads b:0@gpu0; writes b:0@gpu0' (1024);",
          "gpu0 c 1ns: waits transpose b w; reads b:0@gpu0' w:0@gpu0; writes c:0@gpu0 (1024);",
          "gpu0 transpose c 1ns: waits c; reads c:0@gpu0; writes c:0@gpu0' (1024);",
          // z is the target, which the pass leaves alone.
          "gpu0 z 1ns: waits transpose c; reads c:0@gpu0'; writes z:0@gpu0 (1024, over "
          "c:0@gpu0');"));
}

// Unrealistic graphs: an answer in time and memory proportional to the graph.
TEST(WorkloadBuilderTest, HostileGraphs) {
  // A port that an unknown op does not have.
  const TestStep ports(
      "a = Custom() {T=float32}\nb = Relu(a:2147483647) {T=float32}\n"
      "c = Relu(a:7) {T=float32}\nend = NoOp(^b, ^c)",
      Options("end"));
  EXPECT_EQ(ports.Build().ops.size(), 4);
  EXPECT_LE(ports.facts.buffers().num_tensors(), 100);  // Not two billion.

  // One sum of very many tensors, and as many devices.
  std::string text, inputs, controls;
  constexpr int kMany = 30000;
  for (int i = 0; i < kMany; ++i) {
    absl::StrAppend(&text, "x", i, " = Abs() @/job:j", i, "/gpu:0 {T=float32}\n");
    absl::StrAppend(&inputs, i == 0 ? "" : ", ", "x", i % 2 == 0 ? 0 : i);
  }
  absl::StrAppend(&text, "n = AddN(", inputs, ") @/job:j0/gpu:0 {N=", kMany, ", T=float32}");
  const TestStep wide(text, Options("n"));
  EXPECT_EQ(wide.facts.placement().devices().size(), kMany);
  EXPECT_GT(wide.Build().ops.size(), kMany / 2);
}

// Equal for two workloads that differ only in numbering: the multiset of each operation's
// properties, its dependencies and its buffers, to a depth of some steps.
std::vector<size_t> Form(const TestStep& step, const Workload& w) {
  const std::hash<std::string> hash;
  const auto mix = [&](std::vector<size_t> parts, bool sort) {
    if (sort) std::sort(parts.begin(), parts.end());
    return hash(absl::StrJoin(parts, ","));
  };
  std::vector<size_t> op_form(w.ops.size()), buffer_form(w.buffers.size());
  for (size_t i = 0; i < w.ops.size(); ++i) {
    const WorkloadOp& op = w.ops[i];
    const absl::string_view name = step.graph->name(op.node);
    // Swap nodes have no names in a plan, and copies may be named after either of a swap's nodes.
    const bool named =
        (op.kind == OpKind::kCompute && !op.transposes) ||
        (op.kind == OpKind::kHost && step.facts.placement().node(op.node) == kHostPlace &&
         name.find("lms/swap") == absl::string_view::npos);
    op_form[i] =
        hash(absl::StrCat(named ? name : "", "|", static_cast<int>(op.kind), "|", op.device.value(),
                          "|", op.duration_ns, "|", op.workspace_bytes));
  }
  for (size_t i = 0; i < w.buffers.size(); ++i) {
    buffer_form[i] = hash(absl::StrCat(w.buffers[i].bytes, "|", w.buffers[i].device.value(), "|",
                                       w.buffers[i].resident));
  }
  for (int round = 0; round < 5; ++round) {
    std::vector<std::vector<size_t>> touched(w.buffers.size());
    std::vector<size_t> next(w.ops.size());
    for (OpId i(0); i < static_cast<int32_t>(w.ops.size()); ++i) {
      std::vector<size_t> waits, reads, writes, reuses;
      for (OpId before : w.waits_for[i]) waits.push_back(op_form[before]);
      for (BufferId b : w.reads[i]) reads.push_back(buffer_form[b]);
      for (BufferId b : w.writes[i]) writes.push_back(buffer_form[b]);
      for (BufferId b : w.reuses[i]) reuses.push_back(b < 0 ? 0 : buffer_form[b]);
      next[i] = mix(
          {op_form[i], mix(waits, true), mix(reads, true), mix(writes, false), mix(reuses, false)},
          false);
      for (BufferId b : w.reads[i]) touched[b].push_back(op_form[i]);
      for (BufferId b : w.writes[i]) touched[b].push_back(~op_form[i]);
    }
    for (size_t i = 0; i < w.buffers.size(); ++i) {
      buffer_form[i] = mix({buffer_form[i], mix(touched[i], true)}, false);
    }
    op_form = next;
  }
  op_form.insert(op_form.end(), buffer_form.begin(), buffer_form.end());
  std::sort(op_form.begin(), op_form.end());
  return op_form;
}

// If a conditional's predicate is false, the true side is absent, including its copies: `h` runs on
// the host.
TEST(WorkloadBuilderTest, TheSideThatIsNotTakenDoesNotRun) {
  constexpr char kCond[] =
      "p = Placeholder() @/cpu:0 {dtype=bool, shape=()}\n"
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "sw = Switch(x, p) {T=float32}\n"
      "a = MatMul(sw:1, sw:1) {T=float32, _output_shapes=[(8,8)]}\n"
      "h = MatMul(a, a) @/cpu:0 {T=float32, _output_shapes=[(8,8)]}\n"
      "a2 = MatMul(h, a) {T=float32, _output_shapes=[(8,8)]}\n"
      "b = MatMul(sw, sw, ^only) {T=float32, _output_shapes=[(8,8)]}\n"
      "only = NoOp(^x)\n"
      "m = Merge(a2, b, ^a) {N=2, T=float32}\n"
      "z = MatMul(m, m) {T=float32, _output_shapes=[(8,8)]}";
  v1::Step options = Options("z");
  v1::Feed* feed = options.add_feeds();
  feed->set_name("p");
  feed->add_values(0);
  const TestStep step(kCond, options);
  WorkloadNotes notes;
  const Workload workload = step.Build(nullptr, &notes);
  EXPECT_EQ(notes.merges, 0);
  EXPECT_THAT(
      Words(step, workload).Lines(),
      UnorderedElementsAre("host p 0ns:", "gpu0 x 1ns: writes x:0@gpu0 (256);",
                           "gpu0 sw 0ns: waits x p; reads x:0@gpu0;", "gpu0 only 0ns: waits x;",
                           "gpu0 b 1ns: waits sw only; reads x:0@gpu0; writes b:0@gpu0 (256);",
                           "gpu0 m 0ns: waits sw b; reads b:0@gpu0;",
                           "gpu0 z 1ns: waits m; reads b:0@gpu0; writes z:0@gpu0 (256);"));

  // A plan swaps a tensor that both sides read: only the side that is taken waits for it.
  const SwapPlan plan = [&] {
    SwapPlan made;
    PlannedSwap swap;
    swap.tensor = step.graph.Output("a");
    swap.dtype = kDtFloat32;
    swap.swap_ins.resize(1);
    swap.swap_ins[0].consumers = {{step.graph.Node("a2"), 1}};
    made.swaps.push_back(swap);
    swap.tensor = step.graph.Output("m");
    swap.swap_ins[0].consumers = {{step.graph.Node("z"), 1}};
    made.swaps.push_back(swap);
    return made;
  }();
  int copies = 0;
  const Workload swapped = step.Build(&plan);
  for (const WorkloadOp& op : swapped.ops) {
    const bool is_copy = op.kind == OpKind::kCopyIn || op.kind == OpKind::kCopyOut;
    copies += is_copy;
    if (op.swap >= 0) {
      EXPECT_EQ(step.graph->name(op.node), "m");
    }
  }
  EXPECT_EQ(copies, 2);
}

// For any sizes of dead tensors: b is larger than the tensor that the Merge forwards.
TEST(WorkloadBuilderTest, AMergeSharesTheMemoryOfItsLiveInput) {
  v1::Step options = Options("z");
  v1::Feed* feed = options.add_feeds();
  feed->set_name("p");
  feed->add_values(1);
  const TestStep step(
      "p = Placeholder() @/cpu:0 {dtype=bool, shape=()}\n"
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
      "sw = Switch(x, p) {T=float32}\n"
      "a = MatMul(sw:1, sw:1) {T=float32, _output_shapes=[(8,8)]}\n"
      "b = MatMul(sw, sw) {T=float32, _output_shapes=[(8,64)]}\n"
      "m = Merge(b, a) {N=2, T=float32}\n"
      "z = MatMul(m, m) {T=float32, _output_shapes=[(8,8)]}",
      options);
  EXPECT_THAT(Lines(step),
              UnorderedElementsAre("host p 0ns:", "gpu0 x 1ns: writes x:0@gpu0 (256);",
                                   "gpu0 sw 0ns: waits x p; reads x:0@gpu0;",
                                   "gpu0 a 1ns: waits sw; reads x:0@gpu0; writes a:0@gpu0 (256);",
                                   "gpu0 m 0ns: waits sw a; reads a:0@gpu0;",
                                   "gpu0 z 1ns: waits m; reads a:0@gpu0; writes z:0@gpu0 (256);"));
  EXPECT_EQ(step.facts.buffers().buffer_of(step.graph.Output("m")),
            step.facts.buffers().buffer_of(step.graph.Output("a")));
}

bool MayWait(const TestStep& step, NodeId from, NodeId to) {
  return step.facts.control_flow().DeadWhenever(to, from);
}

// A plan of random swaps, triggers and control edges. It is sound: each edge leads up the levels,
// and makes no live node dead.
SwapPlan RandomPlan(const TestStep& step, uint64_t seed) {
  testing::Random random(seed);
  SwapPlan plan;
  const std::vector<Buffers::Buffer>& buffers = step.facts.buffers().buffers();
  const bool keeps = std::any_of(buffers.begin(), buffers.end(),
                                 [](const Buffers::Buffer& buffer) { return buffer.in_list; });
  for (NodeId id(0); id < step.graph->num_nodes(); ++id) {
    const Graph::Readers readers = step.graph->readers(id);
    if (readers.empty() || random.Next() % 3 != 0) continue;
    const Tensor tensor{id, 0};
    // No plan swaps a tensor in a loop. For tensors that a loop keeps in lists, a swap inside it
    // would change which tensor is kept.
    const int32_t buffer = step.facts.buffers().buffer_of(tensor);
    if (keeps && step.facts.control_flow().output_frame(id) != kRootFrame) continue;
    if (keeps && buffer != kNoBuffer && buffers[buffer].in_list) continue;
    const OutputType type = step.facts.shapes().type(tensor);
    if (type.is_ref || type.dtype != kDtFloat32 || step.facts.placement().node(id) < 0) continue;
    PlannedSwap swap;
    swap.tensor = tensor;
    swap.dtype = type.dtype;
    for (int i = 0; i < 2; ++i) swap.swap_ins.emplace_back();
    for (uint32_t r = 0; r < readers.size(); ++r) {
      if (readers[r].port != 0 || IsBackEdge(*step.graph, id, readers[r].node)) continue;
      const uint64_t choice = random.Next() % 3;
      if (choice < 2) {
        swap.swap_ins[choice].consumers.push_back({readers[r].node, readers[r].index});
      }
    }
    for (PlannedSwapIn& swap_in : swap.swap_ins) {
      int32_t level = step.facts.topology().order().size();
      for (const InputPosition& consumer : swap_in.consumers) {
        level = std::min(level, step.facts.topology().level(consumer.node));
      }
      const NodeId trigger(random.Next() % step.graph->num_nodes());
      const bool kills = std::any_of(
          swap_in.consumers.begin(), swap_in.consumers.end(),
          [&](InputPosition consumer) { return !MayWait(step, trigger, consumer.node); });
      if (step.facts.topology().level(trigger) < level && !kills) swap_in.triggers = {trigger};
    }
    const auto empty = [](const PlannedSwapIn& swap_in) { return swap_in.consumers.empty(); };
    swap.swap_ins.erase(std::remove_if(swap.swap_ins.begin(), swap.swap_ins.end(), empty),
                        swap.swap_ins.end());
    if (!swap.swap_ins.empty()) plan.swaps.push_back(std::move(swap));
  }
  for (int i = 0; i < 3; ++i) {
    const NodeId from(random.Next() % step.graph->num_nodes());
    const NodeId to(random.Next() % step.graph->num_nodes());
    if (step.facts.topology().level(from) < step.facts.topology().level(to) &&
        MayWait(step, from, to)) {
      plan.controls.push_back({from, to});
    }
  }
  return plan;
}

// Checks that the workload of the graph with a random plan equals that of the graph with the plan
// written into it. Returns the number of swaps.
int CheckRandomPlan(const std::string& bytes, uint64_t seed, v1::Step options = {}) {
  const TestStep before(TestGraph::FromBytes(bytes), options);
  // Targets found in a graph with swaps may differ.
  for (NodeId target : before.facts.active_nodes().targets) {
    options.add_targets(std::string(before.graph->name(target)));
  }
  const SwapPlan plan = RandomPlan(before, seed);
  GraphEdit edit(*before.graph);
  EXPECT_TRUE(WritePlan(*before.graph, plan, {}, &edit).ok());
  const TestStep after(TestGraph::FromBytes(ValueOrDie(edit.Apply({}), "apply")), options);
  EXPECT_EQ(Form(before, before.Build(&plan)), Form(after, after.Build()))
      << "seed " << seed << "\n"
      << PrintPlan(*before.graph, plan);
  return static_cast<int>(plan.swaps.size());
}

TEST(PlanPropertyTest, OnRandomGraphs) {
  int swaps = 0, dead = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    testing::RandomGraphOptions shape;
    shape.conds = seed % 4 >= 2;
    shape.loops = seed % 8 >= 4;
    shape.devices = seed % 2 == 0;
    GraphDef graph = testing::MakeRandomGraph(seed, shape);
    // Its shapes are random and contradict each other.
    for (auto& node : *graph.mutable_node()) node.mutable_attr()->erase("_output_shapes");
    // Predicates are true, false or unknown.
    v1::Step options;
    for (const auto& node : graph.node()) {
      const uint64_t value = (seed / 8 + options.feeds_size()) % 3;
      if (node.name().rfind("pred", 0) != 0 || node.op() != "Placeholder" || value == 2) continue;
      v1::Feed* feed = options.add_feeds();
      feed->set_name(node.name());
      feed->add_values(static_cast<int64_t>(value));
    }
    const std::string bytes = graph.SerializeAsString();
    swaps += CheckRandomPlan(bytes, seed, options);
    const TestStep step(TestGraph::FromBytes(bytes), options);
    const ActiveNodes& nodes = step.facts.active_nodes();
    for (size_t id = 0; id < nodes.flags.size(); ++id) dead += nodes.needed[id] && !nodes.flags[id];
    if (HasFailure()) return;
  }
  EXPECT_GT(swaps, 2000);
  EXPECT_GT(dead, 1000);
}

class PlanGraphTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanGraphTest, OnTrainingGraphs) {
  const std::string bytes = testing::ReadTestGraph(GetParam() + "/graph.pb");
  // With the layout pass's transposes, in half of them.
  for (uint64_t seed = 0; seed < 4; ++seed) {
    v1::Step options;
    if (seed % 2 == 0) options.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
    EXPECT_GT(CheckRandomPlan(bytes, seed, options), 10);
  }
}

INSTANTIATE_TEST_SUITE_P(WorkloadBuilder, PlanGraphTest,
                         ::testing::Values("bert_tiny", "cond_v1", "lstm_while", "mixed_fp16",
                                           "resnet26_2tower_b2", "tfcnn_resnet50_nhwc_b2"),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
