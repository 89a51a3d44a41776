#include "rewrite_core/inline/work_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace spillway::core {

NodeId WorkGraph::Add(WorkNode node, absl::Span<const Tensor> inputs) {
  node.first_input = static_cast<uint32_t>(inputs_.size());
  node.num_inputs = static_cast<uint32_t>(inputs.size());
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  nodes_.push_back(node);
  replaced_.push_back(-1);
  return num_nodes() - 1;
}

void WorkGraph::Replace(const Expansion& expansion) {
  replaced_[expansion.call] = static_cast<int32_t>(expansions_.size());
  expansions_.push_back(expansion);
}

Tensor WorkGraph::Resolve(Tensor tensor) const {
  const bool control_of = IsControlOf(tensor.port);
  const int32_t port = control_of ? kControl - 1 - tensor.port : tensor.port;
  Tensor now{tensor.node, port};
  if (const Expansion* call = ReplacedBy(tensor.node)) {
    now = port == kControl ? Tensor{call->output_control, kControl} : Resolve(call->results[port]);
  }
  if (control_of) now.port = kControl;
  return now;
}

Tensor WorkGraph::Source(Tensor tensor) const {
  Tensor now = Resolve(tensor);
  while (direct_ && !now.is_control() && !IsOriginal(now.node) && node(now.node).hands_on) {
    now = Resolve(inputs(now.node)[0]);
  }
  return now;
}

void WorkGraph::Spell(Tensor tensor, std::string* spelling) const {
  const Tensor now = Source(tensor);
  if (now.is_control()) spelling->push_back('^');
  absl::StrAppend(spelling, name(now.node));
  if (!now.is_control() && now.port != 0) absl::StrAppend(spelling, ":", now.port);
}

absl::string_view WorkGraph::UniqueName(std::string wanted) {
  std::string& name = strings_.emplace_back(std::move(wanted));
  const size_t size = name.size();
  for (int number = 0; graph_.Find(name) != kNoNode || !names_.insert(name).second;) {
    name.resize(size);
    absl::StrAppend(&name, "_", ++number);
  }
  return name;
}

absl::string_view WorkGraph::BorderName(absl::string_view call, absl::string_view what) {
  return UniqueName(absl::StrCat("Func/", call, "/", what, "/_", next_number_++));
}

absl::string_view WorkGraph::NumberedName(absl::string_view node, absl::string_view what) {
  return UniqueName(absl::StrCat(node, "/", what, "/_", next_number_++));
}

}  // namespace spillway::core
