#include "rewrite_core/analysis/memory/buffers.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {
namespace {

enum class Alias : uint8_t {
  kNever,
  kFrom,       // Every output is the input `from`.
  kEach,       // Output i is input i.
  kMerge,      // Output 0 is one of the inputs.
  kSameBytes,  // Output 0 is the input `from` if their sizes are equal: there was nothing to do.
  kPart,       // The outputs are rows of the input `from`, if its rows are aligned.
  kSingle,     // Output 0 is input 0 if that is the only one.
  kTranspose,  // Output 0 is input 0 if only dimensions of 1 move.
};

constexpr uint32_t kAny = Buffers::kAnyInput;
// One row per family: whose memory the outputs share; which output may reuse which inputs in place;
// whether no kernel is launched, for any sizes.
struct Row {
  absl::string_view ops;
  Alias alias = Alias::kNever;
  int from = 0;
  int reuse_output = -1;
  uint32_t reuse_inputs = 0;
  bool bookkeeping = false;
  // An output of open size that counts as 0 bytes unless its size is known otherwise.
  int small_output = -1;
  bool list = false;     // The memory is that of list elements.
  int element = -1;      // The input that is written to a list,
  bool unpacks = false;  // or whose rows are.
};

constexpr Row Small(int output, absl::string_view ops) {
  Row row{ops};
  row.small_output = output;
  return row;
}

// Outputs the memory of the input that is written to a list, in place of the list.
constexpr Row Writes(int element, absl::string_view ops) {
  Row row{ops, Alias::kFrom, element};
  row.bookkeeping = row.list = true;
  row.element = element;
  return row;
}
// Writes copies of the rows of an input.
constexpr Row Unpacks(int element, absl::string_view ops) {
  Row row{ops};
  row.list = row.unpacks = true;
  row.element = element;
  return row;
}
// Outputs an element, or the list, that the input `list` stands for.
constexpr Row Takes(int list, absl::string_view ops) {
  Row row{ops, Alias::kFrom, list};
  row.bookkeeping = row.list = true;
  return row;
}

constexpr Row kRows[] = {
    // Lists; the stack's memory is found by its handle.
    Writes(1, "StackPushV2 TensorListPushBack"),
    Writes(2, "TensorArrayWriteV3 TensorListSetItem"),
    Unpacks(2, "TensorArrayScatterV3"),
    Unpacks(1, "TensorArraySplitV3"),
    Takes(2, "TensorArrayReadV3"),
    Takes(0,
          "TensorListFromTensor TensorListGetItem TensorListPopBack TensorListResize "
          "TensorListConcatLists"),
    {"StackPopV2", Alias::kNever, 0, -1, 0, true},
    // An optional, usually of one tensor, holds its input (OptionalFromValueOp in
    // core/kernels/optional_ops.cc).
    {"OptionalFromValue OptionalGetValue", Alias::kFrom, 0, -1, 0, true},
    {"OptionalNone", Alias::kNever, 0, -1, 0, true},
    // Unknown dimensions are assumed to be 0 (FakeParamOp in core/kernels/functional_ops.cc).
    Small(0, "FakeParam"),
    // Forwards its input (set_output(i, input(j)), or CopyFrom with another shape).
    {"Identity StopGradient PreventGradient CheckNumerics CheckNumericsV2 Reshape Squeeze "
     "ExpandDims "
     "Bitcast EnsureShape PlaceholderWithDefault GuaranteeConst DebugIdentity DebugIdentityV2 "
     "DebugIdentityV3 Print Enter Exit NextIteration LoopCond Switch _SwitchN RefIdentity RefEnter "
     "RefExit RefNextIteration RefSwitch ReadVariableOp _CopyFromGpuToHost "
     "_CopyFromHostToGpu",
     Alias::kFrom, 0, -1, 0, true},
    {"IdentityN _ReadVariablesOp", Alias::kEach, 0, -1, 0, true},
    {"Merge RefMerge", Alias::kMerge, 0, -1, 0, true},
    // Names memory, or only orders other nodes.
    {"Const VariableV2 Variable VarHandleOp _VarHandlesOp NoOp ControlTrigger Placeholder "
     "VarIsInitializedOp IsVariableInitialized StackV2 TensorArrayV3 TensorArrayGradV3 "
     "TensorArraySizeV3 EmptyTensorList TensorListReserve",
     Alias::kNever, 0, -1, 0, true},
    // Forwards its input if there is nothing to do: reductions of nothing, paddings of 0, multiples
    // of 1.
    {"Sum Mean Prod Max Min All Any Tile Pad PadV2 BroadcastTo Pack ConcatV2 Cast",
     Alias::kSameBytes},
    {"Concat", Alias::kSameBytes, 1},
    {"Transpose ConjugateTranspose", Alias::kTranspose},
    // Tensor::Slice.
    {"Slice StridedSlice SplitV Unpack", Alias::kPart},
    {"Split", Alias::kPart, 1},
    // forward_input_or_allocate_output. UnaryOp, UnaryElementWiseOp and others that work in place.
    {"Abs Acos Acosh Asin Asinh Atan Atanh Ceil Conj Cos Cosh Digamma Erf Erfc Erfinv Exp Expm1 "
     "Floor "
     "Inv Invert Lgamma Log Log1p LogicalNot Ndtri Neg Reciprocal Rint Round Rsqrt Sigmoid Sign "
     "Sin "
     "Sinh Sqrt Square Tan Tanh Elu Relu Relu6 Selu LeakyRelu Softplus Softsign Softmax LogSoftmax "
     "ZerosLike OnesLike BiasAdd BiasAddV1 Snapshot ClipByValue TensorScatterUpdate "
     "TensorScatterAdd "
     "TensorScatterSub TensorScatterMin TensorScatterMax",
     Alias::kNever, 0, 0, InputBit(0)},
    // BinaryOp and BinaryElementWiseOp.
    {"Add AddV2 Sub Mul MulNoNan Div DivNoNan RealDiv FloorDiv TruncateDiv FloorMod Mod "
     "TruncateMod "
     "Maximum Minimum Pow SquaredDifference Atan2 Xdivy Xlogy Xlog1py NextAfter BitwiseAnd "
     "BitwiseOr "
     "BitwiseXor LeftShift RightShift LogicalAnd LogicalOr Igamma Igammac Zeta Polygamma ReluGrad "
     "Relu6Grad EluGrad SeluGrad LeakyReluGrad SoftplusGrad SoftsignGrad SigmoidGrad TanhGrad "
     "SqrtGrad RsqrtGrad InvGrad ReciprocalGrad",
     Alias::kNever, 0, 0, InputBit(0) | InputBit(1)},
    {"Select SelectV2", Alias::kNever, 0, 0, InputBit(1) | InputBit(2)},
    {"AddN AccumulateNV2", Alias::kSingle, 0, 0, kAny},
    // The gradient with respect to the logits reuses their memory.
    {"SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits", Alias::kNever, 0, 1,
     InputBit(0)},
    // cuDNN's reserve space: 0 bytes for batch normalization alone, a bit for each element with an
    // activation fused into it (cudnnGetBatchNormalizationTrainingExReserveSpaceSize); TensorFlow's
    // kernel outputs an empty tensor if cuDNN is not used (fused_batch_norm_op.cc).
    Small(5, "FusedBatchNormV3 _FusedBatchNormEx"),
};

// Rows whose size is not a multiple of this are copied rather than shared: the largest alignment
// that Eigen may require (EIGEN_MAX_ALIGN_BYTES with AVX-512).
constexpr int64_t kRowAlignment = 64;

// Further outputs that a node of unknown type may have besides those that are read.
constexpr int64_t kUnreadOutputs = 4;

bool IsVariableReference(const OpInfo& info) { return absl::StrContains(info.outputs, '&'); }

// Bytes of a tensor; kUnknownSize if a dimension is unknown, or they do not fit 63 bits.
int64_t BytesOf(absl::Span<const int64_t> dims, int element_bytes) {
  int64_t bytes = element_bytes;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim < 0) return kUnknownSize;
    fits = fits && !__builtin_mul_overflow(bytes, dim, &bytes);
  }
  // A dimension of 0 makes it empty, regardless of the others.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  return fits ? bytes : kUnknownSize;
}

