#include "rewrite_core/analysis/shapes/shapes.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shapes/function_library.h"
#include "rewrite_core/analysis/shapes/graph_inference.h"
#include "rewrite_core/analysis/shapes/table_rows.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/near_in_graph.h"

namespace spillway::core {
namespace {

// As the proto says.
constexpr int kMaxFedValues = 256;
constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

absl::Status BadFeed(absl::string_view name, absl::string_view what,
                     v1::ErrorReason reason = v1::ERROR_REASON_BAD_OPTION) {
  return InvalidError(reason, absl::StrCat("feed ", Quoted(name), " ", what),
                      {{"option", "feeds"}, {"value", name}});
}

absl::Status ReadFeed(const Graph& graph, const v1::Feed& feed, OutputCounts& counts,
                      ShapePool& pool, FedTensors* feeds) {
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
    return BadFeed(feed.name(),
                   absl::StrCat("names no node of the graph", NearNodes(graph, name),
                                "; feeds are named as in the graph"),
                   v1::ERROR_REASON_NAME_MATCHES_NOTHING);
  }
  const int count = counts[node];
  if (count >= 0 && port >= count) {
    return BadFeed(feed.name(), absl::StrCat("names output ", port, ", but the node has ", count),
                   v1::ERROR_REASON_NAME_MATCHES_NOTHING);
  }
  if (feed.dims_size() > kMaxRank) {
    return BadFeed(feed.name(), absl::StrCat("has ", feed.dims_size(), " dimensions; ", kMaxRank,
                                             " is the most"));
  }
  for (int64_t dim : feed.dims()) {
    if (dim < 0 || dim > kMaxDim) {
      return BadFeed(feed.name(),
                     absl::StrCat("has the dimension ", dim, "; give sizes from 0 to ", kMaxDim));
    }
  }
  FedTensor fed;
  fed.shape = pool.Intern(absl::MakeConstSpan(feed.dims().data(), feed.dims_size()));
  if (feed.values_size() > 0) {
    if (feed.values_size() > kMaxFedValues) {
      return BadFeed(feed.name(), absl::StrCat("has ", feed.values_size(), " values; ",
                                               kMaxFedValues, " is the most"));
    }
    if (feed.values_size() != pool.elements(fed.shape)) {
      return BadFeed(feed.name(), absl::StrCat("has ", CountText(feed.values_size(), "value"),
                                               ", which does not match its dimensions; "
                                               "give one for each element, or none"));
    }
    fed.value = pool.Intern(absl::MakeConstSpan(feed.values().data(), feed.values_size()));
  }
  if (!(*feeds)[node].try_emplace(port, fed).second) {
    return BadFeed(feed.name(), "is given twice; give it once");
  }
  return absl::OkStatus();
}

// An update of one variable may determine the shape of another, whose update determines that of a
// third. A list that a loop reads determines another that it writes, which its gradient reads.
constexpr int kMaxVariableRounds = 8;

// Adds new statements to the facts about variables; returns whether that adds anything.
bool Learn(const VariableFacts& said, ShapePool& pool, VariableFacts* known) {
  bool more = false;
  for (const auto& [node, fact] : said) {
    VariableFact& variable = (*known)[node];
    // Less was known about a list's elements before: the new facts hold.
    const VariableFact joined = fact.is_list ? fact : JoinVariables(variable, fact, &pool);
    more = more || joined.shape != variable.shape || joined.value != variable.value;
    variable = joined;
  }
  return more;
}

// A handle that is fed without dimensions stands for a scalar, such as a learning rate; or they are
// the handle's own, which has none: then the graph may state its variable's shape. Takes the others
// for scalars; returns whether there are any.
bool LearnScalars(const FedTensors& feeds, GraphInference& inference, VariableFacts* known) {
  bool more = false;
  for (const auto& [node, ports] : feeds) {
    const auto fed = ports.find(0);
    if (fed == ports.end() || fed->second.shape != kScalar) continue;
    const uint32_t first = inference.first()[node];
    if (first == inference.first()[node + 1]) continue;
    const TensorFact& handle = inference.facts()[first];
    if (handle.dtype != kDtResource || handle.extra > kUnknownShape) continue;
    VariableFact& variable = (*known)[node];
    if (variable.contradicted || variable.shape != kUnknownShape) continue;
    variable.shape = kScalar;
    more = true;
  }
  return more;
}

// The producer version in a GraphDef, looked up behind the nodes, and otherwise everywhere.
int ReadProducer(const Graph& graph) {
  for (absl::string_view bytes : {graph.bytes().substr(graph.nodes_end()), graph.bytes()}) {
    absl::string_view versions;
    WireReader reader(bytes);
    while (reader.Next()) {
      if (reader.IsBytes(graph_def::kVersions)) versions = reader.bytes();
    }
    WireReader version(versions);
    while (version.Next()) {
      if (version.IsVarint(version_def::kProducer)) return static_cast<int>(version.number());
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<Shapes> Shapes::Infer(const Graph& graph, const Topology& topology,
                                     const v1::Step& step, const StopToken& stop) {
  Shapes shapes;
  const GraphOps ops(graph);
  InferenceInputs inputs{graph, topology, ops};
  inputs.strict = true;
  inputs.producer = ReadProducer(graph);
  if (step.has_batch_size()) {
    if (step.batch_size() < 1 || step.batch_size() > kMaxDim) {
      return BadOptionError("batch_size", step.batch_size(),
                            absl::StrCat("give the examples of one step, 1 to ", kMaxDim));
    }
    inputs.batch_size = step.batch_size();
  }
  FedTensors feeds;
  OutputCounts counts(graph);
  StopPoller poll(stop);
  for (const v1::Feed& feed : step.feeds()) {
    if (poll.Tick()) return stop.status("analysis");
    if (absl::Status s = ReadFeed(graph, feed, counts, *shapes.pool_, &feeds); !s.ok()) return s;
  }
  for (const auto& [node, ports] : feeds) shapes.fed_.insert(node);
  inputs.feeds = &feeds;
  absl::optional<FunctionLibrary> library;
  if (graph.has_functions()) library.emplace(graph.bytes(), inputs.producer, *shapes.pool_, stop);
  if (absl::Status status = stop.status("analysis"); !status.ok()) return status;
  VariableFacts variables;
  inputs.variables = &variables;
  absl::optional<GraphInference> inference;
  for (int round = 0; round < kMaxVariableRounds; ++round) {
    inference.emplace(inputs, *shapes.pool_, library ? &*library : nullptr);
    if (absl::Status status = inference->Run(stop); !status.ok()) return status;
    if (absl::Status status = stop.status("analysis"); !status.ok()) return status;
    VariableFacts said = inference->TakeVariables();
    NoteTableRows({graph, inference->first(), inference->facts()}, *shapes.pool_, &poll, &said);
    if (absl::Status status = stop.status("analysis"); !status.ok()) return status;
    if (!Learn(said, *shapes.pool_, &variables) && !LearnScalars(feeds, *inference, &variables)) {
      break;
    }
  }
  const bool has_bounds = inference->has_bounds();
  shapes.first_ = std::move(inference->first());
  shapes.facts_ = std::move(inference->facts());
  shapes.requested_ = std::move(inference->requested());
  for (const auto& [node, variable] : variables) {
    const bool is_outside = graph.op(node) == "Placeholder" || graph.op(node) == "_Arg";
    if (is_outside && variable.dtype != kDtInvalid) {
      shapes.captured_[node] = variable.dtype;
    }
  }
  shapes.ignores_batch_size_ = step.has_batch_size();
  for (NodeId id : inference->sources()) {
    if (poll.Tick()) return stop.status("analysis");
    bool is_open = false;
    for (int port = 0; port < shapes.num_outputs(id); ++port) {
      const ShapeView shape = shapes.shape({id, port});
      if (!shape.known_rank || shape.dims.empty()) continue;
      is_open = is_open || shape.dims[0] == kUnknownDim;
      if (shape.dims[0] == inputs.batch_size) shapes.ignores_batch_size_ = false;
    }
    if (is_open && !shapes.IsFed(id)) shapes.open_sources_.push_back(id);
  }
  if (!has_bounds) return shapes;
  inputs.strict = false;
  inputs.exact = &shapes.facts_;
  GraphInference bounds(inputs, *shapes.pool_, library ? &*library : nullptr);
  if (absl::Status status = bounds.Run(stop); !status.ok()) return status;
  if (absl::Status status = stop.status("analysis"); !status.ok()) return status;
  auto bounding = std::make_shared<Shapes>();
  bounding->first_ = shapes.first_;
  bounding->facts_ = std::move(bounds.facts());
  bounding->pool_ = shapes.pool_;
  bounding->fed_ = shapes.fed_;
  bounding->captured_ = shapes.captured_;
  shapes.bounds_ = std::move(bounding);
  return shapes;
}

int64_t Shapes::buffer_bytes(Tensor tensor) const {
  const TensorFact& f = fact(tensor);
  const int width = ElementBytes(static_cast<DataType>(f.dtype));
  const int64_t elements = pool_->elements(f.shape);
  return width == 0 || elements < 0 ? kUnknownSize : elements * width;
}

int64_t Shapes::size_bytes(Tensor tensor) const {
  return fact(tensor).is_ref ? kUnknownSize : buffer_bytes(tensor);
}

v1::SizeUnknown Shapes::why_unknown(Tensor tensor) const {
  const TensorFact& f = fact(tensor);
  if (f.shape == kUnknownShape) {
    return f.stated ? v1::SIZE_UNKNOWN_RANK : v1::SIZE_UNKNOWN_NO_SHAPE;
  }
  if (pool_->elements(f.shape) < 0) return v1::SIZE_UNKNOWN_DIM;
  if (size_bytes(tensor) == kUnknownSize) return v1::SIZE_UNKNOWN_DTYPE;
  return v1::SIZE_UNKNOWN_UNSPECIFIED;
}

absl::optional<absl::Span<const int64_t>> Shapes::value(Tensor tensor) const {
  const TensorFact& f = fact(tensor);
  if (!IsValueType(f.dtype) || f.extra <= kUnknownShape) return absl::nullopt;
  return (*pool_)[f.extra];
}

ShapeView Shapes::handle_shape(Tensor tensor) const {
  const TensorFact& f = fact(tensor);
  if (!IsHandleType(f.dtype) || f.extra <= kUnknownShape) return {};
  return {true, (*pool_)[f.extra]};
}

}  // namespace spillway::core
