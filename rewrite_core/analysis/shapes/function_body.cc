#include "rewrite_core/analysis/shapes/function_body.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/analysis/shapes/node_attrs.h"
#include "rewrite_core/analysis/shapes/output_signature.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/name_index.h"
#include "rewrite_core/graph/op_registry.h"

namespace spillway::core {

bool FindPayload(absl::string_view message, uint32_t field, StopPoller* poll,
                 absl::string_view* payload) {
  *payload = {};
  WireReader reader(message);
  while (reader.Next()) {
    if (poll->Tick()) return false;
    if (reader.IsBytes(field)) *payload = reader.bytes();
  }
  return true;
}

bool ReadArguments(absl::string_view signature, uint32_t field, StopPoller* poll,
                   std::vector<absl::string_view>* names) {
  WireReader reader(signature);
  while (reader.Next()) {
    if (poll->Tick()) return false;
    if (!reader.IsBytes(field)) continue;
    absl::string_view name;
    WireReader argument(reader.bytes());
    while (argument.Next()) {
      if (poll->Tick()) return false;
      if (argument.IsBytes(op_def::kArgName)) name = argument.bytes();
      if (argument.IsBytes(op_def::kArgNumberAttr) && !argument.bytes().empty()) return false;
      if (argument.IsBytes(op_def::kArgTypeListAttr) && !argument.bytes().empty()) return false;
    }
    names->push_back(name);
  }
  return reader.ok();
}

int FunctionResults::Find(absl::string_view function_def, absl::string_view name,
                          StopPoller* poll) {
  const auto [results, is_new] = results_.try_emplace(function_def.data());
  if (is_new) {
    absl::string_view signature;
    std::vector<absl::string_view> names;
    if (!FindPayload(function_def, function_def::kSignature, poll, &signature) ||
        !ReadArguments(signature, op_def::kOutputArg, poll, &names)) {
      names.clear();
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (poll->Tick()) return -1;
      results->second.emplace(names[i], static_cast<int>(i));
    }
  }
  const auto found = results->second.find(name);
  return found == results->second.end() ? -1 : found->second;
}

namespace {

// Writes a body as a GraphDef: `_Arg` nodes for the arguments, and the nodes with their inputs
// spelled as in a graph (`node:port` for `node:output:index`).
class BodyBuilder {
 public:
  BodyBuilder(const FunctionFinder& find, const StopToken& stop, FunctionResults* results)
      : find_(find), stop_(stop), poll_(stop), results_(results) {}

  // False if something in the body is unknown, or the call must end.
  bool Build(absl::string_view function_def, FunctionBody* body) {
    absl::string_view signature;
    std::vector<absl::string_view> outputs;
    if (!FindPayload(function_def, function_def::kSignature, &poll_, &signature) ||
        !ReadArguments(signature, op_def::kInputArg, &poll_, &body->arguments) ||
        !ReadArguments(signature, op_def::kOutputArg, &poll_, &outputs)) {
      return false;
    }
    if (!MakeRoom(function_def, body)) return false;
    std::string* const graph_def = &body->graph_def;
    for (absl::string_view name : body->arguments) {
      if (poll_.Tick()) return false;
      AddNode(name, Node());
      node_.clear();
      AppendBytesField(node_def::kName, name, &node_);
      AppendBytesField(node_def::kOp, "_Arg", &node_);
      AppendBytesField(graph_def::kNode, node_, graph_def);
    }
    absl::flat_hash_map<absl::string_view, absl::string_view> returns;
    WireReader first(function_def);
    while (first.Next()) {
      if (poll_.Tick()) return false;
      if (first.IsBytes(function_def::kNode)) {
        if (!ReadNode(first.bytes())) return false;
      } else if (first.IsBytes(function_def::kReturn)) {
        absl::string_view output, tensor;
        if (!FindPayload(first.bytes(), map_entry::kKey, &poll_, &output) ||
            !FindPayload(first.bytes(), map_entry::kValue, &poll_, &tensor)) {
          return false;
        }
        returns[output] = tensor;
      }
    }
    WireReader second(function_def);
    while (second.Next()) {
      if (poll_.Tick()) return false;
      if (second.IsBytes(function_def::kNode) && !AppendNode(second.bytes(), graph_def)) {
        return false;
      }
    }
    for (absl::string_view output : outputs) {
      if (poll_.Tick()) return false;
      std::string spelling;
      if (!Spell(returns[output], &spelling)) return false;
      body->results.push_back(std::move(spelling));
    }
    return first.ok();
  }

 private:
  // The facts about an op type.
  struct Op {
    absl::string_view name;
    OpInfo info;
  };
  struct Node {
    const Op* op = nullptr;  // Null for an argument.
    absl::string_view name, node_def;
  };

  // A function may have more nodes than there is memory for their facts: allocating everything
  // first lets memory accounting see it before any is used.
  bool MakeRoom(absl::string_view function_def, FunctionBody* body) {
    size_t count = body->arguments.size();
    WireReader reader(function_def);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      count += reader.IsBytes(function_def::kNode);
    }
    nodes_.reserve(count);
    body->graph_def.reserve(function_def.size());
    if (stop_.ShouldStop(1)) return false;
    index_.Reset(count);
    return !stop_.ShouldStop(1);
  }

  // If a name is repeated, the last one counts.
  void AddNode(absl::string_view name, Node node) {
    node.name = name;
    const auto id = static_cast<int32_t>(nodes_.size());
    const int32_t other = index_.Insert(name, NameIndex::Tag(name), id, name_of_);
    if (other == NameIndex::kNotFound) {
      nodes_.push_back(node);
    } else {
      nodes_[other] = node;
    }
  }

