// How late a stop is noticed, in any stage: a token is polled now and then, so that is at most the
// longest time between two looks. Each stage, strategy and question is watched on graphs made to be
// slow for it: chains, one node with all inputs and one tensor with all readers, a device per node,
// a library of functions.
//
// Looks are watched with the linker's --wrap (CMakeLists.txt): the core has no part for it. Between
// looks counts CPU time of the thread, independent of other load, and the least of three runs: on
// graphs of this size unpolled work takes a multiple of the bound.
//
// Not polled, as it cannot be: protobuf's parsing, serializing and freeing of one message, freeing
// a call's results, and filling arrays with one value.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/rewrite_core/strategy/budget/dear_graphs.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/training_graph.h"

namespace spillway::testing {
namespace {

constexpr int kNodes = kAddressSanitizer ? 4'000 : 20'000;
// Of CPU time after a stop: 50 ms are promised, and here are four times as many, for slow machines;
// under sanitizers ten times.
constexpr absl::Duration kBound = absl::Milliseconds(kAddressSanitizer ? 500 : 200);
constexpr int kRuns = 3;
constexpr int kStops = 5;  // In each case, spread over its looks.
// Loops within loops may each look once more before the call has ended.
constexpr int kMaxLooksAfter = 4;

absl::Duration CpuTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// The call that is watched.
struct Watch {
  int64_t looks = 0;
  int64_t stop_at = 0;  // Cancels at this look; 0: never.
  std::atomic<bool> cancelled{false};
  absl::Duration last, longest;

