#include "tests/testing/small_dags.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/data_types.h"

namespace spillway::testing {
namespace {

// The kind of a node.
enum NodeKind { kForward, kBackward, kSwitchP, kSwitchQ, kMerge };
// How a node reads an earlier one. Only a Switch has output 1.
enum EdgeKind { kNone, kData, kControlEdge, kDataOfOutput1 };

}  // namespace

uint64_t SmallDags::count() const {
  uint64_t product = 1;
  for (int i = 0; i < nodes; ++i) product *= node_kinds();
  for (int i = 0; i < nodes * (nodes - 1) / 2; ++i) product *= edge_kinds();
  return product;
}

GraphDef SmallDags::Make(uint64_t number) const {
  const auto take = [&number](int radix) {
    const int digit = static_cast<int>(number % radix);
    number /= radix;
    return digit;
  };
  GraphDef graph;
  if (control_flow) {
    for (const char* name : {"p", "q"}) {
      NodeDef* node = graph.add_node();
      node->set_name(name);
      node->set_op("Placeholder");
      (*node->mutable_attr())["dtype"].set_type(kBool);
    }
  }
  const int first = graph.node_size();
  std::vector<NodeKind> kinds;
  std::vector<std::string> names;
  for (int j = 0; j < nodes; ++j) {
    const auto kind = static_cast<NodeKind>(take(node_kinds()));
    kinds.push_back(kind);
    names.push_back(absl::StrCat(kind == kBackward ? "gradients/n" : "n", j));
  }
  for (int j = 0; j < nodes; ++j) {
    NodeDef* node = graph.add_node();
    node->set_name(names[j]);
    node->set_device("/gpu:0");
    std::vector<std::string> controls;
    for (int i = 0; i < j; ++i) {
      int edge = take(edge_kinds());
      // Without control edges, the third kind is an output 1.
      if (!control_edges && edge == kControlEdge) edge = kDataOfOutput1;
      if (edge == kNone) continue;
      if (edge == kControlEdge) {
        controls.push_back(absl::StrCat("^", names[i]));
      } else if (edge == kData) {
        node->add_input(names[i]);
      } else {
        const bool has_two = graph.node(first + i).op() == "Switch";
        node->add_input(has_two ? absl::StrCat(names[i], ":1") : names[i]);
      }
    }
    const int num_data = node->input_size();
    auto& attr = *node->mutable_attr();
    attr["T"].set_type(kFloat);
    if (num_data == 0) {
      node->set_op("Placeholder");
      attr.clear();
      attr["dtype"].set_type(kFloat);
    } else if (kinds[j] == kSwitchP || kinds[j] == kSwitchQ) {
      node->set_op("Switch");
      while (node->input_size() > 1) node->mutable_input()->RemoveLast();
      node->add_input(kinds[j] == kSwitchP ? "p" : "q");
    } else if (kinds[j] == kMerge || num_data > 1) {
      node->set_op(kinds[j] == kMerge ? "Merge" : "AddN");
      attr["N"].set_i(num_data);
    } else {
      node->set_op("Relu");
    }
    for (const std::string& control : controls) node->add_input(control);
  }
  return graph;
}

}  // namespace spillway::testing
