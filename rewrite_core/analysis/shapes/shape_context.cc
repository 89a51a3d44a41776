#include "rewrite_core/analysis/shapes/shape_context.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

// The serialized ListValue of an attribute; empty if it has none.
absl::string_view ListOf(absl::string_view value) {
  absl::string_view list;
  WireReader attr(value);
  while (attr.Next()) {
    if (attr.IsBytes(attr_value::kList)) list = attr.bytes();
  }
  return list;
}

constexpr TensorFact kNothing;

constexpr bool IsKnown(int64_t dim) { return dim >= 0; }

// Whether a value of one type is also a value of the other.
bool IsSameKind(int a, int b) { return (a == kDtBool) == (b == kDtBool); }

// Appends the numbers of a packed field, or the number of an unpacked one. False if there are too
// many.
bool AppendVarints(const WireReader& reader, DimVector* out) {
  google::protobuf::io::CodedInputStream packed(
      reinterpret_cast<const uint8_t*>(reader.bytes().data()),
      static_cast<int>(reader.bytes().size()));
  uint64_t item = 0;
  while (packed.ReadVarint64(&item)) {
    if (out->size() == ShapePool::kMaxListSize) return false;
    out->push_back(static_cast<int64_t>(item));
  }
  return true;
}

template <typename Int>
void AppendLittleEndian(absl::string_view bytes, DimVector* out) {
  for (size_t i = 0; i + sizeof(Int) <= bytes.size(); i += sizeof(Int)) {
    uint64_t item = 0;
    for (size_t b = sizeof(Int); b-- > 0;) item = item << 8 | static_cast<uint8_t>(bytes[i + b]);
    out->push_back(static_cast<Int>(item));
  }
}

}  // namespace

absl::optional<ShapeId> MergeStatements(ShapePool& pool, ShapeId a, ShapeId b) {
  if (a == b || b == kUnknownShape) return a;
  if (a == kUnknownShape) return b;
  const absl::Span<const int64_t> x = pool[a], y = pool[b];
  if (x.size() != y.size()) return absl::nullopt;
  DimVector dims(x.begin(), x.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == kUnknownDim) {
      dims[i] = y[i];
    } else if (y[i] != kUnknownDim && y[i] != dims[i]) {
      return absl::nullopt;
    }
  }
  return pool.Intern(dims);
}

ShapeId JoinShapes(ShapePool& pool, ShapeId a, ShapeId b) {
  if (a == b) return a;
  if (a == kUnknownShape || b == kUnknownShape || pool[a].size() != pool[b].size()) {
    return kUnknownShape;
  }
  DimVector dims(pool[a].begin(), pool[a].end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != pool[b][i]) dims[i] = kUnknownDim;
  }
  return pool.Intern(dims);
}

const TensorFact& ShapeContext::fact(int i) const {
  return i < 0 || i >= num_inputs_ ? kNothing : FactOf(inputs_[i]);
}

const TensorFact& ShapeContext::FactOf(Tensor tensor) const {
  const int64_t index = int64_t{first_[tensor.node]} + tensor.port;
  return index < first_[tensor.node + 1] ? facts_[index] : kNothing;
}

absl::optional<absl::Span<const int64_t>> ShapeContext::Value(int i) const {
  if (fact(i).bounded && (bounded_values_ >> std::min(i, 31) & 1) == 0) return absl::nullopt;
  return i < 0 || i >= num_inputs_ ? absl::nullopt : ValueOf(inputs_[i]);
}

absl::optional<absl::Span<const int64_t>> ShapeContext::ValueOf(Tensor tensor) const {
  const TensorFact& f = FactOf(tensor);
  if (!IsValueType(f.dtype) || f.is_ref) return absl::nullopt;
  if (f.extra == kUnknownShape && graph_.op(tensor.node) == "Const") {
    ReadConst(tensor, &facts_[first_[tensor.node] + tensor.port]);
  }
  if (f.extra <= kUnknownShape) return absl::nullopt;
  return pool_[f.extra];
}