// Whether `part` is the shape of one or more rows (along the first dimension) of `whole`.
bool IsRows(const ShapeView& whole, const ShapeView& part, int element_bytes) {
  if (!whole.known_rank || !part.known_rank || whole.dims.empty()) return false;
  const absl::Span<const int64_t> row = whole.dims.subspan(1);
  const bool some = part.dims.size() == whole.dims.size() && part.dims.subspan(1) == row;
  if (!some && part.dims != row) return false;
  const int64_t bytes = BytesOf(row, element_bytes);
  return bytes != kUnknownSize && bytes % kRowAlignment == 0;
}

// Whether a permutation keeps the order of all dimensions other than 1.
bool MovesOnlyOnes(absl::Span<const int64_t> dims, absl::Span<const int64_t> permutation) {
  if (permutation.size() != dims.size()) return false;
  int64_t last = -1;
  for (int64_t from : permutation) {
    if (from < 0 || from >= static_cast<int64_t>(dims.size())) return false;
    if (dims[from] == 1) continue;
    if (from <= last) return false;
    last = from;
  }
  return true;
}

}  // namespace

class BufferFinder {
 public:
  BufferFinder(const Graph& graph, const Shapes& shapes, const Placement& placement,
               const Conditionals& conditionals, const Loops& loops, const Profile* profile,
               const StopToken& stop)
      : graph_(graph),
        shapes_(shapes),
        placement_(placement),
        conditionals_(conditionals),
        loops_(loops),
        profile_(profile),
        rows_(RowsByOp(graph, kRows)),
        stop_(stop),
        poll_(stop),
        result_(graph) {}

