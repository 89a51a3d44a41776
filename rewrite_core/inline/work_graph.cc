#include "rewrite_core/inline/work_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

// Texts are short; a longer one gets its own block.
constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr size_t kFirstNames = 1024;

}  // namespace

NodeId WorkGraph::Add(WorkNode node, absl::Span<const Tensor> inputs) {
  node.first_input = static_cast<uint32_t>(inputs_.size());
  node.num_inputs = static_cast<uint32_t>(inputs.size());
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  nodes_.push_back(node);
  replaced_.push_back(-1);
  return NodeId(num_nodes() - 1);
}

void WorkGraph::Replace(const Expansion& expansion) {
  replaced_[expansion.call] = static_cast<int32_t>(expansions_.size());
  expansions_.push_back(expansion);
}

Tensor WorkGraph::Resolve(Tensor tensor) const {
  const bool control_of = IsControlOf(tensor.port);
  Tensor now{tensor.node, control_of ? kControl - 1 - tensor.port : tensor.port};
  while (replaced_[now.node] >= 0) {
    if (now.port == kControl) return {expansions_[replaced_[now.node]].output_control, kControl};
    Tensor& result = expansions_[replaced_[now.node]].results[now.port];
    if (const Expansion* next = ReplacedBy(result.node)) result = next->results[result.port];
    now = result;
    if (poll_.Tick()) break;
  }
  if (control_of) now.port = kControl;
  return now;
}

Tensor WorkGraph::Source(Tensor tensor) const {
  Tensor now = Resolve(tensor);
  while (Forwards(now) && !poll_.Tick()) {
    Tensor& input = inputs_[node(now.node).first_input];
    input = Resolve(input);
    if (Forwards(input)) input = Resolve(inputs_[node(input.node).first_input]);
    now = input;
  }
  return now;
}

void WorkGraph::Spell(Tensor tensor, std::string* spelling) const {
  const Tensor now = Source(tensor);
  if (now.is_control()) spelling->push_back('^');
  absl::StrAppend(spelling, name(now.node));
  if (!now.is_control() && now.port != 0) absl::StrAppend(spelling, ":", now.port);
}

absl::string_view WorkGraph::Keep(absl::string_view text) {
  if (text.size() > free_bytes_) {
    const size_t size = std::max(text.size(), kBlockBytes);
    blocks_.emplace_back(new char[size]);
    free_ = blocks_.back().get();
    free_bytes_ = size;
  }
  char* const kept = free_;
  if (!text.empty()) std::memcpy(kept, text.data(), text.size());
  free_ += text.size();
  free_bytes_ -= text.size();
  return {kept, text.size()};
}

absl::string_view WorkGraph::UniqueName(absl::string_view first, absl::string_view second) {
  wanted_.assign(first.data(), first.size());
  wanted_.append(second.data(), second.size());
  const size_t size = wanted_.size();
  uint32_t tag = NameIndex::Tag(wanted_);
  if (!IsFree(wanted_, tag)) {
    int& number = numbers_[wanted_];
    do {
      wanted_.resize(size);
      absl::StrAppend(&wanted_, "_", ++number);
      tag = NameIndex::Tag(wanted_);
    } while (!IsFree(wanted_, tag) &&
             !poll_.Tick(1 + static_cast<int64_t>(wanted_.size()) / kNameBytesPerStep));
  }
  if (names_.size() == index_room_) {
    index_room_ = std::max(2 * index_room_, kFirstNames);
    index_.Reset(index_room_);
    for (size_t i = 0; i < names_.size() && !poll_.Tick(); ++i) Index(i);
  }
  names_.emplace_back(Keep(wanted_), tag);
  Index(names_.size() - 1);
  return names_.back().first;
}

bool WorkGraph::IsFree(absl::string_view name, uint32_t tag) const {
  return graph_.Find(name, tag) == kNoNode && index_.Find(name, tag, [this](int32_t i) {
    return names_[i].first;
  }) == NameIndex::kNotFound;
}

void WorkGraph::Index(size_t i) {
  index_.Insert(names_[i].first, names_[i].second, static_cast<int32_t>(i),
                [this](int32_t other) { return names_[other].first; });
}

absl::string_view WorkGraph::BorderName(absl::string_view call, absl::string_view what) {
  return UniqueName(absl::StrCat("Func/", call, "/", what, "/_", next_number_++));
}

absl::string_view WorkGraph::NumberedName(absl::string_view node, absl::string_view what) {
  return UniqueName(absl::StrCat(node, "/", what, "/_", next_number_++));
}

}  // namespace spillway::core
