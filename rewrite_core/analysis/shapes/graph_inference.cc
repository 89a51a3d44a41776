#include "rewrite_core/analysis/shapes/graph_inference.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {
namespace {

constexpr char kStage[] = "analysis";

// Types whose values may be fed, and their ranges.
struct IntegerType {
  absl::string_view name;
  int64_t low, high;
};
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr IntegerType kIntegers[] = {
    {"bool", 0, 1},
    {"int8", -128, 127},
    {"uint8", 0, 255},
    {"int16", -32768, 32767},
    {"uint16", 0, 65535},
    {"int32", std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()},
    {"uint32", 0, std::numeric_limits<uint32_t>::max()},
    {"int64", kInt64Min + 1, kInt64Max},  // The smallest one is kUnknownElement.
    {"uint64", 0, kInt64Max},
};

// Ops whose outputs come from outside the graph, with one element per example of a batch.
constexpr absl::string_view kSources[] = {
    "IteratorGetNext",
    "IteratorGetNextSync",
    "MultiDeviceIteratorGetNextFromShard",
    "OneShotIterator",
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "QueueDequeue",
    "QueueDequeueMany",
    "QueueDequeueManyV2",
    "QueueDequeueUpTo",
    "QueueDequeueUpToV2",
    "QueueDequeueV2",
    "ReaderRead",
    "ReaderReadUpTo",
    "ReaderReadUpToV2",
    "ReaderReadV2",
    "StageGet",
    "Unstage",
};

// Ops whose output may be the handle of a variable, or list, about which other nodes state facts.
constexpr absl::string_view kHandleSources[] = {
    "EmptyTensorList",   "Placeholder", "StackV2", "TensorArrayV3",
    "TensorListReserve", "VarHandleOp", "_Arg"};

// Ops with an output that grows with the value of an input, and those inputs. All others treat a
// bound as unknown.
struct BoundedValues {
  absl::string_view ops;
  uint32_t inputs;
};
constexpr uint32_t kAllInputs = ~uint32_t{0};
constexpr BoundedValues kBoundedValues[] = {
    {"Add AddV2 Mul Maximum Minimum Max Prod Sum Cast Pack Unpack Concat ConcatV2 Split SplitV",
     kAllInputs},
    {"ExpandDims Squeeze Reshape Fill Empty BroadcastTo BroadcastArgs Tile", kAllInputs},
    // The gradient of a broadcast is summed where an operand has dimension 1; without the sum it is
    // larger.
    {"BroadcastGradientArgs", kAllInputs},
    {"RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal StatelessRandomUniform "
     "StatelessRandomUniformV2 StatelessRandomNormal StatelessRandomNormalV2",
     InputBit(0)},
    {"StridedSlice Gather GatherV2 TensorArrayV3", InputBit(0)},
    {"Slice", InputBit(0) | InputBit(2)},
    {"Range SparseToDense OneHot TensorListReserve", InputBit(1)},
    {"SparseSegmentMeanGrad SparseSegmentSqrtNGrad SparseSegmentSumGrad", InputBit(3)},
    {"UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum ScatterNd",
     InputBit(2)},
};

bool SameFact(const TensorFact& a, const TensorFact& b) {
  return a.shape == b.shape && a.extra == b.extra && a.unsure == b.unsure &&
         a.no_content == b.no_content;
}

}  // namespace

GraphOps::GraphOps(const Graph& graph) {
  const std::vector<const BoundedValues*> bounded = RowsByOp(graph, kBoundedValues);
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    const OpInfo& info = graph.op_type_info(op);
    const absl::string_view name = graph.op_name(op);
    ops_.push_back({FindShapeFunction(name), OutputSignature(info), info.known,
                    std::find(std::begin(kSources), std::end(kSources), name) != std::end(kSources),
                    std::find(std::begin(kHandleSources), std::end(kHandleSources), name) !=
                        std::end(kHandleSources),
                    FindVariableOp(name), bounded[op] == nullptr ? 0 : bounded[op]->inputs});
  }
}

GraphInference::GraphInference(const InferenceInputs& inputs, ShapePool& pool,
                               FunctionCaller* caller)
    : in_(inputs), pool_(pool), context_(inputs.graph, inputs.producer, pool, caller) {
  context_.infers_bounds_ = inputs.exact != nullptr;
}

