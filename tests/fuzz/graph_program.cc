#include "tests/fuzz/graph_program.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spillway::testing {
namespace {

constexpr int kMaxNodes = 64;
// An executor runs each graph for all of their truth values.
constexpr int kMaxPredicates = 3;
constexpr int kFloat = 1, kInt32 = 3, kBool = 10, kResource = 20, kFloatRef = 101;

struct Port {
  int node = 0;
  int port = 0;
};

// An op, how many data inputs it has (kSome: one to four), its outputs and its type attribute.
constexpr int kSome = -1;
struct OpKind {
  const char* op;
  int inputs;
  int outputs;
  const char* type_attr;
  int type = kFloat;
};
constexpr OpKind kSources[] = {
    {"Placeholder", 0, 1, "dtype"},   {"Const", 0, 1, "dtype"},
    {"VariableV2", 0, 1, "dtype"},    {"Placeholder", 0, 1, "dtype", kBool},
    {"Const", 0, 1, "dtype", kInt32}, {"NoOp", 0, 0, ""},
    {"VarHandleOp", 0, 1, "dtype"},   {"RandomUniform", 1, 1, "dtype"},
};
constexpr OpKind kOps[] = {
    {"Relu", 1, 1, "T"},
    {"Tanh", 1, 1, "T"},
    {"Neg", 1, 1, "T"},
    {"Identity", 1, 1, "T"},
    {"MatMul", 2, 1, "T"},
    {"AddV2", 2, 1, "T"},
    {"Mul", 2, 1, "T"},
    {"AddN", kSome, 1, "T"},
    {"Reshape", 2, 1, "T"},
    {"Split", 2, 2, "T"},
    {"ReluGrad", 2, 1, "T"},
    {"TanhGrad", 2, 1, "T"},
    {"MyOwnOp", kSome, 2, "T"},
    {"Shape", 1, 1, "T"},
    {"StopGradient", 1, 1, "T"},
    {"ApplyGradientDescent", 3, 1, "T"},
    {"Assign", 2, 1, "T"},
    {"ReadVariableOp", 1, 1, "dtype"},
    {"ResourceApplyGradientDescent", 3, 0, "T"},
    {"MyOwnSink", kSome, 0, "T"},
};
// Often, so that a backward part comes about.
const char* const kScopes[] = {"",       "gradients/",         "gradients/", "net/",
                               "train/", "gradients/a/while/", "cond/cond/", "net/a/b/"};
const char* const kDevices[] = {"/gpu:0",
                                "",
                                "/device:GPU:1",
                                "/cpu:0",
                                "/job:worker/task:1/device:GPU:0",
                                "/device:GPU:0",
                                "/job:w/replica:0/task:2/gpu:3",
                                "/device:TPU:0"};
const char* const kOddDevices[] = {
    "/gpu:x", "gpu",        "/device:GPU:99999999999", "//", "/job:x y/gpu:0", "/job:/task:0",
    "/gpu:*", "/device:GPU"};
const char* const kOddNames[] = {"",
                                 "a b",
                                 "^a",
                                 "a:1",
                                 "\xc3\xa9",
                                 "_x",
                                 "lms/swapout_a_0",
                                 "lms/swapin_a_0",
                                 "a/",
                                 ".",
                                 "(",
                                 "while/while_context"};
constexpr int64_t kOddNumbers[] = {0,
                                   -1,
                                   1,
                                   2,
                                   1 << 20,
                                   std::numeric_limits<int32_t>::max(),
                                   int64_t{1} << 31,
                                   int64_t{1} << 62,
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};

class Builder {
 public:
  explicit Builder(Choices* choices) : choices_(*choices) {}

  GraphProgram Run() {
    Add(kSources[0], "");
    while (!choices_.done() && graph().node_size() < kMaxNodes) Step();
    for (const auto& [a, b] : moves_) graph().mutable_node()->SwapElements(a, b);
    return std::move(program_);
  }

 private:
  GraphDef& graph() { return program_.graph; }
  NodeDef& Newest() { return *graph().mutable_node(graph().node_size() - 1); }
  NodeDef& AnyNode() { return *graph().mutable_node(choices_.Below(graph().node_size())); }

  template <typename T, size_t n>
  const T& PickOf(const T (&items)[n]) {
    return items[choices_.Below(static_cast<int>(n))];
  }

