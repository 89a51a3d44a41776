#include "tests/testing/random_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/data_types.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

// An output of a node under construction.
struct Port {
  int node = -1;
  int port = 0;
};

class Builder {
 public:
  Builder(uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {}

  GraphDef Run() {
    const int num_predicates = 1 + random_.Below(4);
    for (int i = 0; options_.conds && i < num_predicates; ++i) {
      predicates_.push_back({Add(absl::StrCat("pred", i), "Placeholder", {}, kBool, "dtype"), 0});
    }
    std::vector<Port> live = {Source(), Source()};
    Forward(options_.forward_ops, 0, absl::StrCat("net", random_.Below(2)), {}, &live);
    num_forward_ = graph_.node_size();
    Backward(live.back());
    Finish();
    return std::move(graph_);
  }

 private:
  // The data that a node's gradient needs.
  struct Record {
    enum Kind { kNone, kPlain, kSwitch, kMerge, kSplit } kind = kNone;
    std::vector<Port> inputs;  // Those that carry gradients.
    Port predicate;            // Of a Switch or Merge.
  };

  std::string Spell(Port port) {
    const std::string& name = graph_.node(port.node).name();
    if (port.port != 0) return absl::StrCat(name, ":", port.port);
    return random_.OneIn(6) ? absl::StrCat(name, ":0") : name;
  }

  int Add(const std::string& name, const std::string& op, const std::vector<Port>& inputs,
          int type = kFloat, const std::string& type_attr = "T") {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (Port input : inputs) node->add_input(Spell(input));
    (*node->mutable_attr())[type_attr].set_type(type);
    node->set_device(device_);
    records_.resize(graph_.node_size());
    return graph_.node_size() - 1;
  }

  std::string Fresh(const std::string& scope, const std::string& stem) {
    return absl::StrCat(scope.empty() ? "" : scope + "/", stem, "_", next_name_++);
  }

  void PickDevice() {
    static const std::vector<std::string>* const kDevices = new std::vector<std::string>{
        "/gpu:0", "/device:GPU:0", "/device:GPU:1", "/job:worker/task:1/device:GPU:0", "/cpu:0",
        ""};
    device_ = options_.devices ? random_.Pick(*kDevices) : "/gpu:0";
  }

  Port Source() {
    PickDevice();
    return {Add(Fresh("", "in"), "Placeholder", {}, kFloat, "dtype"), 0};
  }

  Port Variable(const std::string& scope) {
    const int variable = Add(Fresh(scope, "w"), "VariableV2", {}, kFloat, "dtype");
    variables_.push_back(variable);
    const std::string name = absl::StrCat(graph_.node(variable).name(), "/read");
    return {Add(name, "Identity", {{variable, 0}}), 0};
  }

  // Adds about `count` ops behind `*live`, whose last entry is the newest. The ops are alive
  // whenever all of `pivots` are (a branch's own Identity of its predicate); no pivots: always.
  void Forward(int count, int depth, const std::string& scope, const std::vector<int>& pivots,
               std::vector<Port>* live) {
    for (int i = 0; i < count; ++i) {
      if (random_.OneIn(5)) PickDevice();
      const Port x = random_.OneIn(3) ? random_.Pick(*live) : live->back();
      const int kind = random_.Below(10);
      if (options_.conds && depth < 3 && kind < 2 && count > 2) {
        live->push_back(Cond(count / 2, depth, scope, x, *live));
        i += count / 2;
      } else if (options_.loops && depth == 0 && kind == 2) {
        live->push_back(Loop(scope, x, random_.Pick(*live)));
      } else if (options_.variables && kind == 3) {
        live->push_back(Plain(scope, "MatMul", {x, Variable(scope)}));
      } else if (kind == 4) {
        live->push_back(Plain(scope, "AddV2", {x, random_.Pick(*live)}));
      } else if (kind == 5) {
        live->push_back(Plain(scope, "AddN", {x, x, random_.Pick(*live)}));
      } else if (kind == 6) {
        Port split = Split(scope, x, pivots);
        live->push_back(split);
        split.port = 1;
        live->push_back(split);
      } else {
        static const std::vector<std::string>* const kUnary = new std::vector<std::string>{
            "Relu", "Tanh", "Sigmoid", "Softplus", "Neg", "Square", "Identity", "Reshape"};
        const std::string& op = random_.Pick(*kUnary);
        live->push_back(Plain(scope, op == "Reshape" ? "Exp" : op, {x}));
      }
      // Control edges between nodes that are alive together.
      if (random_.OneIn(6)) {
        NodeDef* node = graph_.mutable_node(live->back().node);
        if (node->op() == "Merge" || node->op() == "Exit") continue;
        for (int copies = random_.OneIn(3) ? 2 : 1; copies > 0; --copies) {
          const int source = pivots.empty() ? x.node : pivots.back();
          node->add_input(absl::StrCat("^", graph_.node(source).name()));
        }
      }
    }
  }

  Port Plain(const std::string& scope, const std::string& op, const std::vector<Port>& inputs) {
    const int id = Add(Fresh(scope, op), op, inputs);
    if (op == "AddN") (*graph_.mutable_node(id)->mutable_attr())["N"].set_i(inputs.size());
    records_[id].kind = Record::kPlain;
    records_[id].inputs = inputs;
    return {id, 0};
  }

  Port Split(const std::string& scope, Port x, const std::vector<int>& pivots) {
    const int axis = Add(Fresh(scope, "axis"), "Const", {}, kInt32, "dtype");
    if (!pivots.empty()) {
      graph_.mutable_node(axis)->add_input(absl::StrCat("^", graph_.node(pivots.back()).name()));
    }
    const int id = Add(Fresh(scope, "Split"), "Split", {{axis, 0}, x});
    (*graph_.mutable_node(id)->mutable_attr())["num_split"].set_i(2);
    records_[id].kind = Record::kSplit;
    records_[id].inputs = {x};
    return {id, 0};
  }

  Port Switch(const std::string& scope, Port x, Port predicate) {
    const int id = Add(Fresh(scope, "Switch"), "Switch", {x, predicate});
    records_[id].kind = Record::kSwitch;
    records_[id].inputs = {x};
    records_[id].predicate = predicate;
    return {id, 0};
  }

  Port Merge(const std::string& scope, Port a, Port b, Port predicate) {
    const int id = Add(Fresh(scope, "Merge"), "Merge", {a, b});
    (*graph_.mutable_node(id)->mutable_attr())["N"].set_i(2);
    records_[id].kind = Record::kMerge;
    records_[id].inputs = {a, b};
    records_[id].predicate = predicate;
    return {id, 0};
  }

  // Adds a conditional on one of the predicates, which may also be that of another conditional,
  // even an enclosing one. Inside another branch the predicate is read through a Switch, as tf.cond
  // does, or directly.
  Port Cond(int count, int depth, const std::string& outer, Port x,
            const std::vector<Port>& around) {
    Port predicate = random_.Pick(predicates_);
    if (random_.OneIn(4)) {
      predicate = {Add(Fresh(outer, "pred_id"), "Identity", {predicate}, kBool), 0};
    }
    // With or without the part of a name by which TFLMS recognizes branches.
    const std::string scope = Fresh(outer, random_.OneIn(3) ? "cond/cond" : "branch");
    Port sides[2];
    for (int side = 0; side < 2; ++side) {
      const int pivot_switch = Add(Fresh(scope, "pivot"), "Switch", {predicate, predicate}, kBool);
      const int pivot = Add(Fresh(scope, side ? "switch_t" : "switch_f"), "Identity",
                            {{pivot_switch, side}}, kBool);
      std::vector<Port> live;
      const int entries = 1 + random_.Below(3);
      for (int i = 0; i < entries; ++i) {
        Port entry = Switch(scope, i == 0 ? x : random_.Pick(around), predicate);
        entry.port = side;
        live.push_back(entry);
      }
      // An empty branch passes its input through.
      Forward(random_.Below(count + 1), depth + 1, scope, {pivot}, &live);
      sides[side] = live.back();
    }
    return Merge(scope, sides[0], sides[1], predicate);
  }

  // while (v < limit) v = f(v, invariant).
  Port Loop(const std::string& outer, Port x, Port invariant) {
    const std::string scope = Fresh(outer, "while");
    const auto enter = [&](Port from, int type, bool constant, const std::string& under) {
      const int id = Add(Fresh(under, "Enter"), "Enter", {from}, type);
      auto& attr = *graph_.mutable_node(id)->mutable_attr();
      attr["frame_name"].set_s(scope);
      attr["is_constant"].set_b(constant);
      attr["parallel_iterations"].set_i(10);
      return Port{id, 0};
    };
    const Port entered = enter(x, kFloat, false, scope);
    const Port kept = enter(invariant, kFloat, true, scope);
    const int merge = Add(Fresh(scope, "Merge"), "Merge", {entered, entered});
    (*graph_.mutable_node(merge)->mutable_attr())["N"].set_i(2);
    const int less = Add(Fresh(scope, "Less"), "Less", {{merge, 0}, kept});
    const int loop_cond = Add(Fresh(scope, "LoopCond"), "LoopCond", {{less, 0}}, kBool);
    graph_.mutable_node(loop_cond)->mutable_attr()->clear();
    const int sw = Add(Fresh(scope, "Switch"), "Switch", {{merge, 0}, {loop_cond, 0}});
    const int body = Add(Fresh(scope, "Identity"), "Identity", {{sw, 1}});
    const int step = Add(Fresh(scope, "Tanh"), "Tanh", {{body, 0}});
    const int sum = Add(Fresh(scope, "AddV2"), "AddV2", {{step, 0}, kept});
    // A backward op inside the loop, as in the gradients of loops.
    const int inner =
        Add(Fresh("gradients/" + scope, "TanhGrad"), "TanhGrad", {{step, 0}, {sum, 0}});
    Port last = {inner, 0};
    if (random_.OneIn(2)) {
      // One that brings a forward tensor into the loop.
      const Port back = enter(invariant, kFloat, true, "gradients/" + scope);
      last = {Add(Fresh("gradients/" + scope, "AddV2"), "AddV2", {last, back}), 0};
    }
    Add(Fresh("gradients/" + scope, "Neg"), "Neg", {last});
    const int next = Add(Fresh(scope, "NextIteration"), "NextIteration", {{sum, 0}});
    graph_.mutable_node(merge)->set_input(1, graph_.node(next).name());
    return {Add(Fresh(scope, "Exit"), "Exit", {{sw, 0}}), 0};
  }

  // Reverse-mode differentiation, in the layout of tf.gradients.
  void Backward(Port loss) {
    PickDevice();
    // The incoming gradients by node and port.
    std::vector<std::vector<std::vector<Port>>> incoming(num_forward_,
                                                         std::vector<std::vector<Port>>(2));
    const Port seed = {Add(Fresh("gradients", "Fill"), "OnesLike", {loss}), 0};
    incoming[loss.node][loss.port].push_back(seed);
    for (int id = num_forward_ - 1; id >= 0; --id) {
      if (random_.OneIn(4)) device_ = graph_.node(id).device();
      const Record record = records_[id];
      const auto sum = [&](int port) {
        std::vector<Port>& grads = incoming[id][port];
        if (grads.size() < 2) return grads.empty() ? Port{} : grads[0];
        const int add = Add(GradName(id, "AddN"), "AddN", grads);
        (*graph_.mutable_node(add)->mutable_attr())["N"].set_i(grads.size());
        return Port{add, 0};
      };
      Port grads[2] = {sum(0), sum(1)};
      if (grads[0].node < 0 && grads[1].node < 0) {
        continue;
      }
      switch (record.kind) {
        case Record::kNone:
          MaybeUpdate(id, grads[0]);
          break;
        case Record::kPlain:
          for (const Port& input : record.inputs) {
            Send(input, PlainGrad(id, record, input, grads[0]), &incoming);
          }
          break;
        case Record::kSplit:
        case Record::kSwitch: {
          // A side without a gradient counts as zero.
          for (int port = 0; port < 2; ++port) {
            if (grads[port].node >= 0) continue;
            grads[port] = {Add(GradName(id, "zeros"), "ZerosLike", {{id, port}}), 0};
          }
          const bool merge = record.kind == Record::kSwitch;
          const int joined = Add(GradName(id, merge ? "cond_grad" : "concat"),
                                 merge ? "Merge" : "AddN", {grads[0], grads[1]});
          (*graph_.mutable_node(joined)->mutable_attr())["N"].set_i(2);
          Send(record.inputs[0], {joined, 0}, &incoming);
          break;
        }
        case Record::kMerge: {
          const int sw = Add(GradName(id, "cond_grad"), "Switch", {grads[0], record.predicate});
          Send(record.inputs[0], {sw, 0}, &incoming);
          Send(record.inputs[1], {sw, 1}, &incoming);
          break;
        }
      }
    }
  }

  std::string GradName(int id, const std::string& what) {
    return Fresh("gradients", absl::StrCat(graph_.node(id).name(), "_grad/", what));
  }

  Port PlainGrad(int id, const Record& record, Port input, Port grad) {
    const std::string& op = graph_.node(id).op();
    Port result = grad;
    if (op == "Relu" || op == "Tanh" || op == "Sigmoid") {
      result = {
          Add(GradName(id, op), op + "Grad",
              op == "Relu" ? std::vector<Port>{grad, {id, 0}} : std::vector<Port>{{id, 0}, grad}),
          0};
    } else if (op == "Softplus") {
      result = {Add(GradName(id, op), "SoftplusGrad", {grad, input}), 0};
    } else if (op == "MatMul" || op == "Square" || op == "Exp") {
      const Port other = op == "Exp" ? Port{id, 0} : record.inputs.back();
      result = {Add(GradName(id, op), "MatMul", {grad, other}), 0};
    } else if (op == "Neg") {
      result = {Add(GradName(id, op), "Neg", {grad}), 0};
    }
    if (random_.OneIn(8) && result.node != grad.node) {
      graph_.mutable_node(result.node)->add_input(absl::StrCat("^", graph_.node(grad.node).name()));
    }
    return result;
  }

  void Send(Port to, Port grad, std::vector<std::vector<std::vector<Port>>>* incoming) {
    (*incoming)[to.node][to.port].push_back(grad);
  }

  // For a variable's read: updates the variable.
  void MaybeUpdate(int id, Port grad) {
    if (graph_.node(id).op() != "Identity" || graph_.node(id).input_size() == 0) return;
    const int rate = Add(Fresh("train", "rate"), "Const", {}, kFloat, "dtype");
    const InputVariable variable = FindVariable(id);
    if (variable.node < 0) return;
    Add(Fresh("train", "update"), "ApplyGradientDescent", {{variable.node, 0}, {rate, 0}, grad});
  }
  using InputVariable = Port;
  InputVariable FindVariable(int read) const {
    for (int variable : variables_) {
      if (graph_.node(read).name() == graph_.node(variable).name() + "/read") {
        return {variable, 0};
      }
    }
    return {};
  }

  void Finish() {
    for (NodeDef& node : *graph_.mutable_node()) {
      if (!random_.OneIn(2) || node.op() == "VariableV2") continue;
      const int outputs =
          node.op() == "Switch" || node.op() == "Split" || node.op() == "Merge" ? 2 : 1;
      auto* list = (*node.mutable_attr())["_output_shapes"].mutable_list();
      for (int i = 0; i < outputs; ++i) {
        TensorShapeProto* shape = list->add_shape();
        shape->add_dim()->set_size(random_.OneIn(3) ? -1 : random_.Below(8));
        shape->add_dim()->set_size(random_.Below(1000));
      }
    }
    graph_.mutable_versions()->set_producer(1000 + random_.Below(600));
    if (random_.OneIn(4)) {
      graph_.mutable_library()->add_function()->mutable_signature()->set_name("f");
    }
    if (random_.OneIn(2)) {
      std::vector<NodeDef> nodes(graph_.node().begin(), graph_.node().end());
      random_.Shuffle(&nodes);
      graph_.mutable_node()->Clear();
      for (NodeDef& node : nodes) *graph_.add_node() = std::move(node);
    }
  }

  Random random_;
  const RandomGraphOptions options_;
  GraphDef graph_;
  std::vector<Record> records_;  // By node.
  std::vector<Port> predicates_;
  std::vector<int> variables_;
  std::string device_ = "/gpu:0";
  int next_name_ = 0;
  int num_forward_ = 0;
};

}  // namespace