absl::optional<float> ShapeContext::FloatValue(int i) const {
  // Fed tensors have kNoValue.
  const TensorFact& f = fact(i);
  if (f.dtype != kDtFloat32 || f.is_ref || f.extra != kUnknownShape) return absl::nullopt;
  const NodeId node = inputs_[i].node;
  if (graph_.op(node) == "Cast") {
    const absl::Span<const Tensor> inputs = graph_.inputs(node);
    if (inputs.empty() || inputs[0].is_control() || FactOf(inputs[0]).bounded) return absl::nullopt;
    const auto value = ValueOf(inputs[0]);
    if (!value || value->size() != 1 || value->front() == kUnknownElement) return absl::nullopt;
    return static_cast<float>(value->front());
  }
  if (graph_.op(node) != "Const" || Elements(f.shape) != 1) return absl::nullopt;
  uint32_t bits = 0;  // As of an empty list.
  WireReader reader(ConstTensor(node));
  while (reader.Next()) {
    if (reader.IsFixed32(tensor_proto::kFloatVal)) bits = static_cast<uint32_t>(reader.number());
    if ((reader.IsBytes(tensor_proto::kFloatVal) || reader.IsBytes(tensor_proto::kContent)) &&
        reader.bytes().size() == sizeof(bits)) {
      for (size_t at = sizeof(bits); at-- > 0;) {
        bits = bits << 8 | static_cast<uint8_t>(reader.bytes()[at]);
      }
    }
  }
  if (!reader.ok()) return absl::nullopt;
  return absl::bit_cast<float>(bits);
}

absl::string_view ShapeContext::ConstTensor(NodeId node) const {
  const_attrs_.Reset(graph_.node_bytes(node));
  const auto attr = const_attrs_.Find("value");
  return attr ? LastPayload(*attr, attr_value::kTensor) : absl::string_view();
}

void ShapeContext::ReadConst(Tensor tensor, TensorFact* fact) const {
  fact->extra = kNoValue;
  const int64_t count = Elements(fact->shape);
  if (count == kUnknownDim || count > ShapePool::kMaxListSize) return;
  const absl::string_view proto = ConstTensor(tensor.node);
  if (proto.data() == nullptr) return;
  const uint32_t list = fact->dtype == kDtInt32   ? tensor_proto::kIntVal
                        : fact->dtype == kDtInt64 ? tensor_proto::kInt64Val
                                                  : tensor_proto::kBoolVal;
  DimVector items;
  WireReader reader(proto);
  while (reader.Next()) {
    if (reader.IsBytes(tensor_proto::kContent)) {
      const size_t width = ElementBytes(static_cast<DataType>(fact->dtype));
      if (reader.bytes().size() != static_cast<size_t>(count) * width) continue;
      items.clear();
      if (width == 1) AppendLittleEndian<int8_t>(reader.bytes(), &items);
      if (width == 4) AppendLittleEndian<int32_t>(reader.bytes(), &items);
      if (width == 8) AppendLittleEndian<int64_t>(reader.bytes(), &items);
    } else if (reader.IsBytes(list)) {
      if (!AppendVarints(reader, &items)) return;
    } else if (reader.IsVarint(list)) {
      if (items.size() == ShapePool::kMaxListSize) return;
      items.push_back(static_cast<int64_t>(reader.number()));
    }
  }
  if (!reader.ok() || static_cast<int64_t>(items.size()) > count) return;
  // A list that is too short continues with its last item; an empty one is zeros.
  const int64_t last = items.empty() ? 0 : items.back();
  items.resize(count, last);
  fact->extra = pool_.Intern(items);
}

int64_t ShapeContext::ScalarValue(int i) const {
  const auto value = Value(i);
  return value && value->size() == 1 ? value->front() : kUnknownElement;
}