  void Look() {
    const absl::Duration now = CpuTime();
    longest = std::max(longest, now - last);
    last = now;
    if (++looks == stop_at) cancelled = true;
  }
};
Watch* watch = nullptr;

}  // namespace

// The linker gives calls of StopToken::ShouldStop to the first, and the second is ShouldStop.
extern "C" bool __wrap__ZNK8spillway4core9StopToken10ShouldStopEl(const core::StopToken* token,
                                                                  int64_t steps);
extern "C" bool __real__ZNK8spillway4core9StopToken10ShouldStopEl(const core::StopToken* token,
                                                                  int64_t steps);
bool __wrap__ZNK8spillway4core9StopToken10ShouldStopEl(const core::StopToken* token,
                                                       int64_t steps) {
  if (watch != nullptr) watch->Look();
  return __real__ZNK8spillway4core9StopToken10ShouldStopEl(token, steps);
}

namespace {

// A call's answer, freed when it is not watched any more.
using Kept = std::shared_ptr<void>;
using Call = std::function<absl::Status(const core::StopToken& stop, Kept* kept)>;

template <typename T>
absl::Status Keep(absl::StatusOr<T> answer, Kept* kept) {
  absl::Status status = answer.status();
  if (answer.ok()) *kept = std::make_shared<T>(*std::move(answer));
  return status;
}

struct Watched {
  absl::Status status;
  int64_t looks = 0, steps = 0;
  absl::Duration longest;
};

Watched WatchCall(const Call& call, int64_t stop_at) {
  Watch of_call;
  of_call.stop_at = stop_at;
  const core::StopToken stop(absl::InfiniteFuture(), &of_call.cancelled);
  Watched watched;
  Kept kept;
  of_call.last = CpuTime();
  watch = &of_call;
  watched.status = call(stop, &kept);
  watch = nullptr;
  watched.looks = of_call.looks;
  watched.steps = stop.steps();
  watched.longest = std::max(of_call.longest, CpuTime() - of_call.last);
  return watched;
}

// ---- Graphs made to be slow ----

std::string Training(int nodes = kNodes) {
  TrainingGraphOptions options;
  options.nodes = nodes;
  return MakeTrainingGraph(options);
}

// All but three nodes read the first one; the last two read all others.
std::string Fan() {
  std::string text = "f0 = Placeholder() @/gpu:0 {dtype=float32}\n";
  std::vector<std::string> all;
  for (int i = 1; i < kNodes - 2; ++i) {
    all.push_back(absl::StrCat("f", i));
    absl::StrAppend(&text, all.back(), " = Relu(f0) @/gpu:0 {T=float32}\n");
  }
  const std::string inputs = absl::StrJoin(all, ", ");
  absl::StrAppend(&text, "gradients/a = AddN(", inputs, ") @/gpu:0 {T=float32}\n");
  absl::StrAppend(&text, "gradients/b = AddN(gradients/a, ", inputs, ") @/gpu:0 {T=float32}\n");
  return GraphBytes(text);
}

// A forward and a backward chain, each node of the first on a device of its own.
std::string Devices() {
  const auto device = [](int i) { return absl::StrCat(" @/job:worker/task:", i, "/gpu:0 "); };
  std::string text = "f0 = Placeholder() @/gpu:0 {dtype=float32}\n", last = "f0";
  const int half = kNodes / 8;
  for (int i = 1; i < half; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(f", i - 1, ")", device(i), "{T=float32}\n");
  }
  for (int i = half - 1; i > 0; --i) {
    const std::string name = absl::StrCat("gradients/g", i);
    absl::StrAppend(&text, name, " = ReluGrad(", last, ", f", i, ")", device(i), "{T=float32}\n");
    last = name;
  }
  return GraphBytes(text);
}

std::string Functions() {
  GraphDef graph;
  for (int i = 0; i < kNodes; ++i) {
    graph.mutable_library()->add_function()->mutable_signature()->set_name(absl::StrCat("f", i));
  }
  graph.add_node()->set_name("node");
  graph.mutable_node(0)->set_op("NoOp");
  return WriteProto(graph);
}

// ---- Graphs with very many of one thing ----

// A node with `count` attributes of its own. `value` is that of the first.
std::string ManyAttributes(int count, int value = 1) {
  GraphDef graph;
  NodeDef* node = graph.add_node();
  node->set_name("node");
  node->set_op("NoOp");
  for (int i = 0; i < count; ++i) {
    (*node->mutable_attr())[absl::StrCat("attribute", i)].set_i(i == 0 ? value : 1);
  }
  return WriteProto(graph);
}

// A function with `results` results, called by name `calls` times in another, where one node reads
// the last result of the first call `readers` times.
std::string ManyResults(int results, int calls, int readers) {
  FunctionDef callee = Function("g", "a:float32", "", "r = Relu(a) @/gpu:0 {T=float32}", {});
  for (int i = 0; i < results; ++i) {
    const std::string name = absl::StrCat("o", i);
    auto* result = callee.mutable_signature()->add_output_arg();
    result->set_name(name);
    result->set_type(1);  // float32
    (*callee.mutable_ret())[name] = "r:activations:0";
  }
  std::string body;
  for (int i = 0; i < calls; ++i) absl::StrAppend(&body, "c", i, " = g(a) @/gpu:0\n");
  const std::vector<std::string> reads(readers, absl::StrCat("c0:o", results - 1, ":0"));
  absl::StrAppend(&body, "add = AddN(", absl::StrJoin(reads, ", "),
                  ") @/gpu:0 {T=float32, N=", readers, "}");
  const FunctionDef caller = Function("f", "a:float32", "o:float32", body, {"o=add:sum:0"});
  return GraphWithFunctions(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "y = PartitionedCall(x) @/gpu:0 {f=\"f\", Tin=[float32], Tout=[float32]}\n",
      {callee, caller});
}

// Calls of a function of `nodes` nodes that TensorFlow does not inline, each with an argument of
// another size.
std::string KeptCalls(int nodes, int calls) {
  std::string body = "n0 = Neg(a) {T=float32}\n";
  for (int i = 1; i < nodes; ++i) {
    absl::StrAppend(&body, "n", i, " = Neg(n", i - 1, ":y:0) {T=float32}\n");
  }
  std::string text;
  for (int i = 1; i <= calls; ++i) {
    absl::StrAppend(&text, "x", i, " = Placeholder() @/gpu:0 {dtype=float32, shape=(", i, ")}\n");
    absl::StrAppend(&text, "y", i, " = PartitionedCall(x", i,
                    ") @/gpu:0 {f=\"f\", Tin=[float32], Tout=[float32]}\n");
  }
  const FunctionDef function =
      Function("f", "a:float32", "o:float32", body, {absl::StrCat("o=n", nodes - 1, ":y:0")});
  return GraphWithFunctions(text, {testing::WithFlag(function, "_noinline")});
}

// A node with a large attribute: the size of inlined calls may be in proportion to the graph's
// bytes.
std::string Padding() {
  GraphDef padding;
  NodeDef* node = padding.add_node();
  node->set_name("padding");
  node->set_op("NoOp");
  (*node->mutable_attr())["bytes"].set_s(std::string(size_t{16} << 20, ' '));
  return WriteProto(padding);
}

// A node that is lowered, with functions of `count` arguments and results: an If, or a loop with
// that many variables.
std::string ManyOfLowered(absl::string_view op, int count) {
  std::vector<std::string> arguments, results, returns;
  for (int i = 0; i < count; ++i) {
    arguments.push_back(absl::StrCat("a", i, ":float32"));
    results.push_back(absl::StrCat("o", i, ":float32"));
    returns.push_back(absl::StrCat("o", i, "=a", i));
  }
  const std::string all = absl::StrJoin(arguments, " ");
  const std::string types =
      absl::StrCat("[", absl::StrJoin(std::vector<std::string>(count, "float32"), ", "), "]");
  const std::string inputs = absl::StrJoin(std::vector<std::string>(count, "x"), ", ");
  const FunctionDef same = Function("same", all, absl::StrJoin(results, " "), "", returns);
  const FunctionDef more =
      Function("more", all, "y:bool", "k = Const() {dtype=bool}", {"y=k:output:0"});
  const std::string lowered =
      op == "While"
          ? absl::StrCat("n = While(", inputs, ") {T=", types, ", cond=\"more\", body=\"same\"")
          : absl::StrCat("n = If(p, ", inputs, ") {Tcond=bool, Tin=", types, ", Tout=", types,
                         ", then_branch=\"same\", else_branch=\"same\"");
  return GraphWithFunctions(absl::StrCat("fed = Placeholder() {dtype=float32, shape=(4)}\n",
                                         "x = Relu(fed) {T=float32}\n",
                                         "p = Placeholder() {dtype=bool, shape=()}\n", lowered,
                                         ", _lower_using_switch_merge=true}\n"),
                            {same, more}) +
         Padding();
}

// A Case of `count` times the same branch, which takes and gives `count` tensors.
std::string ManyBranches(int count) {
  const std::string types =
      absl::StrCat("[", absl::StrJoin(std::vector<std::string>(count, "float32"), ", "), "]");
  std::vector<std::string> arguments, results, returns;
  for (int i = 0; i < count; ++i) {
    arguments.push_back(absl::StrCat("a", i, ":float32"));
    results.push_back(absl::StrCat("o", i, ":float32"));
    returns.push_back(absl::StrCat("o", i, "=a", i));
  }
  const FunctionDef same =
      Function("same", absl::StrJoin(arguments, " "), absl::StrJoin(results, " "), "", returns);
  return GraphWithFunctions(
      absl::StrCat("x = Placeholder() {dtype=float32, shape=(4)}\n",
                   "p = Placeholder() {dtype=int32, shape=()}\nn = Case(p, ",
                   absl::StrJoin(std::vector<std::string>(count, "x"), ", "), ") {Tin=", types,
                   ", Tout=", types, ", _lower_using_switch_merge=true, branches=[",
                   absl::StrJoin(std::vector<std::string>(count, "\"same\""), ", "), "]}\n"),
      {same});
}

// One op that updates one variable `count` times.
std::string ManyHandles(int count) {
  return GraphBytes(absl::StrCat(
      "v = VarHandleOp() {dtype=float32, shape=(4)}\nu = ResourceApplyGradientDescent(",
      absl::StrJoin(std::vector<std::string>(count, "v"), ", "), ") {T=float32}\n"));
}

// Nodes of which each has an op type of its own.
std::string ManyTypes(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, "n", i, " = Op", i, "()\n");
  return GraphBytes(text);
}

// Placeholders that nothing reads, named `name` and a number.
std::string ManyPlaceholders(int count, const std::string& name = "p") {
  std::string text;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, name, i, " = Placeholder() {dtype=float32}\n");
  return GraphBytes(text);
}

