#include "rewrite_core/graph/op_outputs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr int kUnknownCount = -1;

// `NAME` or `NAME=DEFAULT`.
struct AttrWord {
  absl::string_view name;
  absl::string_view default_value;
};

AttrWord ParseAttrWord(absl::string_view word) {
  const size_t eq = word.find('=');
  if (eq == absl::string_view::npos) return {word, {}};
  return {word.substr(0, eq), word.substr(eq + 1)};
}

DataType ResolveType(const Graph& graph, NodeId node, absl::string_view word) {
  if (DataType fixed = DataTypeFromName(word); fixed != kDtInvalid) return fixed;
  const AttrWord attr = ParseAttrWord(word);
  if (auto value = graph.attr(node, attr.name)) return AttrType(*value);
  return DataTypeFromName(attr.default_value);
}

int64_t ResolveNumber(const Graph& graph, NodeId node, absl::string_view word) {
  const AttrWord attr = ParseAttrWord(word);
  int64_t number = kUnknownCount;
  if (auto value = graph.attr(node, attr.name)) {
    number = AttrInt(*value).value_or(kUnknownCount);
  } else if (!absl::SimpleAtoi(attr.default_value, &number)) {
    return kUnknownCount;
  }
  return number >= 0 && number <= std::numeric_limits<int32_t>::max() ? number : kUnknownCount;
}

// Calls `visit(first_port, count, type_word, list_attr)` for every word of the signature until it
// returns false; count is kUnknownCount if it is unknown (and is then the last).
template <typename Visit>
void ForEachWord(const Graph& graph, NodeId node, const Visit& visit) {
  int64_t port = 0;
  for (absl::string_view word :
       absl::StrSplit(graph.op_info(node).outputs, ' ', absl::SkipEmpty())) {
    int64_t count = 1;
    absl::string_view list_attr;
    const size_t star = word.find('*');
    if (absl::ConsumePrefix(&word, "[]")) {
      list_attr = word;
      const auto value = graph.attr(node, list_attr);
      count = value ? CountAttrTypes(*value) : kUnknownCount;
    } else if (star != absl::string_view::npos) {
      count = ResolveNumber(graph, node, word.substr(0, star));
      word = word.substr(star + 1);
    }
    if (!visit(port, count, word, list_attr) || count == kUnknownCount) return;
    port += count;
  }
}

}  // namespace

int CountOutputs(const Graph& graph, NodeId node) {
  const OpInfo& info = graph.op_info(node);
  if (!info.known) {
    const auto shapes = graph.attr(node, kOutputShapesAttr);
    return shapes ? CountAttrShapes(*shapes) : kUnknownCount;
  }
  if (info.fixed_output_count >= 0) return info.fixed_output_count;
  int64_t total = 0;
  ForEachWord(graph, node, [&](int64_t, int64_t count, absl::string_view, absl::string_view) {
    total = count == kUnknownCount ? kUnknownCount : total + count;
    return true;
  });
  return total > std::numeric_limits<int32_t>::max() ? kUnknownCount : static_cast<int>(total);
}

std::vector<OutputType> GetOutputTypes(const Graph& graph, NodeId node,
                                       absl::Span<const int32_t> ports) {
  std::vector<OutputType> types(ports.size());
  size_t next = 0;  // The index in `ports` of the first one not yet resolved.
  ForEachWord(graph, node,
              [&](int64_t first, int64_t count, absl::string_view word, absl::string_view list) {
                if (count == kUnknownCount || next == ports.size()) return false;
                if (list.empty()) {
                  const bool is_ref = absl::ConsumePrefix(&word, "&");
                  const DataType dtype =
                      ports[next] < first + count ? ResolveType(graph, node, word) : kDtInvalid;
                  for (; next < ports.size() && ports[next] < first + count; ++next) {
                    types[next] = {dtype, is_ref};
                  }
                } else if (const auto value = graph.attr(node, list)) {
                  int64_t port = first;
                  ForEachAttrType(*value, [&](DataType dtype) {
                    if (next < ports.size() && ports[next] == port) types[next++].dtype = dtype;
                    return next < ports.size() && ++port > 0;
                  });
                }
                return true;
              });
  for (OutputType& type : types) {
    if (type.dtype < 0) type.dtype = kDtInvalid;  // Not a type number.
    if (type.dtype <= kRefOffset) continue;
    type.dtype = static_cast<DataType>(type.dtype - kRefOffset);
    type.is_ref = true;
  }
  return types;
}

bool MayForward(const Graph& graph, NodeId id) {
  const OpInfo& info = graph.op_info(id);
  if (!info.known) return true;  // A custom op: possibly.
  if (info.name == "Cast") {
    const auto from = graph.attr(id, "SrcT");
    const auto to = graph.attr(id, "DstT");
    return !from || !to || AttrType(*from) == AttrType(*to);
  }
  if (info.name == "AddN") {
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    return inputs.size() < 2 || inputs[1].is_control();  // A sum of one input is that input.
  }
  return info.forwards != Forwards::kNo;
}

bool MayShareMemory(const Graph& graph, NodeId id) {
  const absl::Span<const Tensor> inputs = graph.inputs(id);
  const bool by_input_1 = graph.op_info(id).forwards == Forwards::kByInput1;
  if (by_input_1 && inputs.size() > 1 && graph.op(inputs[1].node) == "Const") return false;
  return MayForward(graph, id);
}

OutputType GetOutputType(const Graph& graph, Tensor tensor) {
  return GetOutputTypes(graph, tensor.node, {tensor.port})[0];
}

}  // namespace spillway::core
