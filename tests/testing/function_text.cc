#include "tests/testing/function_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/proto_graph.h"

namespace spillway::testing {
namespace {

std::string Text(const AttrValue& value) {
  return absl::StrCat("0x", absl::BytesToHexString(value.SerializeAsString()));
}

}  // namespace

std::string FunctionAttr(const std::string& name) {
  AttrValue value;
  value.mutable_func()->set_name(name);
  return Text(value);
}

std::string FunctionListAttr(const std::vector<std::string>& names) {
  AttrValue value;
  for (const std::string& name : names) value.mutable_list()->add_func()->set_name(name);
  return Text(value);
}

TestGraph WithFunctions(const std::string& text, const std::vector<FunctionText>& functions) {
  GraphDef graph = ReadProto(GraphBytes(text));
  for (const FunctionText& from : functions) {
    FunctionDef* function = graph.mutable_library()->add_function();
    function->mutable_signature()->set_name(from.name);
    for (const auto& [name, dtype] : from.arguments) {
      OpDef::ArgDef* argument = function->mutable_signature()->add_input_arg();
      argument->set_name(name);
      argument->set_type(dtype);
    }
    GraphDef body = ReadProto(GraphBytes(from.body));
    for (NodeDef& node : *body.mutable_node()) function->add_node_def()->Swap(&node);
    for (const auto& [name, output] : from.results) {
      function->mutable_signature()->add_output_arg()->set_name(name);
      (*function->mutable_ret())[name] = output;
    }
  }
  return TestGraph::FromBytes(WriteProto(graph));
}

}  // namespace spillway::testing