// A function that updates a variable `count` times, whose handle comes through `hops` nodes with
// long names.
std::string ManyUpdates(int hops, int count) {
  const std::string name(10'000, 'h');
  std::string body = absl::StrCat(name, "0 = Identity(v) {T=resource}\n");
  for (int i = 1; i < hops; ++i) {
    absl::StrAppend(&body, name, i, " = Identity(", name, i - 1, ":output:0) {T=resource}\n");
  }
  absl::StrAppend(&body, "h = Identity(", name, hops - 1, ":output:0) {T=resource}\n");
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&body, "u", i, " = AssignVariableOp(h:output:0, x) {dtype=float32}\n");
  }
  return GraphWithFunctions(
      "v = VarHandleOp() {dtype=float32, shape=(4)}\n"
      "x = Placeholder() {dtype=float32, shape=(4)}\n"
      "y = PartitionedCall(v, x) {f=\"f\", Tin=[resource, float32], Tout=[float32]}\n",
      {Function("f", "v:resource x:float32", "o:float32", body, {"o=x"})});
}

// `callers` functions that each read the last of a function's `results` results.
std::string ManyCallers(int results, int callers) {
  std::vector<std::string> outputs, returns;
  for (int i = 0; i < results; ++i) {
    outputs.push_back(absl::StrCat("o", i, ":float32"));
    returns.push_back(absl::StrCat("o", i, "=a"));
  }
  std::vector<FunctionDef> functions = {
      Function("g", "a:float32", absl::StrJoin(outputs, " "), "", returns)};
  std::string text = "x = Placeholder() {dtype=float32, shape=(4)}\n";
  const std::string body = absl::StrCat("c = g(a)\nn = Neg(c:o", results - 1, ":0) {T=float32}\n");
  for (int i = 0; i < callers; ++i) {
    functions.push_back(
        Function(absl::StrCat("f", i), "a:float32", "o:float32", body, {"o=n:y:0"}));
    absl::StrAppend(&text, "y", i, " = PartitionedCall(x) {f=\"f", i,
                    "\", Tin=[float32], Tout=[float32]}\n");
  }
  return GraphWithFunctions(text, functions);
}