bool GraphInference::LayOut(StopPoller* poll) {
  // A node may claim 2^31 outputs in ten bytes. Outputs are kept if they are few or have as many
  // readers; further ones only as long as their total is accounted for by the graph's bytes. The
  // rest are unknown.
  constexpr int64_t kFew = 8;
  constexpr size_t kBytesPerOutput = 8;
  const Graph& graph = in_.graph;
  first_.assign(graph.num_nodes() + 1, 0);
  NodeAttrs attrs;
  int64_t total = 0;
  auto further = static_cast<int64_t>(graph.bytes().size() / kBytesPerOutput);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll->Tick()) return false;
    const GraphOps::Op& op = in_.ops[graph.op_id(id)];
    if (op.is_source) sources_.push_back(id);
    int64_t count = op.outputs.fixed_count();
    if (!op.known || !op.outputs.fixed()) {
      attrs.Reset(graph.node_bytes(id));
      if (op.known) {
        count = op.outputs.Count(attrs);
      } else {
        const auto stated = attrs.Find(kOutputShapesAttr);
        count = stated ? CountAttrShapes(*stated) : -1;
        if (count < 0) {
          // At least those that are read: a function call may give their facts.
          const Graph::Readers readers = graph.readers(id);
          count = readers.empty() ? 0 : readers[readers.size() - 1].port + int64_t{1};
        }
      }
      count = std::max<int64_t>(count, 0);
      const int64_t kept = std::max<int64_t>(kFew, graph.readers(id).size());
      if (count > kept) {
        count = std::min(count, kept + further);
        further -= count - kept;
      }
    }
    total += count;
    first_[id + 1] = static_cast<uint32_t>(total);
  }
  facts_.assign(total, TensorFact());
  return true;
}

