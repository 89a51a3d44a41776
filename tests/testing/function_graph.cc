#include "tests/testing/function_graph.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/graph/dtype.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/proto_graph.h"

namespace spillway::testing {
namespace {

std::pair<std::string, std::string> Cut(absl::string_view text, char at) {
  const size_t position = text.find(at);
  if (position == absl::string_view::npos) {
    std::cerr << "no '" << at << "' in " << text << "\n";
    std::abort();
  }
  return {std::string(text.substr(0, position)), std::string(text.substr(position + 1))};
}

void ReadArgument(absl::string_view text, OpDef::ArgDef* argument) {
  const auto [name, type] = Cut(text, ':');
  argument->set_name(name);
  if (type[0] == '$') {
    argument->set_type_attr(type.substr(1));
  } else {
    argument->set_type(core::DataTypeFromName(type));
  }
}

void MakeFunctionAttrs(NodeDef* node) {
  for (auto& [key, value] : *node->mutable_attr()) {
    if (key == "branches") {
      for (const std::string& name : value.list().s()) {
        value.mutable_list()->add_func()->set_name(name);
      }
      value.mutable_list()->clear_s();
    } else if ((key == "f" || key == "then_branch" || key == "else_branch" || key == "cond" ||
                key == "body") &&
               value.has_s()) {
      const std::string name = value.s();
      value.mutable_func()->set_name(name);
    }
  }
}

}  // namespace

FunctionDef Function(const std::string& name, absl::string_view arguments,
                     absl::string_view results, absl::string_view body,
                     const std::vector<std::string>& returns,
                     const std::vector<std::string>& control_returns) {
  FunctionDef function;
  OpDef& signature = *function.mutable_signature();
  signature.set_name(name);
  for (absl::string_view text : absl::StrSplit(arguments, ' ', absl::SkipEmpty())) {
    ReadArgument(text, signature.add_input_arg());
  }
  for (absl::string_view text : absl::StrSplit(results, ' ', absl::SkipEmpty())) {
    ReadArgument(text, signature.add_output_arg());
  }
  for (const auto* args : {&signature.input_arg(), &signature.output_arg()}) {
    for (const OpDef::ArgDef& argument : *args) {
      if (argument.type_attr().empty()) continue;
      OpDef::AttrDef* attr = signature.add_attr();
      attr->set_name(argument.type_attr());
      attr->set_type("type");
    }
  }
  if (!body.empty()) {
    const GraphDef graph = ReadProto(GraphBytes(body));
    *function.mutable_node_def() = graph.node();
    for (NodeDef& node : *function.mutable_node_def()) {
      MakeFunctionAttrs(&node);
      for (auto& [key, value] : *node.mutable_attr()) {
        absl::string_view attr = value.s();
        if (!value.has_s() || !absl::ConsumePrefix(&attr, "$")) continue;
        const std::string placeholder(attr);
        value.set_placeholder(placeholder);
      }
    }
  }
  for (const std::string& text : returns) {
    const auto [result, source] = Cut(text, '=');
    (*function.mutable_ret())[result] = source;
  }
  for (const std::string& node : control_returns) {
    (*function.mutable_control_ret())["c_" + node] = node;
    signature.add_control_output("c_" + node);
  }
  return function;
}

FunctionDef WithFlag(FunctionDef function, const std::string& key) {
  (*function.mutable_attr())[key].set_b(true);
  return function;
}

std::string GraphWithFunctions(absl::string_view text, const std::vector<FunctionDef>& functions) {
  GraphDef graph = ReadProto(GraphBytes(text));
  for (NodeDef& node : *graph.mutable_node()) MakeFunctionAttrs(&node);
  for (const FunctionDef& function : functions) *graph.mutable_library()->add_function() = function;
  return WriteProto(graph);
}

}  // namespace spillway::testing