// Calls of a function that forwards its argument, each of the one before.
std::string ChainOfCalls(int count) {
  std::string text = "y0 = Placeholder() {dtype=float32, shape=(4)}\n";
  for (int i = 1; i <= count; ++i) {
    absl::StrAppend(&text, "y", i, " = PartitionedCall(y", i - 1,
                    ") {f=\"f\", Tin=[float32], Tout=[float32]}\n");
  }
  return GraphWithFunctions(text, {Function("f", "a:float32", "o:float32", "", {"o=a"})});
}

// `count` operations that only one node reads, which reads the end of a chain, too: each of them
// may wait for that.
std::string ManyIntoOne(int count) {
  const std::string type = " @/gpu:0 {T=float32, _output_shapes=[(64,64)]}\n";
  std::string text = "p = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n", last = "p";
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(absl::StrCat("early", i));
    absl::StrAppend(&text, all.back(), " = Relu(p)", type);
  }
  for (int i = 0; i < count / 10; ++i) {
    absl::StrAppend(&text, "late", i, " = Tanh(", last, ")", type);
    last = absl::StrCat("late", i);
  }
  all.push_back(last);
  absl::StrAppend(&text, "sum = AddN(", absl::StrJoin(all, ", "), ") @/gpu:0 {N=", all.size(),
                  ", T=float32, _output_shapes=[(64,64)]}\n");
  return GraphBytes(text);
}

// `count` nodes read a tensor at once, and wait for its swap-out, which one at the end of a chain
// reads as a swap-in.
std::string ManyThatWait(int count) {
  const std::string type = " @/gpu:0 {T=float32, _output_shapes=[(64,64)]}\n";
  std::string text =
      absl::StrCat("p = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\nx = Relu(p)", type);
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, "r", i, " = Neg(x)", type);
  std::string last = "r0";
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&text, "late", i, " = Tanh(", last, ")", type);
    last = absl::StrCat("late", i);
  }
  absl::StrAppend(&text, "end = AddV2(x, ", last, ")", type);
  return GraphBytes(text);
}

// A node with `count` outputs on a GPU, which waits for memory while as many tensors are copied to
// the host, one after another: it is tried again at the end of each copy.
std::string WaitsForCopies(int count) {
  const std::string type = " {T=float32, _output_shapes=[(64,64)]}\n";
  std::string text = "p = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(p) @/gpu:0", type);
    absl::StrAppend(&text, "h", i, " = Relu(f", i, ") @/cpu:0", type);
  }
  absl::StrAppend(
      &text, "it = Placeholder() @/cpu:0 {dtype=resource, shape=()}\nn = IteratorGetNext(it, ^f",
      count - 1, ") @/gpu:0 {output_types=[",
      absl::StrJoin(std::vector<std::string>(count, "float32"), ", "), "], output_shapes=[",
      absl::StrJoin(std::vector<std::string>(count, "(64,64)"), ", "), "]}\n");
  return GraphBytes(text);
}

// ---- Calls ----

constexpr char kAll[] = "outputs: OUTPUT_GRAPH outputs: OUTPUT_PATCH outputs: OUTPUT_REPORT ";
constexpr char kLowEffort[] = "budget { planning_effort: PLANNING_EFFORT_LOW }";
constexpr char kGiven[] = "level { swapout_threshold: 10 swapin_ahead: 5 swapin_groupby: 5 ";
constexpr char kFanScope[] =
    "step { feeds { name: 'f0' dims: 1024 } } "
    "scope { optimizer_scopes: 'gradients' starting_op_names: 'f0' ";
constexpr int kOptionItems = 1000;
// Of one thing: work of a microsecond each without a look takes as long as the bound.
constexpr int kMany = kAddressSanitizer ? 40'000 : 200'000;
// The training graph has one for some dozens of nodes.
constexpr int kBlocks = kNodes / 100;

template <typename Options>
Options Parse(const std::string& text) {
  Options options;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
  return options;
}