ShapeId ShapeContext::ShapeFromValue(int i) {
  const ShapeId shape = input(i);
  if (rank(shape) == 0) return kUnknownShape;  // A scalar -1 stands for an unknown shape.
  if (rank(shape) > 1) {
    Demand(i, 1, 1);
    return kUnknownShape;
  }
  const auto value = Value(i);
  if (!value) {
    const int64_t size = dim(shape, 0);
    return size <= kMaxRank ? OfRank(static_cast<int>(size)) : kUnknownShape;
  }
  DimVector dims(value->begin(), value->end());
  for (int64_t& dim : dims) {
    if (dim == kUnknownElement) dim = kUnknownDim;
    if (dim < -1) {
      Fail(absl::StrCat("input ", i, " spells a shape with the dimension ", dim));
      return kUnknownShape;
    }
  }
  return Make(dims);
}

ShapeId ShapeContext::handle(int i) const {
  const TensorFact& f = fact(i);
  return IsHandleType(f.dtype) && f.extra > kUnknownShape ? f.extra : kUnknownShape;
}

absl::optional<absl::Span<const int64_t>> ShapeContext::SaidValue(int i) const {
  if (said_ == nullptr || i < 0 || i >= num_inputs_) return absl::nullopt;
  const auto found = said_->find(HandleOrigin(graph_, inputs_[i]).node);
  if (found == said_->end() || found->second.value <= kUnknownShape) return absl::nullopt;
  return pool_[found->second.value];
}

bool ShapeContext::pending(int i) const {
  return first_round_ && IsBackEdge(graph_, inputs_[i].node, node_);
}

int64_t ShapeContext::Int(absl::string_view key, int64_t otherwise) {
  const auto value = attrs_.Find(key);
  return value ? AttrInt(*value).value_or(otherwise) : otherwise;
}

bool ShapeContext::Bool(absl::string_view key, bool otherwise) {
  const auto value = attrs_.Find(key);
  return value ? AttrBool(*value).value_or(otherwise) : otherwise;
}

absl::string_view ShapeContext::String(absl::string_view key, absl::string_view otherwise) {
  const auto value = attrs_.Find(key);
  return value ? AttrString(*value).value_or(otherwise) : otherwise;
}

DataType ShapeContext::Type(absl::string_view key) {
  const auto value = attrs_.Find(key);
  return value ? AttrType(*value) : kDtInvalid;
}

int64_t ShapeContext::CountTypes(absl::string_view key) {
  const auto value = attrs_.Find(key);
  return value ? CountAttrTypes(*value) : -1;
}

DataType ShapeContext::FirstType(absl::string_view key) {
  DataType first = kDtInvalid;
  if (const auto value = attrs_.Find(key)) {
    ForEachAttrType(*value, [&first](DataType type) {
      first = type;
      return false;
    });
  }
  return first;
}

DimVector ShapeContext::Ints(absl::string_view key) {
  DimVector items;
  const auto value = attrs_.Find(key);
  if (!value) return items;
  WireReader reader(ListOf(*value));
  while (reader.Next() && items.size() < ShapePool::kMaxListSize) {
    if (reader.IsVarint(attr_value::kListInt)) {
      items.push_back(static_cast<int64_t>(reader.number()));
    } else if (reader.IsBytes(attr_value::kListInt)) {
      AppendVarints(reader, &items);
    }
  }
  return items;
}

absl::InlinedVector<float, 8> ShapeContext::Floats(absl::string_view key) {
  absl::InlinedVector<float, 8> items;
  const auto append = [&](uint32_t bits) {
    float item;
    std::memcpy(&item, &bits, sizeof(item));
    if (items.size() < ShapePool::kMaxListSize) items.push_back(item);
  };
  const auto value = attrs_.Find(key);
  if (!value) return items;
  WireReader reader(ListOf(*value));
  while (reader.Next()) {
    if (reader.IsFixed32(attr_value::kListFloat)) {
      append(static_cast<uint32_t>(reader.number()));
    } else if (reader.IsBytes(attr_value::kListFloat)) {
      DimVector bits;
      AppendLittleEndian<int32_t>(reader.bytes().substr(0, 4 * ShapePool::kMaxListSize), &bits);
      for (int64_t item : bits) append(static_cast<uint32_t>(item));
    }
  }
  return items;
}