  absl::StatusOr<Buffers> Find(const Topology& topology) {
    result_.reuse_.resize(graph_.num_ops());
    result_.bookkeeping_.assign(graph_.num_ops(), false);
    for (int32_t op = 0; op < graph_.num_ops(); ++op) {
      if (rows_[op] == nullptr) continue;
      result_.reuse_[op] = {rows_[op]->reuse_output, rows_[op]->reuse_inputs};
      result_.bookkeeping_[op] = rows_[op]->bookkeeping;
    }
    const int32_t n = graph_.num_nodes();
    result_.first_.assign(n + 1, 0);
    for (NodeId id(0); id < n; ++id) {
      if (poll_.Tick()) return stop_.status("buffers");
      int32_t count = shapes_.num_outputs(id);
      // Readers are ordered by port.
      const Graph::Readers readers = graph_.readers(id);
      if (!readers.empty()) {
        const int64_t last = readers[readers.size() - 1].port;
        const int64_t believed = std::min(last + 1, int64_t{readers.size()} + kUnreadOutputs);
        count = std::max(count, static_cast<int32_t>(believed));
      }
      result_.first_[id + 1] = result_.first_[id] + count;
    }
    result_.outputs_.resize(result_.first_[n]);
    result_.buffers_.reserve(result_.first_[n]);
    const std::vector<NodeId>& order = loops_.order().empty() ? topology.order() : loops_.order();
    for (NodeId id : order) {
      // A Merge looks at its inputs.
      if (poll_.Tick(1 + graph_.inputs(id).size())) return stop_.status("buffers");
      for (int32_t port = 0; port < result_.num_outputs(id); ++port) {
        if (poll_.Tick()) return stop_.status("buffers");
        Place_(Tensor{id, port});
      }
    }
    if (!loops_.empty()) {
      for (NodeId id : order) {
        if (poll_.Tick()) return stop_.status("buffers");
        KeepElement(id);
      }
      if (!HoldLists()) return stop_.status("buffers");
    }
    result_.buffers_.shrink_to_fit();
    return std::move(result_);
  }