  void Step() {
    switch (choices_.Below(24)) {
      case 0:
        Add(PickOf(kSources), Scope());
        break;
      case 1:
        Switch();
        break;
      case 2:
        Merge();
        break;
      case 3:
        Loop();
        break;
      case 4:
        Control();
        break;
      case 5:
        device_ = PickOf(kDevices);
        break;
      case 6:
        Colocate();
        break;
      case 7:
        Shapes();
        break;
      case 8:
        Function();
        break;
      case 9:
        if (choices_.OneIn(4)) Odd();
        break;
      case 10:
        if (choices_.OneIn(4)) LooseLoopOp();
        if (choices_.OneIn(4)) Callee();
        break;
      case 11:
        moves_.emplace_back(graph().node_size() - 1, choices_.Below(graph().node_size()));
        break;
      default:
        Add(PickOf(kOps), Scope());
    }
  }

  std::string Scope() { return PickOf(kScopes); }

  // A tensor of an earlier node; mostly one of the newest, so that chains grow.
  Port AnyTensor() {
    if (tensors_.empty()) return {0, 0};
    const int count = static_cast<int>(tensors_.size());
    const int back = choices_.Below(256);
    return back < 128 ? tensors_[count - 1 - back % std::min(count, 4)] : tensors_[back % count];
  }

  std::string Spell(Port port) {
    const std::string& name = graph().node(port.node).name();
    return port.port == 0 ? name : absl::StrCat(name, ":", port.port);
  }

  // The number of a new node.
  int AddNode(const std::string& op, const std::string& scope, const std::vector<Port>& inputs) {
    const int number = graph().node_size();
    NodeDef* node = graph().add_node();
    node->set_name(absl::StrCat(scope, op, "_", number));
    node->set_op(op);
    node->set_device(device_);
    for (Port input : inputs) node->add_input(Spell(input));
    return number;
  }

  AttrValue& Attr(const std::string& key) { return (*Newest().mutable_attr())[key]; }

  int Add(const OpKind& kind, const std::string& scope) {
    const int count = kind.inputs == kSome ? 1 + choices_.Below(4) : kind.inputs;
    std::vector<Port> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back(AnyTensor());
    const int number = AddNode(kind.op, scope, inputs);
    if (*kind.type_attr != '\0') Attr(kind.type_attr).set_type(kind.type);
    if (absl::string_view(kind.op) == "AddN") Attr("N").set_i(count);
    if (absl::string_view(kind.op) == "Split") Attr("num_split").set_i(kind.outputs);
    for (int port = 0; port < kind.outputs; ++port) tensors_.push_back({number, port});
    if (kind.type == kBool && predicates_.size() < kMaxPredicates) {
      predicates_.push_back({number, 0});
    }
    return number;
  }

  Port Predicate() {
    if (predicates_.empty()) Add(kSources[3], "");
    return predicates_[choices_.Below(static_cast<int>(predicates_.size()))];
  }

  void Switch() {
    const Port predicate = Predicate();
    const Port data = choices_.OneIn(4) ? predicate : AnyTensor();
    const int number = AddNode("Switch", Scope(), {data, predicate});
    Attr("T").set_type(kFloat);
    tensors_.push_back({number, 0});
    tensors_.push_back({number, 1});
  }

  void Merge() {
    const int number = AddNode("Merge", Scope(), {AnyTensor(), AnyTensor()});
    Attr("T").set_type(kFloat);
    Attr("N").set_i(2);
    tensors_.push_back({number, 0});
  }

  int Enter(Port from, const std::string& scope, const std::string& frame, bool constant) {
    const int number = AddNode("Enter", scope, {from});
    Attr("T").set_type(kFloat);
    Attr("frame_name").set_s(frame);
    Attr("is_constant").set_b(constant);
    Attr("parallel_iterations").set_i(10);
    return number;
  }

  int AddTyped(const std::string& op, const std::string& scope, const std::vector<Port>& inputs,
               int type = kFloat) {
    const int number = AddNode(op, scope, inputs);
    if (op != "LoopCond") Attr("T").set_type(type);
    return number;
  }