ShapeId ShapeContext::ShapeAttr(absl::string_view key) {
  const auto value = attrs_.Find(key);
  if (!value) return kUnknownShape;
  absl::optional<absl::string_view> shape;
  WireReader attr(*value);
  while (attr.Next()) {
    if (attr.IsBytes(attr_value::kShape)) shape = attr.bytes();
  }
  return shape && attr.ok() ? ReadShape(*shape).value_or(kUnknownShape) : kUnknownShape;
}

std::vector<ShapeId> ShapeContext::ShapesAttr(absl::string_view key) {
  std::vector<ShapeId> shapes;
  ReadShapes(key, num_outputs(), &shapes);
  return shapes;
}

void ShapeContext::ReadShapes(absl::string_view key, int most, std::vector<ShapeId>* shapes) {
  shapes->clear();
  const auto value = attrs_.Find(key);
  if (!value) return;
  WireReader reader(ListOf(*value));
  while (static_cast<int>(shapes->size()) < most && reader.Next()) {
    if (!reader.IsBytes(attr_value::kListShape)) continue;
    const auto shape = ReadShape(reader.bytes());
    if (!shape) break;
    shapes->push_back(*shape);
  }
}

ShapeId ShapeContext::SourceShapeAttr(int i, absl::string_view key) {
  if (i < 0 || i >= num_inputs_) return kUnknownShape;
  const NodeId source = inputs_[i].node;
  const auto found = source_shapes_.find({source, key});
  if (found != source_shapes_.end()) return found->second.front();
  const_attrs_.Reset(graph_.node_bytes(source));
  std::swap(attrs_, const_attrs_);
  const ShapeId shape = ShapeAttr(key);
  std::swap(attrs_, const_attrs_);
  source_shapes_[{source, key}] = {shape};
  return shape;
}

std::vector<ShapeId> ShapeContext::SourceShapesAttr(int i, absl::string_view key) {
  if (i < 0 || i >= num_inputs_) return {};
  const NodeId source = inputs_[i].node;
  auto found = source_shapes_.find({source, key});
  if (found == source_shapes_.end()) {
    const_attrs_.Reset(graph_.node_bytes(source));
    std::swap(attrs_, const_attrs_);
    std::vector<ShapeId> all;
    ReadShapes(key, std::numeric_limits<int>::max(), &all);
    std::swap(attrs_, const_attrs_);
    found = source_shapes_.emplace(std::make_pair(source, key), std::move(all)).first;
  }
  const std::vector<ShapeId>& all = found->second;
  return {all.begin(), all.begin() + std::min<size_t>(all.size(), num_outputs())};
}

ShapeId ShapeContext::TensorAttrShape(absl::string_view key) {
  const auto value = attrs_.Find(key);
  if (!value) return kUnknownShape;
  absl::optional<absl::string_view> tensor, shape;
  WireReader attr(*value);
  while (attr.Next()) {
    if (attr.IsBytes(attr_value::kTensor)) tensor = attr.bytes();
  }
  if (!tensor) return kUnknownShape;
  WireReader reader(*tensor);
  while (reader.Next()) {
    if (reader.IsBytes(tensor_proto::kShape)) shape = reader.bytes();
  }
  if (!attr.ok() || !reader.ok()) return kUnknownShape;
  return ReadShape(shape.value_or("")).value_or(kUnknownShape);
}

absl::optional<ShapeId> ShapeContext::ReadShape(absl::string_view proto) {
  // Many long shapes are limited by the pool; here they would count twice.
  constexpr size_t kMaxKept = 1 << 16;
  if (read_shapes_.size() == kMaxKept) return DecodeShape(proto);
  const auto [it, is_new] = read_shapes_.try_emplace(proto);
  if (is_new) it->second = DecodeShape(proto);
  return it->second;
}

