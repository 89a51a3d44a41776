#include "tests/testing/recorded_v2.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/dtype.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {
namespace {

using nlohmann::json;

constexpr char kCpuDevice[] = "/cpu:0";

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::abort();
}

// The GraphDef being edited, by name. Node pointers stay valid: fields of messages are.
class Editor {
 public:
  explicit Editor(const std::string& bytes) {
    if (!graph_.ParseFromString(bytes)) Die("not a GraphDef");
    for (NodeDef& node : *graph_.mutable_node()) by_name_[node.name()] = &node;
  }

  NodeDef* Find(const std::string& name) {
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) Die(absl::StrCat("there is no node ", name));
    return it->second;
  }

  NodeDef* AddSwapNode(const std::string& name, const std::string& input) {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op("Identity");
    node->set_device(kCpuDevice);
    // The graphs that tests apply this to swap nothing else.
    (*node->mutable_attr())["T"].set_type(core::kDtFloat32);
    node->add_input(input);
    by_name_[name] = node;
    return node;
  }

  std::string Serialize() const { return graph_.SerializeAsString(); }

 private:
  GraphDef graph_;
  std::map<std::string, NodeDef*> by_name_;
};

}  // namespace

std::string ApplyRecordedV2(const std::string& graph_def, const std::string& name,
                            const std::string& set) {
  const json record = json::parse(ReadTestGraph(absl::StrCat(name, "/v2_swaps.json"))).at(set);
  Editor editor(graph_def);
  for (const auto& [tensor, swap] : record.at("swaps").items()) {
    const std::string swap_out = swap.at("swap_out").get<std::string>();
    editor.AddSwapNode(swap_out, tensor);
    for (const json& swap_in : swap.at("swap_ins")) {
      const std::string swap_in_name = swap_in.at("name").get<std::string>();
      NodeDef* node = editor.AddSwapNode(swap_in_name, swap_out);
      for (const json& trigger : swap_in.at("triggers")) {
        node->add_input(absl::StrCat("^", trigger.get<std::string>()));
      }
      for (const json& consumer : swap_in.at("consumers")) {
        editor.Find(consumer.at(0).get<std::string>())
            ->set_input(consumer.at(1).get<int>(), swap_in_name);
      }
    }
  }
  for (const json& control : record.at("controls")) {
    editor.Find(control.at(1).get<std::string>())
        ->add_input(absl::StrCat("^", control.at(0).get<std::string>()));
  }
  return editor.Serialize();
}

}  // namespace spillway::testing