absl::Status GraphInference::Visit(NodeId id) {
  const Graph& graph = in_.graph;
  const GraphOps::Op& op = in_.ops[graph.op_id(id)];
  ShapeContext& c = context_;
  c.node_ = id;
  c.inputs_ = graph.inputs(id);
  c.num_inputs_ = CountDataInputs(graph, id);
  c.outputs_ = absl::MakeSpan(facts_).subspan(first_[id], first_[id + 1] - first_[id]);
  c.attrs_.Reset(graph.node_bytes(id));
  const bool says_nothing = op.known && op.function == nullptr && op.variable_op == nullptr;
  if (says_nothing && c.outputs_.empty()) return absl::OkStatus();

  bool unsure = graph.op_info(id).control_flow == ControlFlow::kSwitch;
  bool bounded = false;
  for (int i = 0; i < c.num_inputs_; ++i) {
    unsure |= c.fact(i).unsure;
    bounded |= c.fact(i).bounded;
  }
  c.bounded_values_ = op.bounded_values;
  for (TensorFact& output : c.outputs_) {
    output = TensorFact();
    output.unsure = unsure;
    output.bounded = bounded;
  }
  op.outputs.SetTypes(c.attrs_, c.outputs_);
  const absl::flat_hash_map<int, FedTensor>* feeds = nullptr;
  if (in_.feeds != nullptr && !in_.feeds->empty()) {
    const auto found = in_.feeds->find(id);
    if (found != in_.feeds->end()) feeds = &found->second;
  }
  c.said_elements_ = kUnknownShape;
  if (op.is_handle_source && in_.variables != nullptr) {
    const auto found = in_.variables->find(id);
    if (found != in_.variables->end() && found->second.is_list) {
      c.said_elements_ = found->second.shape;
    }
  }
  const TensorFact* argument = nullptr;
  if (in_.arguments != nullptr) {
    const auto found = in_.arguments->find(id);
    if (found != in_.arguments->end()) argument = &found->second;
  }
  if (argument != nullptr) {
    c.outputs_[0].dtype = argument->dtype;
    c.set_fact(0, *argument);
  } else if (op.function != nullptr) {
    op.function(c);
  } else if (!op.known && c.caller_ != nullptr) {
    CallByName(c);
  }
  if (op.is_handle_source && !c.outputs_.empty() && c.outputs_[0].dtype == kDtResource &&
      c.said_elements_ == kUnknownShape) {
    SetHandle(id, c);
  }
  c.ReadShapes(kOutputShapesAttr, c.num_outputs(), &stated_);
  if (c.failed()) {
    const std::string failure = std::move(c.failure_);
    c.failure_.clear();
    for (TensorFact& output : c.outputs_) output.shape = output.extra = kUnknownShape;
    if (in_.strict && !unsure && feeds == nullptr && !IsStatedInFull()) {
      return Mismatch(id, failure);
    }
  }
  for (int port = 0; port < c.num_outputs(); ++port) {
    TensorFact& fact = c.outputs_[port];
    if (port < static_cast<int>(stated_.size())) {
      fact.stated = true;
      fact.unsure = fact.unsure || ShapeContext::known(stated_[port]);
      fact.shape = MergeStatements(pool_, fact.shape, stated_[port]).value_or(stated_[port]);
    }
    const FedTensor* feed = nullptr;
    if (feeds != nullptr) {
      const auto found = feeds->find(port);
      if (found != feeds->end()) feed = &found->second;
    }
    if (feed != nullptr && fact.dtype == kDtResource) {
      // The handle itself has no dimensions: they are its variable's. None: see LearnScalars.
      if (feed->shape != kScalar) fact.extra = feed->shape;
    } else if (feed != nullptr) {
      if (!MergeStatements(pool_, feed->shape, fact.shape)) {
        return BadFeed(id, port, feed->shape, fact.shape);
      }
      if (absl::Status s = CheckValue(id, port, *feed, fact.dtype); !s.ok()) return s;
      if (pool_.elements(fact.shape) < 0) requested_.insert(id);
      fact.shape = feed->shape;
      fact.bounded = false;
      // Not the graph's value: a constant may be fed, too.
      fact.extra = IsValueType(fact.dtype) ? feed->value : kNoValue;
    } else if (op.is_source && in_.batch_size != kUnknownDim && fact.shape > kScalar &&
               pool_[fact.shape][0] == kUnknownDim) {
      fact.shape = c.ReplaceDim(fact.shape, 0, in_.batch_size);
      requested_.insert(id);
    }
    // A value whose size differs from the tensor's is invalid.
    if (fact.extra > kUnknownShape && IsValueType(fact.dtype) &&
        pool_.elements(fact.shape) != static_cast<int64_t>(pool_[fact.extra].size())) {
      fact.extra = kNoValue;
    }
    const int64_t elements = pool_.elements(fact.shape);
    int64_t bytes;
    if (elements == ShapePool::kTooManyElements ||
        (elements > 0 &&
         __builtin_mul_overflow(elements, int64_t{ElementBytes(static_cast<DataType>(fact.dtype))},
                                &bytes))) {
      if (in_.strict && (fact.stated || !unsure)) return TooLarge(id, port, fact.shape);
      fact.shape = kUnknownShape;
    }
    if (in_.exact != nullptr) TakeExact(int64_t{first_[id]} + port, &fact);
  }
  if (in_.exact != nullptr) {
    c.noted_.clear();  // Facts about variables come from the pass without bounds.
    return absl::OkStatus();
  }
  if (op.variable_op != nullptr) NoteVariables(*op.variable_op, c);
  KeepNotes(id);
  return absl::OkStatus();
}

void GraphInference::TakeExact(int64_t index, TensorFact* fact) {
  const TensorFact& exact = (*in_.exact)[index];
  const bool is_value = IsValueType(fact->dtype);
  if (pool_.elements(exact.shape) >= 0) {
    fact->shape = exact.shape;
    if (!is_value || exact.extra > kUnknownShape) {
      fact->extra = exact.extra;
      fact->bounded = false;
    }
  }
  if (!fact->bounded || !is_value || fact->extra <= kUnknownShape) return;
  // Negative values are not monotonic.
  DimVector items(pool_[fact->extra].begin(), pool_[fact->extra].end());
  for (int64_t& item : items) item = item < 0 ? kUnknownElement : item;
  fact->extra = pool_.Intern(items);
}

