#include "rewrite_core/inspect/tensor_list.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/report/tensor_summary.h"

namespace spillway::core {
namespace {

constexpr char kTensorsStage[] = "tensors";

// As in summaries, but with the full name and shape.
v1::TensorSummary Whole(const Graph& graph, const Shapes& shapes, Tensor tensor) {
  v1::TensorSummary summary = Summarize(graph, shapes, tensor);
  summary.set_tensor(absl::StrCat(graph.name(tensor.node), ":", tensor.port));
  if (summary.has_shape()) summary.set_shape(ShapeText(shapes.shape(tensor)));
  return summary;
}

}  // namespace

absl::Status ListTensors(const Graph& graph, const Shapes& shapes, const StopToken& stop,
                         const std::function<bool(v1::TensorList&&)>& sink) {
  v1::TensorList list;
  size_t bytes = 0;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status(kTensorsStage);
    for (int32_t port = 0; port < shapes.num_outputs(id); ++port) {
      if (poll.Tick()) return stop.status(kTensorsStage);
      v1::TensorSummary* summary = list.add_tensors();
      *summary = Whole(graph, shapes, {id, port});
      bytes += summary->ByteSizeLong();
      if (bytes < kTensorListBytes) continue;
      // Few long names fill a list, so check the token for each list.
      if (stop.ShouldStop(1)) return stop.status(kTensorsStage);
      if (!sink(std::move(list))) return absl::OkStatus();
      list.Clear();
      bytes = 0;
    }
  }
  if (!list.tensors().empty()) sink(std::move(list));
  return absl::OkStatus();
}

}  // namespace spillway::core