GraphDef MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return Builder(seed, options).Run();
}

std::string RoughenBytes(const GraphDef& graph, Random* random) {
  const auto padding = [&] { return random->OneIn(8) ? 1 + random->Below(3) : 0; };
  std::string out;
  // Fields of the graph other than nodes: kept whole, between two nodes.
  GraphDef rest = graph;
  rest.clear_node();
  const std::string rest_bytes = rest.SerializeAsString();
  const int rest_at = random->Below(graph.node_size() + 1);
  for (int i = 0; i < graph.node_size(); ++i) {
    if (i == rest_at) out += rest_bytes;
    const NodeDef& node = graph.node(i);
    // Inputs keep their relative order; all other fields may be anywhere.
    std::vector<std::string> others;
    if (random->OneIn(10)) others.push_back(RawField(1, "overwritten"));
    others.push_back(RawField(1, node.name(), padding()));
    std::vector<std::string> loose = {RawField(2, node.op(), padding())};
    if (!node.device().empty()) loose.push_back(RawField(4, node.device(), padding()));
    std::vector<std::string> keys;
    for (const auto& [key, value] : node.attr()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) {
      const std::string value = node.attr().at(key).SerializeAsString();
      loose.push_back(RawField(5,
                               random->OneIn(8) ? RawField(2, value) + RawField(1, key)
                                                : RawField(1, key) + RawField(2, value),
                               padding()));
    }
    if (random->OneIn(6)) loose.push_back(RawField(77, "from the future", padding()));
    if (random->OneIn(10)) loose.push_back(RawGroup(78, RawNumber(1, 5)));
    if (random->OneIn(10)) loose.push_back(RawNumber(79, random->Next()));
    if (random->OneIn(2)) random->Shuffle(&loose);
    others.insert(others.end(), loose.begin(), loose.end());
    const size_t inputs_at = random->Below(static_cast<int>(others.size()) + 1);
    std::string bytes;
    for (size_t k = 0; k <= others.size(); ++k) {
      if (k == inputs_at) {
        for (const std::string& input : node.input()) bytes += RawField(3, input, padding());
      }
      if (k < others.size()) bytes += others[k];
    }
    out += RawField(1, bytes, padding());
  }
  if (rest_at == graph.node_size()) out += rest_bytes;
  if (random->OneIn(4)) out += RawField(99, "from the future");
  return out;
}

}  // namespace spillway::testing