std::string Repeated(absl::string_view field, absl::string_view before, absl::string_view behind,
                     int count = kOptionItems) {
  std::string text;
  for (int i = 1; i <= count; ++i) {
    absl::StrAppend(&text, field, ": '", before, i, behind, "' ");
  }
  return text;
}

// Different slices of the levels, of many lengths and steps.
std::string Slices(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "serialization: '", i % 100, ":", i + 101, ":", 1 + i % 50, "' ");
  }
  return text;
}

// The options are read before the call, whose time counts: their text is the test's.
Call Rewriting(const std::string& graph, const std::string& text) {
  return
      [graph, options = Parse<v1::RewriteOptions>(text)](const core::StopToken& stop, Kept* kept) {
        return Keep(core::Rewrite(graph, options, core::DefaultLimits(), stop), kept);
      };
}

std::string Rewritten(const std::string& graph, const std::string& text) {
  return ValueOrDie(
             core::Rewrite(graph, Parse<v1::RewriteOptions>(text), core::DefaultLimits(), {}),
             "rewrite")
      .graph_def();
}

Call Inspecting(const std::string& graph) {
  return [graph, options = Parse<v1::InspectOptions>("tensors: true")](const core::StopToken& stop,
                                                                       Kept*) {
    return core::Inspect(graph, options, core::DefaultLimits(), stop,
                         [](v1::InspectResponse&&) { return true; });
  };
}

Call Simulating(const std::string& graph, const std::string& step) {
  return [graph, options = Parse<v1::SimulateOptions>("memory: true " + step)](
             const core::StopToken& stop, Kept* kept) {
    return Keep(core::SimulateGraph(graph, options, core::DefaultLimits(), stop), kept);
  };
}

Call Exploring(const std::string& graph, const std::string& text) {
  return
      [graph, options = Parse<v1::ExploreOptions>(text)](const core::StopToken& stop, Kept* kept) {
        return Keep(core::Explore(graph, options, core::DefaultLimits(), stop), kept);
      };
}

Call Comparing(const std::string& a, const std::string& b) {
  return [=](const core::StopToken& stop, Kept* kept) {
    return Keep(core::DiffGraphs(a, b, core::DefaultLimits(), stop), kept);
  };
}

// Loops in series that hand a resource on, each with a reader of its own.
std::string LoopsInSeries(int count) {
  const FunctionDef same =
      Function("same", "a0:resource a1:float32", "o0:resource o1:float32", "", {"o0=a0", "o1=a1"});
  const FunctionDef more = Function("more", "a0:resource a1:float32", "y:bool",
                                    "k = Const() {dtype=bool}", {"y=k:output:0"});
  std::string text =
      "v = VarHandleOp() {dtype=float32, shape=(4)}\n"
      "x = Placeholder() {dtype=float32, shape=(4)}\n";
  std::string last = "v";
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("n", i);
    absl::StrAppend(&text, name, " = While(", last,
                    ", x) {T=[resource, float32], cond=\"more\", body=\"same\", "
                    "_lower_using_switch_merge=true}\nr",
                    i, " = ReadVariableOp(", name, ") {dtype=float32}\n");
    last = name;
  }
  return GraphWithFunctions(text, {same, more}) + Padding();
}

// A saved plan with one swap-in for `count` readers, with as many triggers.
Call ApplyingManyTriggers(int count) {
  const std::string type = " @/gpu:0 {T=float32}\n";
  std::string text =
      absl::StrCat("f0 = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\nx = Relu(f0)", type);
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, "t", i, " = Neg(f0)", type);
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, "c", i, " = Relu(x)", type);
  const std::string graph = GraphBytes(text);
  v1::Plan plan;
  plan.set_format_version(1);
  plan.set_graph_sha256(ValueOrDie(core::CanonicalSha256(graph, {}), "sha256"));
  v1::PlannedSwap* swap = plan.add_swaps();
  swap->set_tensor("x:0");
  v1::PlannedSwapIn* in = swap->add_swap_ins();
  for (int i = 0; i < count; ++i) {
    in->add_triggers(absl::StrCat("t", i));
    in->add_consumers()->set_node(absl::StrCat("c", i));
  }
  v1::RewriteOptions options;
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  return [=](const core::StopToken& stop, Kept* kept) {
    return Keep(core::Rewrite(graph, options, core::DefaultLimits(), stop), kept);
  };
}

// Options that leave it four fifths of the memory that its step takes: omitted options are tuned.
std::string ForTuning(const std::string& graph) {
  const auto report = ValueOrDie(
      core::SimulateGraph(graph, v1::SimulateOptions(), core::DefaultLimits(), {}), "simulate");
  const int64_t bytes = report.forecast().devices(0).peak_bytes() / 10 * 9;
  return absl::StrCat("step { hardware { gpu_memory_bytes: ", bytes, " } }");
}