 private:
  Buffers::Output& out(Tensor tensor) { return result_.outputs_[result_.index(tensor)]; }

  int64_t Bytes(Tensor tensor) const {
    if (profile_ != nullptr) {
      const int64_t measured = profile_->allocated_bytes(tensor);
      if (measured != kUnknownSize) return measured;
    }
    const int64_t bytes = shapes_.bounds().buffer_bytes(tensor);
    if (bytes != kUnknownSize) return bytes;
    const Row* row = rows_[graph_.op_id(tensor.node)];
    return row != nullptr && row->small_output == tensor.port ? 0 : kUnknownSize;
  }

  // Whether Bytes is an upper bound.
  bool IsBound(Tensor tensor) const {
    return shapes_.buffer_bytes(tensor) == kUnknownSize &&
           shapes_.bounds().buffer_bytes(tensor) != kUnknownSize &&
           (profile_ == nullptr || profile_->allocated_bytes(tensor) == kUnknownSize);
  }

  // For the elements that a node makes from an input's rows.
  int64_t UnpackedBytes(NodeId id, int input) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (input >= static_cast<int>(inputs.size()) || inputs[input].is_control()) return kUnknownSize;
    return shapes_.bounds().buffer_bytes(inputs[input]);
  }

  // The node that made the stack, or other list, whose handle is an input of a node.
  NodeId ListOf(NodeId id, size_t input) {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (input >= inputs.size() || inputs[input].is_control()) return kNoNode;
    if (poll_.Tick(kMaxHandleHops / 8)) return kNoNode;
    return HandleOrigin(graph_, inputs[input]).node;
  }

  // The tensor that an iteration makes, looking through Identities. For a loop variable, which
  // holds the previous iteration's value, it is the value made for the next iteration.
  Tensor MadeInLoop(Tensor tensor) {
    constexpr int kMaxHops = 256;
    std::vector<NodeId> merges;
    for (int hop = 0; hop < kMaxHops && !poll_.Tick(); ++hop) {
      const auto shared = result_.shared_.find(result_.index(tensor));
      if (shared != result_.shared_.end()) {
        tensor = shared->second;
        continue;
      }
      const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
      const int32_t alias = out(tensor).alias_input;
      if (alias == kNoAlias) break;
      Tensor from = inputs[alias];
      constexpr size_t kMaxInputs = 8;  // For a Merge at the start of a loop; usually two.
      const bool is_merge = graph_.op_info(tensor.node).control_flow == ControlFlow::kMerge;
      for (Tensor input :
           is_merge&& inputs.size() <= kMaxInputs ? inputs : absl::Span<const Tensor>()) {
        if (input.is_control() || !IsBackEdge(graph_, input.node, tensor.node)) continue;
        if (std::find(merges.begin(), merges.end(), tensor.node) != merges.end()) break;
        merges.push_back(tensor.node);
        from = input;
      }
      if (out(from).buffer == kNoBuffer) break;  // Not visited yet: it is not made earlier.
      tensor = from;
    }
    return tensor;
  }

  // An element that the node writes to a list in a loop exists once per iteration since the list
  // was made.
  void KeepElement(NodeId id) {
    const Row* row = rows_[graph_.op_id(id)];
    if (row == nullptr || row->element < 0 || shapes_.IsFed(id)) return;
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (row->element >= static_cast<int>(inputs.size())) return;
    const Tensor element = inputs[row->element];
    const NodeId list = ListOf(id, 0);
    if (element.is_control() || list == kNoNode) return;
    // The list was created full, like that of a gradient: a new element replaces an old one.
    if (graph_.op(id) == "TensorListSetItem" && graph_.op(list) == "TensorListFromTensor") return;
    const BufferIndex held = row->unpacks ? out({id, 0}).buffer : out(MadeInLoop(element)).buffer;
    if (held == kNoBuffer) return;
    Buffers::Buffer& buffer = result_.buffers_[held];
    if (buffer.storage != Storage::kAllocated) return;
    buffer.in_list = true;
    const Loops::Loop* loop = loops_.loop(buffer.first.node);
    if (loop == nullptr || loops_.loop(list) == loop) return;
    buffer.copies = std::max(buffer.copies, loop->runs / loops_.runs(list));
    buffer.copies_known = buffer.copies_known && loop->is_known;
  }

  // Whether a node is part of a loop's body, or of a loop in it.
  bool IsWithin(NodeId id, const Loops::Loop* loop) const {
    constexpr int kMaxDepth = 64;
    const Loops::Loop* around = loops_.loop(id);
    for (int depth = 0; around != nullptr && around != loop; ++depth) {
      if (depth == kMaxDepth) return true;
      around = loops_.loop(around->enter);
    }
    return around == loop;
  }

  // A loop that takes elements out of a list is simulated once, which would free the list after its
  // last reader in the body; but each iteration takes only one element.
  bool HoldLists() {
    absl::flat_hash_map<std::pair<const Loops::Loop*, Place>, std::vector<NodeId>> ends;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (graph_.op_info(id).control_flow != ControlFlow::kNextIteration) continue;
      if (loops_.loop(id) != nullptr) ends[{loops_.loop(id), placement_.node(id)}].push_back(id);
    }
    constexpr size_t kMaxHeld = 1 << 20;  // Over all loops.
    size_t count = 0;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      const Loops::Loop* loop = loops_.loop(id);
      if (loop == nullptr || result_.num_outputs(id) == 0) continue;
      // A list is a loop variable; the content of a stack is known at the pop.
      const bool is_variable = graph_.op_info(id).control_flow == ControlFlow::kMerge;
      if (!is_variable && graph_.op(id) != "StackPopV2") continue;
      const BufferIndex held = out(is_variable ? MadeInLoop({id, 0}) : Tensor{id, 0}).buffer;
      if (held == kNoBuffer) continue;
      const Buffers::Buffer& buffer = result_.buffers_[held];
      if (buffer.copies <= 1 || IsWithin(buffer.first.node, loop)) continue;
      const auto last = ends.find({loop, buffer.place});
      if (last == ends.end()) continue;
      count += last->second.size();
      if (count > kMaxHeld) return true;
      for (NodeId end : last->second) {
        if (poll_.Tick()) return false;
        result_.held_[end].push_back(buffer.first);
      }
    }
    return true;
  }

  // For the variable that a handle stands for.
  int64_t VariableBytes(NodeId id) {
    if (id == sized_variable_) return variable_bytes_;  // It may have very many outputs.
    sized_variable_ = id;
    const ShapeView shape = shapes_.handle_shape({id, 0});
    DataType dtype = shapes_.captured_variable(id);
    if (dtype == kDtInvalid) {
      const auto held = graph_.attr(id, "dtype");
      if (held) dtype = AttrType(*held);
    }
    const int element_bytes = ElementBytes(dtype);
    variable_bytes_ =
        shape.known_rank && element_bytes > 0 ? BytesOf(shape.dims, element_bytes) : kUnknownSize;
    return variable_bytes_;
  }

  int32_t AliasInput(Tensor tensor, const Row& row, absl::Span<const Tensor> inputs) {
    const auto is_data = [&](int32_t i) {
      return i >= 0 && i < static_cast<int32_t>(inputs.size()) && !inputs[i].is_control();
    };
    switch (row.alias) {
      case Alias::kNever:
        return kNoAlias;
      case Alias::kFrom:
        return is_data(row.from) ? row.from : kNoAlias;
      case Alias::kEach:
        return is_data(tensor.port) ? tensor.port : kNoAlias;
      case Alias::kMerge: {
        if (tensor.port != 0) return kNoAlias;
        int32_t best = kNoAlias;
        for (int32_t i = 0; is_data(i); ++i) {
          if (IsBackEdge(graph_, inputs[i].node, tensor.node)) continue;
          if (conditionals_.IsDead(inputs[i])) continue;
          if (best == kNoAlias || out(inputs[i]).bytes > out(inputs[best]).bytes) best = i;
        }
        return best;
      }
      case Alias::kSameBytes: {
        if (tensor.port != 0 || !is_data(row.from)) return kNoAlias;
        const Tensor input = inputs[row.from];
        return Bytes(tensor) != kUnknownSize && Bytes(tensor) == out(input).bytes &&
                       shapes_.type(tensor).dtype == shapes_.type(input).dtype
                   ? row.from
                   : kNoAlias;
      }
      case Alias::kPart: {
        if (!is_data(row.from)) return kNoAlias;
        const Tensor input = inputs[row.from];
        const int element_bytes = ElementBytes(shapes_.type(tensor).dtype);
        return IsRows(shapes_.shape(input), shapes_.shape(tensor), element_bytes) ? row.from
                                                                                  : kNoAlias;
      }
      case Alias::kSingle:
        return tensor.port == 0 && is_data(0) && !is_data(1) ? 0 : kNoAlias;
      case Alias::kTranspose: {
        if (!is_data(0) || !is_data(1)) return kNoAlias;
        const ShapeView shape = shapes_.shape(inputs[0]);
        const auto permutation = shapes_.value(inputs[1]);
        return shape.known_rank && permutation && MovesOnlyOnes(shape.dims, *permutation)
                   ? 0
                   : kNoAlias;
      }
    }
    return kNoAlias;
  }

  void Place_(Tensor tensor) {
    const NodeId id = tensor.node;
    const int32_t op = graph_.op_id(id);
    const OpInfo& info = graph_.op_info(id);
    Buffers::Output& output = out(tensor);
    output.place = placement_.output(tensor);
    output.bytes = Bytes(tensor);
    output.is_bound = IsBound(tensor);
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    const bool is_variable = IsVariableOp(graph_.op(id)) && graph_.op(id) != "TemporaryVariable";
    if (is_variable || (tensor.port == 0 && shapes_.captured_variable(id) != kDtInvalid)) {
      output.storage = Storage::kVariable;
      if (output.place == kNoMemory) output.bytes = VariableBytes(id);
      return NewBuffer(tensor, placement_.node(id));
    }
    if (shapes_.IsFed(id)) {
      // Comes from outside, regardless of the node itself.
    } else if (Share(tensor)) {
      return;
    } else if (rows_[op] != nullptr) {
      output.alias_input = AliasInput(tensor, *rows_[op], inputs);
    } else if (IsVariableReference(info) && !inputs.empty() && !inputs[0].is_control()) {
      output.alias_input = 0;  // An update forwards the reference.
    }
    if (output.alias_input != kNoAlias) {
      const Buffers::Output& input = out(inputs[output.alias_input]);
      output.storage = input.storage;
      if (input.buffer != kNoBuffer) {
        Buffers::Buffer& buffer = result_.buffers_[input.buffer];
        if (output.place == kNoMemory || output.place == buffer.place) {
          if (output.place == kNoMemory) output.bytes = buffer.bytes;
          buffer.bytes = std::max(buffer.bytes, output.bytes);
          output.buffer = input.buffer;
          return;
        }
      }
    }
    if (output.place == kNoMemory) {
      output.storage = Storage::kNone;
      return;
    }
    output.storage = graph_.op(id) == "Const" ? Storage::kConstant : Storage::kAllocated;
    NewBuffer(tensor, output.place);
    if (rows_[op] != nullptr && rows_[op]->unpacks && !shapes_.IsFed(id)) {
      // The flow is a number that stands for the elements.
      result_.buffers_.back().bytes = UnpackedBytes(id, rows_[op]->element);
      result_.buffers_.back().in_list = true;
    }
  }

  // Memory shared with a tensor that is not an input.
  bool Share(Tensor tensor) {
    if (loops_.empty() || tensor.port != 0) return false;
    const NodeId id = tensor.node;
    Tensor with{loops_.last_value(id), 0};
    const bool pops = graph_.op(id) == "StackPopV2";
    if (graph_.op(id) == "StackPushV2") {
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      const NodeId stack = ListOf(id, 0);
      if (stack != kNoNode && inputs.size() > 1 && !inputs[1].is_control()) {
        pushed_[stack] = inputs[1];
      }
    } else if (pops) {
      const auto pushed = pushed_.find(ListOf(id, 0));
      if (pushed != pushed_.end()) with = MadeInLoop(pushed->second);
    }
    if (with.node == kNoNode) return false;
    Buffers::Output& output = out(tensor);
    const Buffers::Output& from = out(with);
    if (from.buffer == kNoBuffer) return false;
    Buffers::Buffer& buffer = result_.buffers_[from.buffer];
    if (output.place != kNoMemory && output.place != buffer.place) return false;
    output.storage = from.storage;
    output.buffer = from.buffer;
    if (!pops) output.alias_input = 0;  // Shares the loop's initial value.
    if (output.place == kNoMemory) output.bytes = buffer.bytes;
    result_.shared_[result_.index(tensor)] = with;
    return true;
  }

  void NewBuffer(Tensor tensor, Place place) {
    Buffers::Output& output = out(tensor);
    output.buffer = BufferIndex(result_.buffers_.size());
    result_.buffers_.push_back({tensor, output.bytes, place, output.storage});
  }

  const Graph& graph_;
  const Shapes& shapes_;
  const Placement& placement_;
  const Conditionals& conditionals_;
  const Loops& loops_;
  const Profile* profile_;
  const std::vector<const Row*> rows_;
  const StopToken& stop_;
  StopPoller poll_;                  // Results found after it has stopped do not matter.
  NodeId sized_variable_ = kNoNode;  // The last one, and its VariableBytes.
  int64_t variable_bytes_ = kUnknownSize;
  absl::flat_hash_map<NodeId, Tensor> pushed_;  // By stack: the last pushed tensor.
  Buffers result_;
};