absl::optional<ShapeId> ShapeContext::DecodeShape(absl::string_view proto) const {
  DimVector dims;
  bool unknown_rank = false;
  WireReader reader(proto);
  while (reader.Next()) {
    if (reader.IsVarint(shape_proto::kUnknownRank)) unknown_rank = reader.number() != 0;
    if (!reader.IsBytes(shape_proto::kDim)) continue;
    int64_t size = 0;
    WireReader dim(reader.bytes());
    while (dim.Next()) {
      if (dim.IsVarint(shape_proto::kDimSize)) size = static_cast<int64_t>(dim.number());
    }
    if (!dim.ok()) return absl::nullopt;
    if (dims.size() == kMaxRank) return kUnknownShape;
    dims.push_back(size < 0 ? kUnknownDim : size);
  }
  if (!reader.ok()) return absl::nullopt;
  return unknown_rank ? kUnknownShape : pool_.Intern(dims);
}

absl::string_view ShapeContext::Function(absl::string_view key) {
  const auto value = attrs_.Find(key);
  return value ? AttrFunction(*value).value_or("") : "";
}

std::vector<absl::string_view> ShapeContext::Functions(absl::string_view key) {
  const auto value = attrs_.Find(key);
  return value ? AttrFunctions(*value) : std::vector<absl::string_view>();
}

int64_t ShapeContext::dim(ShapeId s, int i) const {
  const absl::Span<const int64_t> dims = pool_[s];
  if (i < 0) i += static_cast<int>(dims.size());
  return i >= 0 && i < static_cast<int>(dims.size()) ? dims[i] : kUnknownDim;
}

ShapeId ShapeContext::Make(absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    Fail(absl::StrCat("a shape has ", dims.size(), " dimensions; ", kMaxRank, " is the most"));
    return kUnknownShape;
  }
  return pool_.Intern(dims);
}

ShapeId ShapeContext::OfRank(int rank) {
  if (rank < 0) return kUnknownShape;
  return Make(DimVector(rank, kUnknownDim));
}

ShapeId ShapeContext::Concat(ShapeId a, ShapeId b) {
  if (!known(a) || !known(b)) return kUnknownShape;
  if (b == kScalar) return a;
  if (a == kScalar) return b;
  DimVector dims(pool_[a].begin(), pool_[a].end());
  dims.insert(dims.end(), pool_[b].begin(), pool_[b].end());
  return Make(dims);
}

ShapeId ShapeContext::Slice(ShapeId s, int begin, int end) {
  if (!known(s)) return kUnknownShape;
  const int size = rank(s);
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  begin = std::min(std::max(begin, 0), size);
  end = std::max(std::min(end, size), begin);
  return Make(pool_[s].subspan(begin, end - begin));
}

ShapeId ShapeContext::ReplaceDim(ShapeId s, int i, int64_t dim) {
  DimVector dims(pool_[s].begin(), pool_[s].end());
  if (i < 0) i += static_cast<int>(dims.size());
  if (!known(s) || i < 0 || i >= static_cast<int>(dims.size())) return kUnknownShape;
  dims[i] = dim;
  return Make(dims);
}

ShapeId ShapeContext::Demand(int i, int min_rank, int max_rank) {
  const ShapeId s = input(i);
  if (!known(s)) return min_rank == max_rank ? OfRank(min_rank) : kUnknownShape;
  if (rank(s) >= min_rank && rank(s) <= max_rank) return s;
  Fail(absl::StrCat("input ", i, " has rank ", rank(s), ", but it takes ",
                    rank(s) < min_rank ? (min_rank == max_rank ? "" : "at least ")
                                       : (min_rank == max_rank ? "" : "at most "),
                    rank(s) < min_rank ? min_rank : max_rank));
  return min_rank == max_rank ? OfRank(min_rank) : kUnknownShape;
}