  // while (v < limit) v = f(v, limit), as tf.while_loop makes it. Outer nodes can read inner ones,
  // which TensorFlow would not run.
  void Loop() {
    const std::string scope = absl::StrCat(Scope(), "while_", graph().node_size(), "/");
    const int entered = Enter(AnyTensor(), scope, scope, false);
    const int limit = Enter(AnyTensor(), scope, scope, true);
    const int merge = AddTyped("Merge", scope, {{entered, 0}, {entered, 0}});
    Attr("N").set_i(2);
    const int less = AddTyped("Less", scope, {{merge, 0}, {limit, 0}});
    const int cond = AddTyped("LoopCond", scope, {{less, 0}});
    const int sw = AddTyped("Switch", scope, {{merge, 0}, {cond, 0}});
    int body = AddTyped("Identity", scope, {{sw, 1}});
    for (int length = choices_.Below(4); length > 0; --length) {
      body = AddTyped(choices_.OneIn(2) ? "AddV2" : "MatMul", scope, {{body, 0}, {limit, 0}});
      if (choices_.OneIn(8)) tensors_.push_back({body, 0});
    }
    const int next = AddTyped("NextIteration", scope, {{body, 0}});
    graph().mutable_node(merge)->set_input(1, graph().node(next).name());
    const int exit = AddTyped("Exit", scope, {{sw, 0}});
    tensors_.push_back({exit, 0});
  }

  // Enter, Exit or NextIteration by itself, or an edge from a NextIteration to any Merge.
  void LooseLoopOp() {
    switch (choices_.Below(4)) {
      case 0:
        tensors_.push_back(
            {Enter(AnyTensor(), Scope(), absl::StrCat("f", choices_.Below(3)), choices_.OneIn(2)),
             0});
        break;
      case 1:
        tensors_.push_back({AddTyped("Exit", Scope(), {AnyTensor()}), 0});
        break;
      case 2:
        tensors_.push_back({AddTyped("NextIteration", Scope(), {AnyTensor()}), 0});
        break;
      default: {
        NodeDef& merge = AnyNode();
        const NodeDef& next = AnyNode();
        if (merge.op() != "Merge" || next.op() != "NextIteration") return;
        merge.set_input(choices_.Below(2), next.name());
      }
    }
  }

  // A control edge to the newest node, which nothing reads yet, so there is no cycle.
  void Control() {
    const int newest = graph().node_size() - 1;
    if (newest == 0) return;
    Newest().add_input(absl::StrCat("^", graph().node(choices_.Below(newest)).name()));
  }

  void Colocate() {
    (*AnyNode().mutable_attr())["_class"].mutable_list()->add_s(
        absl::StrCat("loc:@", AnyNode().name()));
  }

  void Shapes() {
    const int number = choices_.Below(graph().node_size());
    auto& attrs = *graph().mutable_node(number)->mutable_attr();
    if (choices_.OneIn(2)) {
      Shape(attrs["shape"].mutable_shape());
      return;
    }
    // One for each output: for an op unknown to Spillway, this is their number.
    const auto count = std::count_if(tensors_.begin(), tensors_.end(),
                                     [number](Port tensor) { return tensor.node == number; });
    auto* shapes = attrs["_output_shapes"].mutable_list();
    while (shapes->shape_size() < count) Shape(shapes->add_shape());
  }

  void Shape(TensorShapeProto* shape) {
    shape->clear_dim();
    shape->set_unknown_rank(choices_.OneIn(8));
    for (int rank = choices_.Below(4); rank > 0 && !shape->unknown_rank(); --rank) {
      const bool large = choices_.OneIn(8);
      if (large) program_.odd = true;
      shape->add_dim()->set_size(large ? PickOf(kOddNumbers) : choices_.Below(300) - 1);
    }
  }

  void Function() {
    FunctionDef* function = graph().mutable_library()->add_function();
    const std::string name = choices_.OneIn(4) ? "" : absl::StrCat("fn_", choices_.Below(3));
    function->mutable_signature()->set_name(name);
    for (int count = choices_.Below(3); count > 0; --count) {
      *function->add_node_def() = AnyNode();
    }
    if (choices_.OneIn(2)) {
      const int number = AddNode("PartitionedCall", Scope(), {AnyTensor()});
      Attr("f").mutable_func()->set_name(name);
      Attr("Tin").mutable_list()->add_type(kFloat);
      Attr("Tout").mutable_list()->add_type(kFloat);
      tensors_.push_back({number, 0});
    }
  }