void GraphInference::SetHandle(NodeId id, ShapeContext& c) {
  TensorFact& handle = c.outputs_[0];
  const ShapeId own = handle.extra > kUnknownShape ? handle.extra : kUnknownShape;
  if (c.FullyKnown(own)) return;
  VariableFact said;
  said.dtype = c.FirstType("_handle_dtypes");
  if (said.dtype != kDtInvalid) {
    c.ReadShapes("_handle_shapes", 1, &stated_);
    if (!stated_.empty()) said.shape = stated_.front();
    notes_[id] = {{id, said}};
  }
  if (in_.variables != nullptr) {
    const auto found = in_.variables->find(id);
    if (found != in_.variables->end()) said = JoinVariables(said, found->second, &pool_);
  }
  if (!ShapeContext::known(said.shape)) return;
  handle.extra = MergeStatements(pool_, own, said.shape).value_or(own);
  handle.unsure = true;  // It depends on later nodes' statements.
}

void GraphInference::KeepNotes(NodeId id) {
  if (context_.noted_.empty()) return;
  // In a loop the last statement holds: earlier rounds knew less about the loop's results.
  std::vector<std::pair<NodeId, VariableFact>>& notes = notes_[id];
  notes.clear();
  for (const auto& [input, fact] : context_.noted_) {
    if (input >= context_.num_inputs_) continue;
    const Tensor origin = HandleOrigin(in_.graph, context_.inputs_[input]);
    if (origin.port == 0 && in_.ops[in_.graph.op_id(origin.node)].is_handle_source) {
      notes.push_back({origin.node, fact});
    }
  }
  context_.noted_.clear();
}

VariableFacts GraphInference::TakeVariables() {
  VariableFacts variables;
  for (const auto& [node, notes] : notes_) {
    for (const auto& [origin, fact] : notes) {
      VariableFact& kept = variables[origin];
      kept = JoinVariables(kept, fact, &pool_);
    }
  }
  notes_.clear();
  return variables;
}

bool GraphInference::IsStatedInFull() const {
  return !stated_.empty() && stated_.size() == context_.outputs_.size() &&
         std::all_of(stated_.begin(), stated_.end(),
                     [this](ShapeId shape) { return context_.FullyKnown(shape); });
}

void GraphInference::CallByName(ShapeContext& c) {
  std::vector<TensorFact> arguments, results;
  for (int i = 0; i < c.num_inputs(); ++i) arguments.push_back(c.fact(i));
  if (!c.Call(c.op(), 0, arguments, &results)) return;
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(results.size()); ++i) {
    c.outputs_[i].dtype = results[i].dtype;
    c.set_fact(i, results[i]);
  }
}

absl::Status GraphInference::Run(const StopToken& stop) {
  const Graph& graph = in_.graph;
  StopPoller poll(stop);
  if (!LayOut(&poll)) return stop.status(kStage);
  context_.facts_ = facts_.data();
  context_.said_ = in_.variables;
  context_.first_ = first_.data();
  std::vector<NodeId> loops;  // Merges that read a loop's end.
  for (NodeId id : in_.topology.order()) {
    if (poll.Tick()) return stop.status(kStage);
    if (absl::Status status = Visit(id); !status.ok()) return status;
    if (pool_.full()) return TooManyShapes(id);
    if (graph.has_control_flow() && graph.op_info(id).control_flow == ControlFlow::kMerge) {
      for (Tensor input : graph.inputs(id)) {
        if (!IsBackEdge(graph, input.node, id)) continue;
        loops.push_back(id);
        break;
      }
    }
  }
  if (loops.empty()) return absl::OkStatus();

  context_.first_round_ = false;
  std::vector<bool> is_loop(graph.num_nodes(), false), dirty(graph.num_nodes(), false);
  for (NodeId id : loops) is_loop[id] = dirty[id] = true;
  std::vector<TensorFact> before;
  for (int round = 1; round <= kMaxRounds; ++round) {
    bool changed = false;
    for (NodeId id : in_.topology.order()) {
      if (poll.Tick()) return stop.status(kStage);
      if (!dirty[id]) continue;
      dirty[id] = false;
      before.assign(facts_.begin() + first_[id], facts_.begin() + first_[id + 1]);
      // In the last round all loop results are unknown, so everything inferred then holds.
      if (absl::Status status = Visit(id); !status.ok()) return status;
      if (pool_.full()) return TooManyShapes(id);
      if (is_loop[id]) {
        TensorFact& fact = facts_[first_[id]];
        if (round == kMaxRounds) {
          fact.extra = fact.shape = kUnknownShape;
          if (!stated_.empty()) fact.shape = stated_[0];
        } else {
          const TensorFact joined = context_.JoinFacts(before[0], fact);
          fact.shape = joined.shape;
          fact.extra = joined.extra;
          fact.no_content = joined.no_content;
        }
      }
      if (std::equal(before.begin(), before.end(), facts_.begin() + first_[id], SameFact)) continue;
      const Graph::Readers readers = graph.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (readers[i].port == kControl) continue;
        dirty[readers[i].node] = true;
        changed = true;
      }
    }
    if (!changed || round == kMaxRounds) break;
    if (round + 1 == kMaxRounds) {
      for (NodeId id : loops) dirty[id] = true;
    }
  }
  return absl::OkStatus();
}

