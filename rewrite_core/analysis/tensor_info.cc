#include "rewrite_core/analysis/tensor_info.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/graph/error.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

absl::Status BadFeed(absl::string_view name, absl::string_view what) {
  return InvalidError(v1::ERROR_REASON_BAD_OPTION, absl::StrCat("feed ", Quoted(name), " ", what),
                      {{"option", "feeds"}, {"value", name}});
}

}  // namespace

absl::optional<int64_t> CheckedBytes(absl::Span<const int64_t> dims, int element_bytes) {
  // A zero anywhere makes it 0, however large the others are.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  int64_t bytes = element_bytes;
  for (int64_t dim : dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return absl::nullopt;
  }
  return bytes;
}

absl::StatusOr<TensorInfos> TensorInfos::Create(const Graph& graph,
                                                const v1::RewriteOptions& options) {
  TensorInfos infos(graph);
  if (options.has_batch_size()) {
    if (options.batch_size() < 1 || options.batch_size() > kMaxDim) {
      return InvalidError(
          v1::ERROR_REASON_BAD_OPTION,
          absl::StrCat("batch_size is ", options.batch_size(),
                       "; give the examples of one step, 1 to ", kMaxDim),
          {{"option", "batch_size"}, {"value", absl::StrCat(options.batch_size())}});
    }
    infos.batch_size_ = options.batch_size();
  }
  for (const v1::FeedShape& feed : options.feeds()) {
    absl::string_view name = feed.name();
    int port = 0;
    const size_t colon = name.rfind(':');
    if (colon != absl::string_view::npos) {
      if (!absl::SimpleAtoi(name.substr(colon + 1), &port) || port < 0) {
        return BadFeed(feed.name(), "is not of the form node or node:port");
      }
      name = name.substr(0, colon);
    }
    const NodeId node = graph.Find(name);
    if (node == kNoNode) {
      return BadFeed(feed.name(), "names no node of the graph; feeds are named as in the graph");
    }
    const int count = CountOutputs(graph, node);
    if (count >= 0 && port >= count) {
      return BadFeed(feed.name(),
                     absl::StrCat("names output ", port, ", but the node has ", count));
    }
    for (int64_t dim : feed.dims()) {
      if (dim < 0 || dim > kMaxDim) {
        return BadFeed(feed.name(),
                       absl::StrCat("has the dimension ", dim, "; give sizes from 0 to ", kMaxDim));
      }
    }
    std::vector<int64_t> dims(feed.dims().begin(), feed.dims().end());
    if (!infos.fed_nodes_[node].try_emplace(port, std::move(dims)).second) {
      return BadFeed(feed.name(), "is given twice; give one shape");
    }
  }
  return infos;
}

absl::StatusOr<std::vector<TensorInfo>> TensorInfos::Outputs(
    NodeId node, absl::Span<const int32_t> ports) const {
  const std::vector<OutputType> types = GetOutputTypes(*graph_, node, ports);
  std::vector<Shape> shapes;
  if (const auto attr = graph_->attr(node, kOutputShapesAttr)) {
    shapes = AttrShapes(*attr, int64_t{ports.back()} + 1);
  } else if (graph_->op(node) == "Placeholder") {
    const auto value = graph_->attr(node, "shape");
    auto shape = value ? AttrShape(*value) : absl::nullopt;
    // Up to producer 23, a Placeholder's scalar shape meant "unknown" (TensorFlow's array_ops).
    if (shape && !shape->dims.empty()) shapes.push_back(*std::move(shape));
  }
  const auto fed = fed_nodes_.find(node);
  std::vector<TensorInfo> infos(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const int32_t port = ports[i];
    TensorInfo& info = infos[i];
    info.type = types[i];
    Shape shape;
    if (fed != fed_nodes_.end() && fed->second.contains(port)) {
      shape.dims = fed->second.at(port);
    } else if (port < static_cast<int>(shapes.size())) {
      shape = std::move(shapes[port]);
    } else {
      continue;
    }
    const int element_bytes = info.type.is_ref ? 0 : ElementBytes(info.type.dtype);
    if (!shape.dims.empty() && shape.dims[0] == kUnknownDim) shape.dims[0] = batch_size_;
    if (shape.unknown_rank) {
      info.why_unknown = v1::SIZE_UNKNOWN_RANK;
    } else if (std::count(shape.dims.begin(), shape.dims.end(), kUnknownDim) > 0) {
      info.why_unknown = v1::SIZE_UNKNOWN_DIM;
    } else if (element_bytes == 0) {
      info.why_unknown = v1::SIZE_UNKNOWN_DTYPE;
    } else if (const auto bytes = CheckedBytes(shape.dims, element_bytes)) {
      info.size_bytes = *bytes;
      info.why_unknown = v1::SIZE_UNKNOWN_UNSPECIFIED;
    } else {
      return InvalidError(
          v1::ERROR_REASON_BAD_ATTRIBUTE,
          absl::StrCat("output ", port, " of node ", Quoted(graph_->name(node)), " has the shape [",
                       absl::StrJoin(shape.dims, ","),
                       "], whose size in bytes does not fit 63 bits; mend the shape, the feed or "
                       "batch_size"),
          {{"node", graph_->name(node)},
           {"field", kOutputShapesAttr},
           {"value", absl::StrJoin(shape.dims, ",")}});
    }
    info.shape = std::move(shape);
  }
  return infos;
}

}  // namespace spillway::core