struct Case {
  std::string name;
  std::function<Call()> make;
  bool succeeds = true;
};

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"LevelGiven", [] { return Rewriting(Training(), absl::StrCat(kAll, kGiven, "}")); }},
      {"LevelSync1",
       [] { return Rewriting(Training(), absl::StrCat(kAll, kGiven, "sync_mode: 1 }")); }},
      {"LevelSync1ManyReaders",
       [] {
         return Rewriting(ManyThatWait(kAddressSanitizer ? kMany : 250'000),
                          absl::StrCat(kAll,
                                       "outputs: OUTPUT_PLAN level { swapout_threshold: 2 "
                                       "swapin_ahead: 1 swapin_groupby: 5 sync_mode: 1 }"));
       }},
      {"LevelSync2",
       [] { return Rewriting(Training(), absl::StrCat(kAll, kGiven, "sync_mode: 2 }")); }},
      {"LevelSync3",
       [] { return Rewriting(Training(), absl::StrCat(kAll, kGiven, "sync_mode: 3 }")); }},
      {"LevelSerialized",
       [] { return Rewriting(Fan(), absl::StrCat(kGiven, "serialization: ':' }")); }},
      {"LevelTuned",
       [] {
         const std::string graph = Training(kNodes / 20);
         return Rewriting(graph, ForTuning(graph));
       }},
      {"LevelPaced",
       [] {
         return Rewriting(Training(),
                          absl::StrCat(kAll, kGiven, "pace: true }", "step { batch_size: 16 }"));
       }},
      {"LevelPacedTuned",
       [] {
         const std::string graph = Training(kNodes / 20);
         return Rewriting(graph, absl::StrCat(ForTuning(graph), "level { pace: true }"));
       }},
      {"Budget",
       [] {
         const std::string graph = Training(kNodes / 20);
         return Rewriting(graph, absl::StrCat(ForTuning(graph), "budget {}"));
       }},
      {"BudgetWeightsOnTheHost",
       [] {
         const std::string graph = GraphBytes(EqualGaps(kNodes / 20, /*on_host=*/true));
         return Rewriting(graph, absl::StrCat(ForTuning(graph), kLowEffort));
       }},
      {"BudgetManyReaders",
       [] {
         const std::string graph = GraphBytes(ManyReaders(kNodes / 10));
         return Rewriting(graph, absl::StrCat(ForTuning(graph), kLowEffort));
       }},
      {"LevelScopes",
       [] {
         return Rewriting(
             Training(),
             absl::StrCat(kGiven, Repeated("excl_output_by_scopes", "block", "", kBlocks), "}"));
       }},
      {"LevelManyDevices", [] { return Rewriting(Devices(), absl::StrCat(kGiven, "}")); }},
      {"DevicesByName",
       [] {
         return Rewriting(Devices(), absl::StrCat(Repeated("devices", "/job:worker/task:", "/gpu:0",
                                                           std::min(kOptionItems, kNodes / 10)),
                                                  kGiven, "}"));
       }},
      {"ScopeFound", [] { return Rewriting(Training(), absl::StrCat(kAll, "scope {}")); }},
      {"ScopeBounded",
       [] {
         return Rewriting(Training(),
                          absl::StrCat(kAll,
                                       "scope { optimizer_scopes: 'gradients' optimizer_scopes: "
                                       "'train' fuse_swapins: true lb: 2 ub: 100 }"));
       }},
      {"ScopeFan", [] { return Rewriting(Fan(), absl::StrCat(kAll, kFanScope, "}")); }},
      {"ScopeDirectOrder",
       [] {
         return Rewriting(
             Fan(), absl::StrCat(kAll, kFanScope, "ctrld_strategy: CTRLD_STRATEGY_DIRECT_ORDER }"));
       }},
      {"ScopePatterns",
       [] {
         return Rewriting(Training(),
                          absl::StrCat("scope { optimizer_scopes: 'gradients' optimizer_scopes: "
                                       "'train' ",
                                       Repeated("excl_scopes", "block", "[a-z]*", 20), "}"));
       }},
      {"Apply",
       [] {
         const std::string graph = Training();
         v1::RewriteOptions options = Parse<v1::RewriteOptions>(
             "scope { optimizer_scopes: 'gradients' optimizer_scopes: 'train' }");
         options.add_outputs(v1::OUTPUT_PLAN);
         const auto plan =
             ValueOrDie(core::Rewrite(graph, options, core::DefaultLimits(), {}), "plan").plan();
         EXPECT_GT(plan.swaps_size(), 0);
         options = Parse<v1::RewriteOptions>(absl::StrCat(kAll, "outputs: OUTPUT_PLAN"));
         plan.SerializeToString(options.mutable_apply()->mutable_plan());
         return Call([=](const core::StopToken& stop, Kept* kept) {
           return Keep(core::Rewrite(graph, options, core::DefaultLimits(), stop), kept);
         });
       }},
      {"Strip",
       [] {
         const std::string plan = absl::StrCat(kFanScope, "}");
         return Rewriting(Rewritten(Fan(), plan), "strip {}");
       }},
      {"Kept",
       [] {
         const std::string plan = absl::StrCat(kGiven, "}");
         return Rewriting(Rewritten(Training(), plan), plan);
       }},
      {"Replanned",
       [] {
         const std::string plan = absl::StrCat(kFanScope, "}");
         return Rewriting(Rewritten(Fan(), plan),
                          absl::StrCat(plan, "already_rewritten: ALREADY_REWRITTEN_REPLAN"));
       }},
      {"Inspect", [] { return Inspecting(Training()); }},
      {"InspectFunctions", [] { return Inspecting(Functions()); }},
      {"Simulate",
       [] {
         return Simulating(Training(), "step { hardware { gpu_memory_bytes: 17179869184 } }");
       }},
      {"SimulateFan", [] { return Simulating(Fan(), "step { feeds { name: 'f0' dims: 1024 } }"); }},
      {"SimulateFunctions", [] { return Simulating(Functions(), ""); }},
      {"Explore",
       [] { return Exploring(Fan(), "step { feeds { name: 'f0' dims: -1 } } sizes: 1000"); }},
      {"SerializedBySlices",
       [] { return Rewriting(Training(), absl::StrCat(kGiven, Slices(kMany), "}")); }},
      {"SerializedByEqualSlices",
       [] {
         return Rewriting(Training(),
                          absl::StrCat(kGiven, Repeated("serialization", ":", "", kMany), "}"));
       }},
      {"InspectTypes", [] { return Inspecting(ManyTypes(kMany / 4)); }},
      {"TooManyTypes", [] { return Inspecting(ManyTypes(5 * kMany)); }, false},
      {"InspectPlaceholders", [] { return Inspecting(ManyPlaceholders(kMany)); }},
      {"SimulateTypes", [] { return Simulating(ManyTypes(kMany / 4), ""); }},
      {"Attributes", [] { return Simulating(ManyAttributes(5 * kMany), ""); }, false},
      {"NearNames",
       [] {
         const std::string name(100, 'x');
         return Rewriting(ManyPlaceholders(kNodes, name),
                          absl::StrCat(kGiven, "excl_output_by_scopes: '", name, "yy' }"));
       },
       false},
      {"NearNamesOfScopes",
       [] {
         const std::string name(100, 'x');
         return Rewriting(Training(),
                          absl::StrCat("scope { optimizer_scopes: 'gradients' ",
                                       Repeated("optimizer_scopes", name, "", 200), "}"));
       }},
      {"RewriteResults",
       [] { return Rewriting(ManyResults(kMany, 1, kMany), absl::StrCat(kGiven, "}")); }},
      {"RewriteResultsOfCalls",
       [] { return Rewriting(ManyResults(kMany, kMany / 5, 1), absl::StrCat(kGiven, "}")); }},
      {"SimulateResults", [] { return Simulating(ManyResults(kMany, 1, kMany), ""); }},
      {"SimulateResultsOfCalls", [] { return Simulating(ManyResults(kMany, kMany / 5, 1), ""); }},
      {"InspectResultsOfCalls", [] { return Inspecting(ManyResults(kMany, kMany / 5, 1)); }},
      {"SimulateResultsOfIf", [] { return Simulating(ManyOfLowered("If", kMany / 4), ""); }},
      {"RewriteResultsOfIf",
       [] { return Rewriting(ManyOfLowered("If", kMany / 4), absl::StrCat(kGiven, "}")); }},
      {"RewriteVariablesOfWhile",
       [] { return Rewriting(ManyOfLowered("While", kMany / 4), absl::StrCat(kGiven, "}")); }},
      {"SimulateBranches", [] { return Simulating(ManyBranches(kMany / 8), ""); }},
      {"SimulateHandles", [] { return Simulating(ManyHandles(kMany / 4), ""); }},
      {"SimulateKeptCalls", [] { return Simulating(KeptCalls(kMany / 8, 100), ""); }},
      {"SimulateUpdatesBehindChain", [] { return Simulating(ManyUpdates(250, kMany / 10), ""); }},
      {"SimulateCallers", [] { return Simulating(ManyCallers(kMany / 8, kMany / 100), ""); }},
      {"SimulateChainOfCalls", [] { return Simulating(ChainOfCalls(kMany / 4), ""); }},
      {"BudgetOneReader",
       [] {
         const std::string graph = ManyIntoOne(kNodes / 8);
         return Rewriting(graph, absl::StrCat(ForTuning(graph), kLowEffort));
       },
       /*succeeds=*/false},  // The sum holds all its inputs at once.
      {"SimulateWaiting",
       [] {
         // Half of the step's memory.
         const int64_t bytes = int64_t{kNodes / 4} * 16384 * 5 / 4;
         return Simulating(WaitsForCopies(kNodes / 4),
                           absl::StrCat("step { hardware { gpu_memory_bytes: ", bytes, " } }"));
       }},
      {"RewriteLoopsInSeries",
       [] {
         return Rewriting(LoopsInSeries(kMany / 40),
                          absl::StrCat("inline_calls: INLINE_CALLS_ALWAYS ", kGiven, "}"));
       }},
      {"RewriteChainOfCalls",
       [] {
         return Rewriting(ChainOfCalls(kMany / 20),
                          absl::StrCat("inline_calls: INLINE_CALLS_ALWAYS ", kGiven, "}"));
       }},
      {"DevicesByPart",
       [] {
         const int count = std::min(10'000, kNodes / 8 - 1);
         return Rewriting(
             Devices(), absl::StrCat(Repeated("devices", "/task:", "/gpu:0", count), kGiven, "}"));
       }},
      {"ApplyManyTriggers", [] { return ApplyingManyTriggers(1000); }},
      {"SimulateVariablesOfWhile",
       [] { return Simulating(ManyOfLowered("While", kMany / 4), ""); }},
      {"FiltersAndNodes",
       [] {
         return Rewriting(
             Fan(), absl::StrCat("step { feeds { name: 'f0' dims: 1024 } } ", kGiven,
                                 Repeated("excl_output_by_scopes", "f", "", kNodes / 2), "}"));
       }},
      {"TypesAndNodes",
       [] {
         return Rewriting(
             ManyTypes(kMany / 4),
             absl::StrCat(kGiven, Repeated("excl_output_by_types", "Op", "", kMany / 8), "}"));
       }},
      {"FeedsAndNodes",
       [] {
         std::string feeds = "step { ";
         for (int i = 0; i < kMany / 2; ++i)
           absl::StrAppend(&feeds, "feeds { name: 'p", i, "' dims: 4 } ");
         return Simulating(ManyPlaceholders(kMany), feeds + "}");
       }},
      {"TargetsAndNodes",
       [] {
         return Simulating(ManyPlaceholders(kMany),
                           absl::StrCat("step { ", Repeated("targets", "p", "", kMany / 2), "}"));
       }},
      {"Diff",
       [] {
         const std::string graph = Fan();
         return Comparing(graph, Rewritten(graph, absl::StrCat(kFanScope, "}")));
       }},
  };
  return cases;
}

