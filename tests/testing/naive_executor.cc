#include "tests/testing/naive_executor.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "tests/testing/proto_graph.h"

namespace spillway::testing {
namespace {

uint64_t Mix(uint64_t hash, uint64_t more) {
  hash ^= more + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

uint64_t HashText(const std::string& text) {
  uint64_t hash = 1469598103934665603u;  // FNV-1a.
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

bool Forwards(const std::string& op) {
  return op == "Identity" || op == "_CopyFromGpuToHost" || op == "_CopyFromHostToGpu" ||
         op == "LoopCond";
}

class Executor {
 public:
  Executor(const GraphDef& graph, const Truths& truths, const Originals& originals)
      : graph_(graph), truths_(truths), originals_(originals), index_(IndexNodes(graph)) {}

  std::map<std::string, Outcome> Run() {
    Link();
    std::vector<int> ready;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (waiting_[i] == 0) ready.push_back(i);
    }
    outcomes_.resize(graph_.node_size());
    for (size_t i = 0; i < ready.size(); ++i) {
      outcomes_[ready[i]] = RunNode(ready[i]);
      for (int reader : readers_[ready[i]]) {
        if (--waiting_[reader] == 0) ready.push_back(reader);
      }
    }
    if (static_cast<int>(ready.size()) != graph_.node_size()) {
      std::cerr << "the naive executor runs no cycles" << std::endl;
      std::abort();
    }
    std::map<std::string, Outcome> by_name;
    for (int i = 0; i < graph_.node_size(); ++i) {
      by_name[graph_.node(i).name()] = std::move(outcomes_[i]);
    }
    return by_name;
  }

 private:
  struct Edge {
    int producer;
    int port;
    bool control;
  };

  void Link() {
    inputs_.resize(graph_.node_size());
    readers_.resize(graph_.node_size());
    waiting_.assign(graph_.node_size(), 0);
    num_outputs_.assign(graph_.node_size(), 1);
    for (int i = 0; i < graph_.node_size(); ++i) {
      for (const std::string& input : graph_.node(i).input()) {
        const InputName name = SplitInput(input);
        const int producer = index_.at(name.node);
        inputs_[i].push_back({producer, name.port, name.control});
        readers_[producer].push_back(i);
        ++waiting_[i];
        num_outputs_[producer] = std::max(num_outputs_[producer], name.port + 1);
      }
    }
  }

  Outcome RunNode(int id) const {
    const NodeDef& node = graph_.node(id);
    Outcome outcome;
    bool dead_input = false, dead_control = false, live_input = false;
    size_t first_live = 0;
    for (const Edge& edge : inputs_[id]) {
      const Outcome& source = outcomes_[edge.producer];
      if (edge.control) {
        dead_control = dead_control || source.dead;
        continue;
      }
      const Outcome::Output& output = source.outputs[edge.port];
      if (output.dead) {
        dead_input = true;
      } else if (!live_input) {
        live_input = true;
        first_live = outcome.inputs.size();
      }
      outcome.inputs.push_back(output.dead ? 0 : output.value);
    }
    const bool merge = node.op() == "Merge" || node.op() == "RefMerge";
    outcome.dead = merge ? !live_input : dead_input || dead_control;
    outcome.outputs.resize(num_outputs_[id]);
    for (size_t port = 0; port < outcome.outputs.size(); ++port) {
      Outcome::Output& output = outcome.outputs[port];
      output.dead = outcome.dead;
      if (output.dead) continue;
      if (merge) {
        output.value = port == 0 ? outcome.inputs[first_live] : first_live;
      } else if ((node.op() == "Switch" || node.op() == "RefSwitch") &&
                 outcome.inputs.size() >= 2) {
        output.value = outcome.inputs[0];
        output.dead = (outcome.inputs[1] & 1) != port;
      } else if (Forwards(node.op()) && !outcome.inputs.empty()) {
        output.value = outcome.inputs[0];
      } else {
        const auto original = originals_.find(node.name());
        const std::string& name = original == originals_.end() ? node.name() : original->second;
        output.value = Mix(Mix(HashText(node.op()), HashText(name)), port);
        for (uint64_t input : outcome.inputs) output.value = Mix(output.value, input);
      }
    }
    const auto truth = truths_.find(node.name());
    if (truth != truths_.end() && !outcome.dead) outcome.outputs[0].value = truth->second;
    return outcome;
  }

  const GraphDef& graph_;
  const Truths& truths_;
  const Originals& originals_;
  const std::map<std::string, int> index_;
  std::vector<std::vector<Edge>> inputs_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> waiting_;
  std::vector<int> num_outputs_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

bool operator==(const Outcome& a, const Outcome& b) {
  if (a.dead != b.dead) return false;
  if (a.dead) return true;
  const size_t ports = std::min(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < ports; ++i) {
    if (a.outputs[i].dead != b.outputs[i].dead) return false;
    if (!a.outputs[i].dead && a.outputs[i].value != b.outputs[i].value) return false;
  }
  return a.inputs == b.inputs;
}

std::map<std::string, Outcome> Execute(const GraphDef& graph, const Truths& truths,
                                       const Originals& originals) {
  return Executor(graph, truths, originals).Run();
}

std::vector<std::string> FindPredicates(const GraphDef& graph) {
  const std::map<std::string, int> index = IndexNodes(graph);
  std::set<std::string> found;
  for (const NodeDef& node : graph.node()) {
    if (node.op() != "Switch" || node.input_size() < 2) continue;
    InputName name = SplitInput(node.input(1));
    for (int hop = 0; hop < graph.node_size(); ++hop) {
      const NodeDef& source = graph.node(index.at(name.node));
      if (source.op() != "Identity" || source.input_size() == 0) break;
      const InputName next = SplitInput(source.input(0));
      if (next.control) break;
      name = next;
    }
    if (name.port == 0) found.insert(name.node);
  }
  return {found.begin(), found.end()};
}

std::vector<Truths> AllTruths(const GraphDef& graph) {
  const std::vector<std::string> predicates = FindPredicates(graph);
  std::vector<Truths> all(size_t{1} << predicates.size());
  for (size_t bits = 0; bits < all.size(); ++bits) {
    for (size_t i = 0; i < predicates.size(); ++i) all[bits][predicates[i]] = bits >> i & 1;
  }
  return all;
}

std::string CompareOutcomes(const std::map<std::string, Outcome>& before,
                            const std::map<std::string, Outcome>& after) {
  for (const auto& [name, was] : before) {
    const auto it = after.find(name);
    if (it == after.end()) return "node " + name + " is gone";
    if (was == it->second) continue;
    if (was.dead != it->second.dead) {
      return "node " + name + (was.dead ? " was dead, is alive now" : " was alive, is dead now");
    }
    return "node " + name + (was.inputs == it->second.inputs ? " gives" : " reads") +
           " another value than before";
  }
  return "";
}

std::string CompareAllOutcomes(const GraphDef& before, const GraphDef& after,
                               const Originals& originals) {
  for (const Truths& truths : AllTruths(before)) {
    std::string difference =
        CompareOutcomes(Execute(before, truths), Execute(after, truths, originals));
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace spillway::testing