int64_t ShapeContext::MergeDims(int64_t a, int64_t b) {
  if (!IsKnown(a)) return b;
  if (!IsKnown(b) || a == b) return a;
  Fail(absl::StrCat("dimensions that must be equal are ", a, " and ", b));
  return kUnknownDim;
}

ShapeId ShapeContext::Merge(ShapeId a, ShapeId b) {
  if (a == b || !known(b)) return a;
  if (!known(a)) return b;
  if (rank(a) != rank(b)) {
    Fail(absl::StrCat("the shapes ", ShapeText(pool_, a), " and ", ShapeText(pool_, b),
                      " must be equal"));
    return kUnknownShape;
  }
  DimVector dims(pool_[a].begin(), pool_[a].end());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = MergeDims(dims[i], pool_[b][i]);
  return Make(dims);
}

ShapeId ShapeContext::Broadcast(ShapeId a, ShapeId b) {
  if (a == b && FullyKnown(a)) return a;
  if (!known(a) || !known(b)) return kUnknownShape;
  if (a == kScalar) return b;
  if (b == kScalar) return a;
  const int size = std::max(rank(a), rank(b));
  DimVector dims(size);
  for (int i = 1; i <= size; ++i) {
    const int64_t x = i <= rank(a) ? dim(a, -i) : 1;
    const int64_t y = i <= rank(b) ? dim(b, -i) : 1;
    int64_t& out = dims[size - i];
    if (x == 1 || y == 1) {
      out = x == 1 ? y : x;
    } else if (IsKnown(x) && IsKnown(y) && x != y) {
      Fail(absl::StrCat("the shapes ", ShapeText(pool_, a), " and ", ShapeText(pool_, b),
                        " do not broadcast"));
      return kUnknownShape;
    } else {
      // An unknown dimension paired with one that is neither 1 nor unknown must be 1 or equal.
      out = IsKnown(x) ? x : y;
    }
  }
  return Make(dims);
}