absl::Status GraphInference::Mismatch(NodeId id, absl::string_view failure) const {
  const Graph& graph = in_.graph;
  constexpr int kMaxShown = 6;
  std::string shapes;
  for (int i = 0; i < context_.num_inputs_ && i < kMaxShown; ++i) {
    absl::StrAppend(&shapes, i == 0 ? "" : ", ", ShapeText(pool_, context_.input(i)));
  }
  if (context_.num_inputs_ > kMaxShown) absl::StrAppend(&shapes, ", ...");
  return InvalidError(
      v1::ERROR_REASON_BAD_INPUT,
      absl::StrCat("node ", Quoted(graph.name(id)), " (", Quoted(graph.op(id)),
                   ") cannot take its inputs, of shapes ", shapes, ": ", failure,
                   "; correct the graph, or the feeds and batch_size if they are given"),
      {{"node", graph.name(id)}, {"field", "input"}, {"value", shapes}});
}

absl::Status GraphInference::BadFeed(NodeId id, int port, ShapeId feed, ShapeId shape) const {
  const std::string tensor = absl::StrCat(in_.graph.name(id), ":", port);
  return InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("feed ", Quoted(tensor), " has the shape ", ShapeText(pool_, feed),
                   ", but the graph says ", ShapeText(pool_, shape), " of that tensor of node ",
                   Quoted(in_.graph.name(id)), "; give the shape that is really fed"),
      {{"option", "feeds"},
       {"value", tensor},
       {"node", in_.graph.name(id)},
       {"field", kOutputShapesAttr}});
}

absl::Status GraphInference::CheckValue(NodeId id, int port, const FedTensor& feed,
                                        int dtype) const {
  if (feed.value == kNoValue || dtype == kDtInvalid) return absl::OkStatus();
  const std::string tensor = absl::StrCat(in_.graph.name(id), ":", port);
  const absl::string_view type = DataTypeName(static_cast<DataType>(dtype));
  const auto range = std::find_if(std::begin(kIntegers), std::end(kIntegers),
                                  [type](const IntegerType& known) { return known.name == type; });
  if (range == std::end(kIntegers)) {
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("feed ", Quoted(tensor), " has values, and is of type ", type,
                                     "; give values only of integers and bools"),
                        {{"option", "feeds"}, {"value", tensor}});
  }
  for (int64_t value : pool_[feed.value]) {
    if (value >= range->low && value <= range->high) continue;
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("feed ", Quoted(tensor), " has the value ", value,
                                     ", which no tensor of type ", type, " holds; give ",
                                     range->low, " to ", range->high),
                        {{"option", "feeds"}, {"value", tensor}});
  }
  return absl::OkStatus();
}

absl::Status GraphInference::TooManyShapes(NodeId id) const {
  return InvalidError(
      v1::ERROR_REASON_LIMIT_EXCEEDED,
      absl::StrCat("the graph has more different shapes than fit into ", ShapePool::kMaxItems,
                   " numbers, reached at node ", Quoted(in_.graph.name(id)),
                   "; this graph cannot be trained: give another one"),
      {{"node", in_.graph.name(id)}});
}

absl::Status GraphInference::TooLarge(NodeId id, int port, ShapeId shape) const {
  const std::string dims = absl::StrJoin(pool_[shape], ",");
  return InvalidError(
      v1::ERROR_REASON_BAD_ATTRIBUTE,
      absl::StrCat("output ", port, " of node ", Quoted(in_.graph.name(id)), " has the shape [",
                   dims,
                   "], whose size in bytes does not fit 63 bits; correct the shape, the feed or "
                   "batch_size"),
      {{"node", in_.graph.name(id)}, {"field", kOutputShapesAttr}, {"value", dims}});
}

}  // namespace spillway::core