absl::StatusOr<Buffers> Buffers::Find(const Graph& graph, const Topology& topology,
                                      const Shapes& shapes, const Placement& placement,
                                      const Conditionals& conditionals, const Loops& loops,
                                      const Profile* profile, const StopToken& stop) {
  return BufferFinder(graph, shapes, placement, conditionals, loops, profile, stop).Find(topology);
}

uint32_t Buffers::reusable_inputs(Tensor tensor) const {
  const Reuse& reuse = reuse_[graph_->op_id(tensor.node)];
  return reuse.output == tensor.port ? reuse.inputs : 0;
}

bool Buffers::ComputesOnHost(NodeId id) const { return Computes(id, /*on_host=*/true); }

bool Buffers::LaunchesKernel(NodeId id) const { return Computes(id, /*on_host=*/false); }

bool Buffers::Computes(NodeId id, bool on_host) const {
  if (bookkeeping_[graph_->op_id(id)]) return false;
  const int32_t count = num_outputs(id);
  if (count == 0) return true;
  if (IsVariableReference(graph_->op_info(id))) return true;
  for (int32_t port = 0; port < count; ++port) {
    const Output& output = outputs_[first_[id] + port];
    const bool is_there = on_host ? output.place == kHostPlace : output.place >= 0;
    if (is_there && output.alias_input == kNoAlias) return true;
  }
  return false;
}

}  // namespace spillway::core
