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

std::string WorkGraph::Spell(Tensor tensor) const {
  const Tensor now = Source(tensor);
  const absl::string_view name = this->name(now.node);
  if (now.is_control()) return absl::StrCat("^", name);
  return now.port == 0 ? std::string(name) : absl::StrCat(name, ":", now.port);
}

absl::string_view WorkGraph::UniqueName(std::string wanted) {
  const auto is_taken = [this](absl::string_view name) {
    return graph_.Find(name) != kNoNode || names_.contains(name);
  };
  if (is_taken(wanted)) {
    int number = 0;
    std::string numbered;
    do {
      numbered = absl::StrCat(wanted, "_", ++number);
    } while (is_taken(numbered));
    wanted = std::move(numbered);
  }
  const absl::string_view name = Keep(std::move(wanted));
  names_.insert(name);
  return name;
}

absl::string_view WorkGraph::BorderName(absl::string_view call, absl::string_view what) {
  return UniqueName(absl::StrCat("Func/", call, "/", what, "/_", next_number_++));
}

absl::string_view WorkGraph::NumberedName(absl::string_view node, absl::string_view what) {
  return UniqueName(absl::StrCat(node, "/", what, "/_", next_number_++));
}

}  // namespace spillway::core