int ShapeContext::Axis(int64_t axis, int rank) {
  if (rank < 0 || axis == kUnknownElement) return -1;
  if (axis < -rank || axis >= rank) {
    Fail(absl::StrCat("axis ", axis, " is not in a shape of rank ", rank));
    return -1;
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void ShapeContext::Fail(absl::string_view what) {
  if (failure_.empty()) failure_ = std::string(what);
}

int64_t ShapeContext::Add(int64_t a, int64_t b) {
  int64_t sum;
  return IsKnown(a) && IsKnown(b) && !__builtin_add_overflow(a, b, &sum) ? sum : kUnknownDim;
}

int64_t ShapeContext::Sub(int64_t a, int64_t b) {
  return IsKnown(a) && IsKnown(b) && a >= b ? a - b : kUnknownDim;
}

int64_t ShapeContext::Mul(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  return IsKnown(a) && IsKnown(b) && !__builtin_mul_overflow(a, b, &product) ? product
                                                                             : kUnknownDim;
}

int64_t ShapeContext::Div(int64_t a, int64_t b) {
  return IsKnown(a) && b > 0 ? a / b : kUnknownDim;
}

void ShapeContext::set(int port, ShapeId shape) {
  if (HasOutput(port)) outputs_[port].shape = shape;
}

void ShapeContext::set_bound(int port, ShapeId shape) {
  if (!HasOutput(port) || !FullyKnown(shape)) return;
  has_bounds_ = true;
  if (!infers_bounds_) return;
  outputs_[port].shape = shape;
  outputs_[port].bounded = true;
}

void ShapeContext::set_all(ShapeId shape) {
  for (TensorFact& output : outputs_) output.shape = shape;
}

void ShapeContext::refine(int port, ShapeId shape) {
  if (HasOutput(port)) set(port, Merge(outputs_[port].shape, shape));
}

void ShapeContext::set_shape_value(int port, ShapeId shape) {
  DimVector value(pool_[shape].begin(), pool_[shape].end());
  for (int64_t& item : value) {
    if (item == kUnknownDim) item = kUnknownElement;
  }
  if (known(shape)) set_value(port, value);
}

void ShapeContext::set_value(int port, absl::Span<const int64_t> value) {
  if (!HasOutput(port) || !IsValueType(outputs_[port].dtype)) return;
  if (value.size() > ShapePool::kMaxListSize) return;
  if (std::all_of(value.begin(), value.end(), [](int64_t v) { return v == kUnknownElement; }) &&
      !value.empty()) {
    return;
  }
  outputs_[port].extra = pool_.Intern(value);
}

void ShapeContext::set_handle(int port, ShapeId shape) {
  if (HasOutput(port) && IsHandleType(outputs_[port].dtype)) outputs_[port].extra = shape;
}

void ShapeContext::pass_extra(int port, int input) {
  if (!HasOutput(port)) return;
  const TensorFact& from = fact(input);
  TensorFact& to = outputs_[port];
  if (IsHandleType(to.dtype) && IsHandleType(from.dtype)) {
    to.extra = from.extra;
  } else if (IsValueType(to.dtype) && IsSameKind(to.dtype, from.dtype) && Value(input)) {
    to.extra = fact(input).extra;
  }
}

void ShapeContext::set_fact(int port, const TensorFact& from) {
  if (!HasOutput(port)) return;
  TensorFact& to = outputs_[port];
  to.shape = from.shape;
  to.no_content = from.no_content;
  const bool same_kind =
      (IsHandleType(to.dtype) && IsHandleType(from.dtype)) ||
      (IsValueType(to.dtype) && IsValueType(from.dtype) && IsSameKind(to.dtype, from.dtype));
  if (same_kind && from.extra > kUnknownShape) to.extra = from.extra;
}

bool ShapeContext::Call(absl::string_view function, int first,
                        absl::Span<const TensorFact> arguments, std::vector<TensorFact>* results) {
  results->clear();
  // In the function bounds would be treated as exact.
  for (const TensorFact& argument : arguments) {
    if (argument.bounded) return false;
  }
  const CallFacts* facts = caller_ == nullptr ? nullptr : caller_->Call(function, arguments);
  if (facts == nullptr) return false;
  *results = facts->results;
  for (size_t i = 0; i < facts->arguments.size(); ++i) {
    if (facts->arguments[i].says_something()) {
      note_variable(first + static_cast<int>(i), facts->arguments[i]);
    }
  }
  return true;
}

TensorFact ShapeContext::JoinFacts(const TensorFact& a, const TensorFact& b) {
  if (a.no_content != b.no_content) {
    TensorFact joined = a.no_content ? b : a;
    // The placeholder has the same rank, and may have known dimensions that the other lacks.
    const ShapeId stated = a.no_content ? a.shape : b.shape;
    joined.shape = MergeStatements(pool_, joined.shape, stated).value_or(joined.shape);
    return joined;
  }
  TensorFact joined = a;
  joined.shape = Join(a.shape, b.shape);
  if (a.extra == b.extra) return joined;
  joined.extra = kUnknownShape;
  if (a.dtype != b.dtype || a.extra <= kUnknownShape || b.extra <= kUnknownShape) return joined;
  if (IsHandleType(a.dtype)) {
    joined.extra = Join(a.extra, b.extra);
  } else if (a.shape == b.shape && pool_[a.extra].size() == pool_[b.extra].size()) {
    DimVector items(pool_[a.extra].begin(), pool_[a.extra].end());
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i] != pool_[b.extra][i]) items[i] = kUnknownElement;
    }
    joined.extra = pool_.Intern(items);
  }
  return joined;
}

std::string ShapeText(const ShapePool& pool, ShapeId shape) {
  if (shape == kUnknownShape) return "?";
  std::string text = "[";
  for (int64_t dim : pool[shape]) {
    if (text.size() > 1) text += ',';
    if (dim < 0) {
      text += '?';
    } else {
      absl::StrAppend(&text, dim);
    }
  }
  return text + "]";
}

}  // namespace spillway::core