class StopGapTest : public ::testing::TestWithParam<Case> {};

TEST_P(StopGapTest, IsShort) {
  const Call call = GetParam().make();
  const Watched whole = WatchCall(call, 0);
  ASSERT_EQ(whole.status.ok(), GetParam().succeeds) << whole.status;
  // Without loops that count their steps, there are no looks.
  EXPECT_GE(whole.steps, kNodes / 8);
  absl::Duration longest = whole.longest;
  for (int run = 1; run < kRuns && longest > kBound; ++run) {
    longest = std::min(longest, WatchCall(call, 0).longest);
  }
  RecordProperty("longest_us", static_cast<int>(absl::ToInt64Microseconds(longest)));
  EXPECT_LE(longest, kBound) << "between two of " << whole.looks << " looks";
}

TEST_P(StopGapTest, EndsWhereverItIsStopped) {
  const Call call = GetParam().make();
  const int64_t looks = WatchCall(call, 0).looks;
  for (int i = 0; i < kStops; ++i) {
    const int64_t stop_at = 1 + (looks - 1) * i / kStops;
    const Watched stopped = WatchCall(call, stop_at);
    EXPECT_THAT(stopped.status,
                FailsWith(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED, "stage"))
        << "at look " << stop_at << " of " << looks;
    EXPECT_LE(stopped.looks, stop_at + kMaxLooksAfter) << "of " << looks;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StopGapTest, ::testing::ValuesIn(Cases()), CaseName());

}  // namespace
}  // namespace spillway::testing