  // A function that can be inlined, with things that a graph's own nodes cannot have: an invalid
  // device, very many results, another function's call by name.
  void Callee() {
    program_.odd = true;  // The executor does not run calls.
    constexpr int kManyResults = 3000;
    FunctionDef* function = graph().mutable_library()->add_function();
    const std::string name = absl::StrCat("callee_", callees_++);
    OpDef& signature = *function->mutable_signature();
    signature.set_name(name);
    auto* argument = signature.add_input_arg();
    argument->set_name("a");
    argument->set_type(kFloat);
    NodeDef* node = function->add_node_def();
    node->set_name("r");
    const bool calls = callees_ > 1 && choices_.OneIn(2);
    node->set_op(calls ? absl::StrCat("callee_", choices_.Below(callees_)) : "Relu");
    node->add_input("a");
    if (!calls) (*node->mutable_attr())["T"].set_type(kFloat);
    node->set_device(choices_.OneIn(2) ? PickOf(kOddDevices) : PickOf(kDevices));
    const int results = choices_.OneIn(4) ? kManyResults : 1 + choices_.Below(3);
    for (int i = 0; i < results; ++i) {
      auto* result = signature.add_output_arg();
      result->set_name(absl::StrCat("o", i));
      result->set_type(kFloat);
      (*function->mutable_ret())[result->name()] =
          calls ? absl::StrCat("r:o", choices_.Below(results), ":0") : "r:activations:0";
    }
    const bool by_name = choices_.OneIn(2);
    const int number = AddNode(by_name ? name : "PartitionedCall", Scope(), {AnyTensor()});
    if (!by_name) {
      Attr("f").mutable_func()->set_name(name);
      Attr("Tin").mutable_list()->add_type(kFloat);
      for (int i = 0; i < results; ++i) Attr("Tout").mutable_list()->add_type(kFloat);
    }
    tensors_.push_back({number, choices_.Below(results)});
  }

  void Odd() {
    program_.odd = true;
    NodeDef& node = AnyNode();
    switch (choices_.Below(13)) {
      case 0:
        node.set_name(PickOf(kOddNames));
        break;
      case 1:
        node.set_name(AnyNode().name());
        break;
      case 2:
        node.set_op(choices_.OneIn(2) ? "" : PickOf(kOddNames));
        break;
      case 3:
        node.set_op(PickOf(kOps).op);
        break;
      case 4:
        node.set_device(PickOf(kOddDevices));
        break;
      case 5:
        (*node.mutable_attr())[""].set_i(PickOf(kOddNumbers));
        break;
      case 6:
        for (const char* key : {"N", "num_split", "T", "dtype"}) {
          if (node.attr().count(key) > 0) (*node.mutable_attr())[key].set_i(PickOf(kOddNumbers));
        }
        break;
      case 7:
        for (const char* key : {"T", "dtype"}) {
          if (node.attr().count(key) == 0) continue;
          const int types[] = {kInt32, kBool, kResource, kFloatRef, 0, -1, 7, 999};
          (*node.mutable_attr())[key].set_type(PickOf(types));
        }
        break;
      case 8:  // A port, small enough for the executor.
        if (node.input_size() == 0) return;
        node.set_input(choices_.Below(node.input_size()),
                       absl::StrCat(AnyNode().name(), ":", choices_.Below(6)));
        break;
      case 9:
        node.add_input(choices_.OneIn(2) ? AnyNode().name() : PickOf(kOddNames));
        break;
      case 11:
        for (int i = choices_.OneIn(4) ? 10'001 : 500; i > 0; --i) {
          (*node.mutable_attr())[absl::StrCat("attr", i)].set_i(1);
        }
        break;
      case 10:  // Mostly a cycle.
        node.add_input(absl::StrCat("^", AnyNode().name()));
        break;
      default:
        node.mutable_attr()->clear();
    }
  }

  Choices& choices_;
  GraphProgram program_;
  std::string device_ = "/gpu:0";
  int callees_ = 0;
  std::vector<std::pair<int, int>> moves_;  // At the end: until then a node's number is its place.
  std::vector<Port> tensors_;
  std::vector<Port> predicates_;
};

}  // namespace

GraphProgram BuildGraph(Choices* choices) { return Builder(choices).Run(); }

}  // namespace spillway::testing
