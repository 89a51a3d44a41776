#include "tests/testing/proto_graph.h"

#include <cstdlib>
#include <iostream>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/message_differencer.h"

namespace spillway::testing {
namespace {

[[noreturn]] void DieOfGraph(absl::string_view what, absl::string_view detail) {
  std::cerr << "test data: " << what << ": " << detail << std::endl;
  std::abort();
}

}  // namespace

GraphDef ReadProto(absl::string_view bytes) {
  GraphDef graph;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    DieOfGraph("protobuf cannot read a graph", "");
  }
  return graph;
}

std::string WriteProto(const GraphDef& graph) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    graph.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string BytesField(int field, const std::string& payload) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteTag(static_cast<uint32_t>(field << 3 | 2));
  coded.WriteVarint32(static_cast<uint32_t>(payload.size()));
  coded.WriteString(payload);
  coded.Trim();
  return bytes;
}

std::string WriteProtoBackward(const GraphDef& graph) {
  std::string bytes;
  for (const NodeDef& node : graph.node()) {
    NodeDef bare = node;
    bare.clear_attr();
    std::string text = bare.SerializeAsString();
    const std::map<std::string, AttrValue> sorted(node.attr().begin(), node.attr().end());
    for (auto it = sorted.rbegin(); it != sorted.rend(); ++it) {
      text +=
          BytesField(5, BytesField(1, it->first) + BytesField(2, it->second.SerializeAsString()));
    }
    bytes += BytesField(1, text);
  }
  GraphDef rest = graph;
  rest.clear_node();
  return bytes + rest.SerializeAsString();
}

InputName SplitInput(const std::string& input) {
  InputName name;
  name.node = input;
  if (!input.empty() && input[0] == '^') {
    name.control = true;
    name.node = input.substr(1);
  } else if (const size_t colon = input.rfind(':'); colon != std::string::npos) {
    name.port = std::atoi(input.c_str() + colon + 1);
    name.node = input.substr(0, colon);
  }
  return name;
}

std::map<std::string, int> IndexNodes(const GraphDef& graph) {
  std::map<std::string, int> index;
  for (int i = 0; i < graph.node_size(); ++i) index[graph.node(i).name()] = i;
  return index;
}

bool IsAcyclic(const GraphDef& graph) {
  const std::map<std::string, int> index = IndexNodes(graph);
  std::vector<std::vector<int>> readers(graph.node_size());
  std::vector<int> waiting(graph.node_size(), 0);
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& input : graph.node(i).input()) {
      const auto producer = index.find(SplitInput(input).node);
      if (producer == index.end()) return false;
      const bool closes_loop = ends_with(graph.node(i).op(), "Merge") &&
                               ends_with(graph.node(producer->second).op(), "NextIteration");
      if (closes_loop) continue;
      readers[producer->second].push_back(i);
      ++waiting[i];
    }
  }
  std::vector<int> done;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (waiting[i] == 0) done.push_back(i);
  }
  for (size_t i = 0; i < done.size(); ++i) {
    for (int reader : readers[done[i]]) {
      if (--waiting[reader] == 0) done.push_back(reader);
    }
  }
  return static_cast<int>(done.size()) == graph.node_size();
}

std::string Difference(const GraphDef& expected, const GraphDef& actual) {
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  return differencer.Compare(expected, actual) ? "" : report;
}

GraphDef ApplyPatch(const GraphDef& graph, const v1::GraphPatch& patch) {
  GraphDef result = graph;
  std::map<std::string, int> index = IndexNodes(result);
  const auto check_input = [&](const std::string& input) {
    // "A new node reads only original nodes and new nodes before it."
    if (index.count(SplitInput(input).node) == 0) DieOfGraph("a patch reads a missing node", input);
  };
  for (const v1::NewNode& added : patch.new_nodes()) {
    for (const std::string& input : added.inputs()) check_input(input);
    if (!index.emplace(added.name(), result.node_size()).second) {
      DieOfGraph("a patch adds a node twice", added.name());
    }
    NodeDef* node = result.add_node();
    node->set_name(added.name());
    node->set_op(added.op());
    *node->mutable_input() = added.inputs();
    node->set_device(added.device());
    for (const v1::NodeAttribute& attribute : added.attributes()) {
      if (!(*node->mutable_attr())[attribute.name()].ParseFromString(attribute.value())) {
        DieOfGraph("a patch has an attribute that cannot be read", attribute.name());
      }
    }
  }
  for (const v1::RewiredInput& rewired : patch.rewired_inputs()) {
    check_input(rewired.new_input());
    const auto it = index.find(rewired.node());
    if (it == index.end()) DieOfGraph("a patch rewires a missing node", rewired.node());
    NodeDef* node = result.mutable_node(it->second);
    if (rewired.input_index() >= node->input_size() ||
        node->input(rewired.input_index()) != rewired.old_input()) {
      DieOfGraph("a patch rewires an input that is not there", rewired.DebugString());
    }
    node->set_input(rewired.input_index(), rewired.new_input());
  }
  for (const v1::AddedControl& control : patch.added_controls()) {
    check_input(control.source());
    const auto it = index.find(control.node());
    if (it == index.end()) DieOfGraph("a patch holds back a missing node", control.node());
    result.mutable_node(it->second)->add_input("^" + control.source());
  }
  return result;
}

GraphDef WithoutAttr(const GraphDef& graph, const std::string& key) {
  GraphDef result = graph;
  for (NodeDef& node : *result.mutable_node()) node.mutable_attr()->erase(key);
  return result;
}

}  // namespace spillway::testing