  bool ReadNode(absl::string_view bytes) {
    absl::string_view name, op;
    int attributes = 0;
    WireReader reader(bytes);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      attributes += reader.IsBytes(node_def::kAttr);
      if (reader.IsBytes(node_def::kName)) name = reader.bytes();
      if (reader.IsBytes(node_def::kOp)) op = reader.bytes();
    }
    AddNode(name, Node{&OpOf(op), {}, bytes});
    return attributes <= kMaxAttributes;  // Graph::Parse takes no more.
  }

  // Looked up once for all nodes of that type.
  const Op& OpOf(absl::string_view name) {
    std::unique_ptr<Op>& op = ops_[name];
    if (op == nullptr) {
      op = std::make_unique<Op>();
      op->name = name;
      op->info = FindOp(name);
    }
    return *op;
  }

  bool AppendNode(absl::string_view bytes, std::string* graph_def) {
    node_.clear();
    WireReader reader(bytes);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (!reader.IsBytes(node_def::kInput)) {
        node_.append(reader.whole().data(), reader.whole().size());
      } else if (!Spell(reader.bytes(), &spelling_)) {
        return false;
      } else {
        AppendBytesField(node_def::kInput, spelling_, &node_);
      }
    }
    AppendBytesField(graph_def::kNode, node_, graph_def);
    return reader.ok();
  }

  // The position of an output argument among the op's; -1 if it has none of that name.
  int FindOutput(const Op& op, absl::string_view name) {
    if (!op.info.output_names.empty()) {
      int position = 0;
      for (absl::string_view candidate : absl::StrSplit(op.info.output_names, ' ')) {
        if (candidate == name) return position;
        ++position;
      }
      return -1;
    }
    if (op.info.known) return 0;  // It has only one.
    const absl::string_view function_def = find_(op.name);
    if (function_def.empty()) return 0;  // A custom op: assumed to have one.
    return results_->Find(function_def, name, &poll_);
  }

  // Converts an input's spelling from a body's to a graph's.
  bool Spell(absl::string_view input, std::string* spelling) {
    if (input.empty()) return false;  // For example a result that the function does not return.
    spelling->assign(input.data(), input.size());
    if (input[0] == '^') return true;
    // NODE, NODE:OUTPUT or NODE:OUTPUT:INDEX.
    const size_t first_colon = std::min(input.find(':'), input.size());
    const absl::string_view name = input.substr(0, first_colon);
    absl::string_view output = input.substr(std::min(first_colon + 1, input.size()));
    const size_t second_colon = std::min(output.find(':'), output.size());
    const absl::string_view number = output.substr(std::min(second_colon + 1, output.size()));
    output = output.substr(0, second_colon);
    const int32_t id = index_.Find(name, NameIndex::Tag(name), name_of_);
    if (id == NameIndex::kNotFound) return false;
    const Node& node = nodes_[id];
    int64_t index = 0;
    if (!number.empty() && (!absl::SimpleAtoi(number, &index) || index < 0)) return false;
    int64_t port = index;
    if (first_colon < input.size() && !node.node_def.empty()) {
      const int argument = FindOutput(*node.op, output);
      if (argument < 0) return false;
      const int64_t first = argument > 0 ? FirstPort(id, argument) : 0;
      if (first < 0) return false;
      port += first;
    }
    spelling->resize(name.size());  // Keep only the node's name.
    if (port != 0) absl::StrAppend(spelling, ":", port);
    return true;
  }

  int64_t FirstPort(int32_t id, int argument) {
    const Op& op = *nodes_[id].op;
    if (!op.info.known) return argument;  // Each output of a library function is one tensor.
    std::vector<int64_t>& first_ports = first_ports_[id];
    if (argument >= static_cast<int>(first_ports.size())) {
      const OutputSignature outputs(op.info);
      attrs_.Reset(nodes_[id].node_def);
      for (int i = static_cast<int>(first_ports.size()); i <= argument; ++i) {
        first_ports.push_back(outputs.FirstPort(i, attrs_));
      }
    }
    return first_ports[argument];
  }

  // For lookups in index_.
  struct NameOf {
    const std::vector<Node>& nodes;
    absl::string_view operator()(int32_t id) const { return nodes[id].name; }
  };

  const FunctionFinder& find_;
  const StopToken& stop_;
  StopPoller poll_;
  FunctionResults* const results_;
  absl::flat_hash_map<absl::string_view, std::unique_ptr<Op>> ops_;
  std::vector<Node> nodes_;
  NameIndex index_;
  const NameOf name_of_{nodes_};
  // For nodes with several outputs: the first port of each requested output argument. A list may be
  // read in many places, but the node's attributes should not be read each time.
  absl::flat_hash_map<int32_t, std::vector<int64_t>> first_ports_;
  NodeAttrs attrs_;
  std::string node_, spelling_;  // Scratch.
};

}  // namespace

bool WriteFunctionBody(absl::string_view function_def, const FunctionFinder& find,
                       const StopToken& stop, FunctionBody* body, FunctionResults* results) {
  return BodyBuilder(find, stop, results).Build(function_def, body);
}

absl::optional<Tensor> FindResult(const Graph& body, absl::string_view spelling) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(spelling, absl::MaxSplits(':', 1));
  Tensor tensor{body.Find(parts.first), 0};
  if (tensor.node == kNoNode) return absl::nullopt;
  if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &tensor.port)) return absl::nullopt;
  return tensor;
}

}  // namespace spillway::core
