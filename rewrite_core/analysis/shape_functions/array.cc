// Arrays: constants, shapes as tensors, and everything that moves elements without computing.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shape_table.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

using Values = absl::Span<const int64_t>;

bool PutsOutIntegers(ShapeContext& c, int port = 0) { return IsValueType(c.output_type(port)); }

void Const(ShapeContext& c) { c.set(0, c.TensorAttrShape("value")); }

void Placeholder(ShapeContext& c) {
  const ShapeId shape = c.ShapeAttr("shape");
  // A scalar meant "unknown" before producer 22.
  if (shape != kScalar || c.producer() > 21) c.set(0, shape);
}

void ShapeAttribute(ShapeContext& c) { c.set(0, c.ShapeAttr("shape")); }

void EnsureShape(ShapeContext& c) {
  c.pass(0, 0);
  c.refine(0, c.ShapeAttr("shape"));
}

// Each output is the input at its position.
void PassAll(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.pass(i, i);
}

// ---- Shapes as tensors.
void SetShapeOf(ShapeContext& c, int port, ShapeId shape) {
  c.set(port, c.known(shape) ? c.Make({c.rank(shape)}) : c.OfRank(1));
  c.set_shape_value(port, shape);
}

void ShapeOp(ShapeContext& c) { SetShapeOf(c, 0, c.input(0)); }

void ShapeN(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) SetShapeOf(c, i, c.input(i));
}

void Size(ShapeContext& c) {
  c.set(0, kScalar);
  if (const int64_t count = c.Elements(c.input(0)); count >= 0) c.set_value(0, {count});
}

void Rank(ShapeContext& c) {
  c.set(0, kScalar);
  if (c.known(c.input(0))) c.set_value(0, {c.rank(c.input(0))});
}

// BroadcastArgs(s0, s1): the shape that both broadcast to.
void BroadcastArgs(ShapeContext& c) {
  const auto a = c.Value(0), b = c.Value(1);
  const int64_t x = c.dim(c.WithRank(0, 1), 0), y = c.dim(c.WithRank(1, 1), 0);
  c.set(0, c.Make({x < 0 || y < 0 ? kUnknownDim : std::max(x, y)}));
  if (a && b) {
    const ShapeId shape = c.Broadcast(c.ShapeFromValue(0), c.ShapeFromValue(1));
    if (c.known(shape)) c.set_shape_value(0, shape);
  }
}

// BroadcastGradientArgs(s0, s1) -> r0, r1: over which axes the gradients of two operands that were
// broadcast are to be summed.
void BroadcastGradientArgs(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  const auto a = c.Value(0), b = c.Value(1);
  if (!a || !b) return;
  const int size = static_cast<int>(std::max(a->size(), b->size()));
  const auto at = [size](Values v, int i) {
    const int skipped = size - static_cast<int>(v.size());
    return i < skipped ? int64_t{1} : v[i - skipped];
  };
  DimVector sums[2];
  for (int i = 0; i < size; ++i) {
    const int64_t x = at(*a, i), y = at(*b, i);
    if (x == kUnknownElement || y == kUnknownElement) return;
    // Where both are 1, TensorFlow sums over both, which changes nothing.
    if (x == 1) sums[0].push_back(i);
    if (y == 1) sums[1].push_back(i);
  }
  if (std::equal(a->begin(), a->end(), b->begin(), b->end())) sums[0] = sums[1] = {};
  for (int i = 0; i < 2; ++i) {
    c.set(i, c.Make({static_cast<int64_t>(sums[i].size())}));
    c.set_value(i, sums[i]);
  }
}

// ---- Other views of the same elements.
void Reshape(ShapeContext& c) {
  const ShapeId in = c.input(0);
  ShapeId out = c.ShapeFromValue(1);
  if (c.known(in) && c.known(out)) {
    // One dimension that is not known follows from the number of elements.
    int64_t known = 1, open = -1, opens = 0;
    const Values dims = c.dims(out);
    for (int i = 0; i < c.rank(out); ++i) {
      if (dims[i] == kUnknownDim) {
        open = i;
        ++opens;
      } else {
        known = c.Mul(known, dims[i]);
      }
    }
    const int64_t elements = c.Elements(in);
    if (elements >= 0 && opens == 0 && known != elements && known >= 0) {
      c.Fail(absl::StrCat(elements, " elements do not make a shape of ", known));
    } else if (elements >= 0 && opens == 1 && known > 0) {
      if (elements % known != 0) {
        c.Fail(absl::StrCat(elements, " elements are no multiple of ", known));
      } else {
        out = c.ReplaceDim(out, static_cast<int>(open), elements / known);
      }
    }
  }
  c.set(0, out);
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void ExpandDims(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  const int64_t at = c.ScalarValue(1);
  if (at == kUnknownElement) return c.set(0, c.OfRank(c.rank(in) + 1));
  const int axis = c.Axis(at, c.rank(in) + 1);
  if (axis < 0) return;
  c.set(0, c.Concat(c.Concat(c.Slice(in, 0, axis), c.Make({1})), c.Slice(in, axis)));
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void Squeeze(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  std::vector<bool> drop(c.rank(in), false);
  const DimVector axes = c.Ints("squeeze_dims");
  for (int64_t item : axes) {
    const int axis = c.Axis(item, c.rank(in));
    if (axis < 0) return;
    if (c.dim(in, axis) > 1 || c.dim(in, axis) == 0) {
      return c.Fail(absl::StrCat("dimension ", axis, " is ", c.dim(in, axis), ", not 1"));
    }
    drop[axis] = true;
  }
  DimVector out;
  for (int i = 0; i < c.rank(in); ++i) {
    const int64_t dim = c.dim(in, i);
    // Without axes, one that is not known may be 1 or not: not even the rank is known.
    if (axes.empty() && dim == kUnknownDim) return;
    if (!drop[i] && (!axes.empty() || dim != 1)) out.push_back(dim);
  }
  c.set(0, c.Make(out));
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void Transpose(ShapeContext& c) {
  ShapeId in = c.input(0);
  const auto order = c.Value(1);
  if (!c.known(in)) {
    const int64_t size = c.dim(c.input(1), 0);
    in = size > kMaxRank ? kUnknownShape : c.OfRank(static_cast<int>(size));
  }
  if (!c.known(in)) return;
  if (c.rank(in) < 2) return c.set(0, in);
  DimVector out(c.rank(in), kUnknownDim);
  if (order) {
    if (order->size() != out.size()) {
      return c.Fail(absl::StrCat("a permutation of ", order->size(), " for rank ", out.size()));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const int axis = c.Axis((*order)[i], c.rank(in));
      if (axis >= 0) out[i] = c.dim(in, axis);
    }
  }
  c.set(0, c.Make(out));
}

void Bitcast(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const int from = ElementBytes(c.input_type(0)), to = ElementBytes(c.output_type(0));
  if (!c.known(in) || from == 0 || to == 0) return;
  if (from == to) return c.set(0, in);
  if (from > to) return c.set(0, c.Concat(in, c.Make({from / to})));
  c.set(0, c.Slice(in, 0, -1));
}

// ---- Joining and splitting.

// `values` are inputs first to last, not included.
void ConcatInputs(ShapeContext& c, int first, int last, int axis_input) {
  int rank = -1;
  for (int i = first; i < last; ++i) {
    if (!c.known(c.input(i))) continue;
    if (rank >= 0 && c.rank(c.input(i)) != rank)
      return c.Fail("the ranks of what is joined differ");
    rank = c.rank(c.input(i));
  }
  if (rank < 0) return;
  const int64_t at = c.ScalarValue(axis_input);
  if (at == kUnknownElement) return c.set(0, c.OfRank(rank));
  const int axis = c.Axis(at, rank);
  if (axis < 0) return;
  ShapeId out = kUnknownShape;
  int64_t sum = 0;
  for (int i = first; i < last; ++i) {
    sum = c.Add(sum, c.dim(c.input(i), axis));
    if (c.known(c.input(i))) out = c.Merge(out, c.ReplaceDim(c.input(i), axis, kUnknownDim));
  }
  c.set(0, c.ReplaceDim(out, axis, sum));
  if (!PutsOutIntegers(c)) return;
  // The value, row by row of what stands before the axis.
  const int64_t count = c.Elements(c.output(0));
  if (count < 0 || count > ShapePool::kMaxListSize) return;
  const int64_t rows = c.Elements(c.Slice(out, 0, axis));
  DimVector items;
  for (int64_t row = 0; row < rows; ++row) {
    for (int i = first; i < last; ++i) {
      // A dimension of 0 makes the whole's count known, whatever this one's is.
      const int64_t size = c.Elements(c.Slice(c.input(i), axis));
      if (size < 0) return;
      const auto value = c.Value(i);
      for (int64_t k = 0; k < size; ++k) {
        items.push_back(value ? (*value)[row * size + k] : kUnknownElement);
      }
    }
  }
  c.set_value(0, items);
}

void Concat(ShapeContext& c) { ConcatInputs(c, 1, c.num_inputs(), 0); }
void ConcatV2(ShapeContext& c) { ConcatInputs(c, 0, c.num_inputs() - 1, c.num_inputs() - 1); }

// ConcatOffset(axis, shapes...): where each part begins, one vector per part.
void ConcatOffset(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set(i, c.input(i + 1));
  const int64_t at = c.ScalarValue(0);
  const auto first = c.Value(1);
  // Of few dimensions, as tensors have: each output has a list of its own.
  constexpr size_t kMostDimensions = 16;
  if (at == kUnknownElement || !first || first->size() > kMostDimensions) return;
  const int axis = c.Axis(at, static_cast<int>(first->size()));
  if (axis < 0) return;
  int64_t offset = 0;
  for (int i = 0; i < c.num_outputs(); ++i) {
    DimVector begin(first->size(), 0);
    begin[axis] = offset < 0 ? kUnknownElement : offset;
    c.set_value(i, begin);
    const auto shape = c.Value(i + 1);
    offset = c.Add(offset, shape && shape->size() == first->size() ? (*shape)[axis] : kUnknownDim);
  }
}

void Pack(ShapeContext& c) {
  ShapeId item = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) item = c.Merge(item, c.input(i));
  if (!c.known(item)) return;
  const int axis = c.Axis(c.Int("axis"), c.rank(item) + 1);
  if (axis < 0) return;
  c.set(0,
        c.Concat(c.Concat(c.Slice(item, 0, axis), c.Make({c.num_inputs()})), c.Slice(item, axis)));
  if (item != kScalar || !PutsOutIntegers(c) || c.num_inputs() > ShapePool::kMaxListSize) return;
  DimVector items;
  for (int i = 0; i < c.num_inputs(); ++i) items.push_back(c.ScalarValue(i));
  c.set_value(0, items);
}

void Unpack(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (!c.known(in)) return;
  const int axis = c.Axis(c.Int("axis"), c.rank(in));
  if (axis < 0) return;
  if (c.Has("num")) c.MergeDims(c.dim(in, axis), c.Int("num"));
  c.set_all(c.Concat(c.Slice(in, 0, axis), c.Slice(in, axis + 1)));
  const auto value = PutsOutIntegers(c) && c.rank(in) == 1 ? c.Value(0) : absl::nullopt;
  for (int i = 0; value && i < c.num_outputs() && i < static_cast<int>(value->size()); ++i) {
    c.set_value(i, {(*value)[i]});
  }
}

// Split(axis, value) into equal parts.
void Split(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(1, 1);
  const int64_t at = c.ScalarValue(0);
  if (at == kUnknownElement) return c.set_all(c.OfRank(c.rank(in)));
  const int axis = c.Axis(at, c.rank(in));
  const int64_t parts = c.Int("num_split", c.num_outputs());
  if (axis < 0 || parts < 1) return;
  const int64_t dim = c.dim(in, axis);
  if (dim >= 0 && dim % parts != 0) {
    return c.Fail(absl::StrCat("dimension ", axis, " is ", dim, ", no multiple of ", parts));
  }
  c.set_all(c.ReplaceDim(in, axis, c.Div(dim, parts)));
  const auto value = PutsOutIntegers(c) && c.rank(in) == 1 ? c.Value(1) : absl::nullopt;
  const size_t size = value ? value->size() / parts : 0;
  for (int i = 0; size > 0 && i < c.num_outputs() && (i + 1) * size <= value->size(); ++i) {
    c.set_value(i, value->subspan(i * size, size));
  }
}

// SplitV(value, sizes, axis); one size may be -1.
void SplitV(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  const int64_t at = c.ScalarValue(2);
  if (at == kUnknownElement) return c.set_all(c.OfRank(c.rank(in)));
  const int axis = c.Axis(at, c.rank(in));
  if (axis < 0) return;
  const auto sizes = c.Value(1);
  if (c.num_outputs() == 1 && !sizes) return c.set(0, in);
  int64_t rest = c.dim(in, axis);
  for (size_t i = 0; sizes && i < sizes->size(); ++i) {
    if ((*sizes)[i] != -1) rest = c.Sub(rest, (*sizes)[i]);
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    int64_t dim = kUnknownDim;
    if (sizes && i < static_cast<int>(sizes->size())) {
      dim = (*sizes)[i] == -1 ? rest : std::max((*sizes)[i], kUnknownDim);
    }
    c.set(i, c.ReplaceDim(in, axis, dim));
  }
}

// ---- Slices.
void Slice(ShapeContext& c) {
  ShapeId in = c.input(0);
  const auto begin = c.Value(1), size = c.Value(2);
  if (!c.known(in)) {
    int64_t rank = c.dim(c.input(1), 0);
    if (rank < 0) rank = c.dim(c.input(2), 0);
    if (rank > kMaxRank) return;
    in = c.OfRank(static_cast<int>(rank));
  }
  if (!c.known(in)) return;
  const size_t rank = c.rank(in);
  if ((begin && begin->size() != rank) || (size && size->size() != rank)) {
    return c.Fail(absl::StrCat("begin and size must have ", rank, " elements, one per dimension"));
  }
  DimVector out(rank, kUnknownDim);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = c.dim(in, static_cast<int>(i));
    const int64_t from = begin ? (*begin)[i] : kUnknownElement;
    const int64_t count = size ? (*size)[i] : kUnknownElement;
    if (count == -1) {
      out[i] = c.Sub(dim, from);
    } else if (count >= 0) {
      out[i] = count;
      if (dim >= 0 && (count > dim || (from >= 0 && from > dim - count))) {
        return c.Fail(absl::StrCat("dimension ", i, " is ", dim, "; the slice is beyond it"));
      }
    }
  }
  c.set(0, c.Make(out));
  const auto value = rank == 1 && PutsOutIntegers(c) ? c.Value(0) : absl::nullopt;
  if (value && begin && (*begin)[0] >= 0 && out[0] >= 0 &&
      (*begin)[0] + out[0] <= static_cast<int64_t>(value->size())) {
    c.set_value(0, value->subspan((*begin)[0], out[0]));
  }
}

// One dimension of a strided slice. Returns its length (kUnknownDim if unknown) and, where all is
// known, the first index.
int64_t StridedLength(int64_t dim, int64_t begin, int64_t end, int64_t stride, bool all_begin,
                      bool all_end, int64_t* first) {
  if (stride == kUnknownElement || stride == 0) return kUnknownDim;
  if (all_begin && all_end && std::abs(stride) == 1) {
    *first = stride > 0 ? 0 : dim - 1;
    return dim;
  }
  if ((!all_begin && begin == kUnknownElement) || (!all_end && end == kUnknownElement)) {
    return kUnknownDim;
  }
  if (dim == kUnknownDim) {
    // From a known begin to a known end of the same sign, were it long enough, which is not known;
    // but nothing is nothing.
    if (!all_begin && !all_end && (begin >= 0) == (end >= 0) &&
        (stride > 0 ? begin >= end : begin <= end)) {
      return 0;
    }
    return kUnknownDim;
  }
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  const auto clip = [=](int64_t i) { return std::min(std::max(i < 0 ? i + dim : i, low), high); };
  const int64_t from = all_begin ? (stride > 0 ? 0 : dim - 1) : clip(begin);
  const int64_t to = all_end ? (stride > 0 ? dim : -1) : clip(end);
  *first = from;
  const int64_t span = stride > 0 ? to - from : from - to;
  // Where |stride| may be as large as it likes.
  if (span <= 0) return 0;
  if (stride >= span || stride <= -span) return 1;
  return (span - 1) / std::abs(stride) + 1;
}

// StridedSlice(input, begin, end, strides): TensorFlow's form of Python's slices.
void StridedSlice(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const auto begin = c.Value(1), end = c.Value(2), strides = c.Value(3);
  const int64_t specs = c.dim(c.Merge(c.Merge(c.input(1), c.input(2)), c.input(3)), 0);
  const int64_t begin_mask = c.Int("begin_mask"), end_mask = c.Int("end_mask"),
                ellipsis_mask = c.Int("ellipsis_mask"), new_axis_mask = c.Int("new_axis_mask"),
                shrink_mask = c.Int("shrink_axis_mask");
  // The masks have 32 bits.
  if (specs < 0 || specs > 32 || !strides || strides->size() != static_cast<size_t>(specs)) return;
  // How many dimensions the specs consume; an ellipsis stands for the others.
  int consumed = 0, ellipsis = -1;
  for (int i = 0; i < specs; ++i) {
    if (ellipsis_mask >> i & 1) {
      if (ellipsis >= 0) return c.Fail("it has two ellipses");
      ellipsis = i;
    } else if (!(new_axis_mask >> i & 1)) {
      ++consumed;
    }
  }
  if (!c.known(in)) return;
  const int rank = c.rank(in);
  if (consumed > rank) {
    return c.Fail(absl::StrCat("it takes ", consumed, " indices of a shape of rank ", rank));
  }
  DimVector out;
  int at = 0;  // In the input's shape.
  int64_t first = kUnknownElement, length = kUnknownDim, stride = 1;
  const auto keep = [&](int count) {
    for (int i = 0; i < count; ++i) out.push_back(c.dim(in, at++));
  };
  for (int i = 0; i < specs; ++i) {
    if (i == ellipsis) {
      keep(rank - consumed);
    } else if (new_axis_mask >> i & 1) {
      out.push_back(1);
    } else {
      const int64_t b = begin ? (*begin)[i] : kUnknownElement;
      const int64_t e = end ? (*end)[i] : kUnknownElement;
      const int64_t dim = c.dim(in, at++);
      if ((*strides)[i] == 0) return c.Fail("a stride is 0");
      stride = (*strides)[i];
      if (shrink_mask >> i & 1) {
        // One element: at b.
        if (b != kUnknownElement && dim >= 0) {
          if (b < -dim || b >= dim) {
            return c.Fail(absl::StrCat("index ", b, " is not in a dimension of ", dim));
          }
          first = b < 0 ? b + dim : b;
        }
        length = 1;
      } else {
        length = StridedLength(dim, b, e, stride, begin_mask >> i & 1, end_mask >> i & 1, &first);
        out.push_back(length);
      }
    }
  }
  if (ellipsis < 0) keep(rank - at);
  c.set(0, c.Make(out));
  // Of a vector's value.
  if (rank != 1 || consumed != 1 || new_axis_mask != 0 || ellipsis >= 0 || !PutsOutIntegers(c)) {
    return;
  }
  const auto value = c.Value(0);
  if (!value || first < 0 || length < 0 || length > ShapePool::kMaxListSize) return;
  DimVector items;
  for (int64_t i = 0, index = first; i < length; ++i) {
    if (index < 0 || index >= static_cast<int64_t>(value->size())) return;
    items.push_back((*value)[index]);
    if (i + 1 < length) index += stride;
  }
  c.set_value(0, items);
}

// StridedSliceGrad(shape, begin, end, strides, dy) and others whose input 0 spells the shape.
void ShapeFromFirst(ShapeContext& c) { c.set(0, c.ShapeFromValue(0)); }

// BroadcastTo(input, shape): of a shape that is not known, it has the dimensions that are not 1.
void BroadcastTo(ShapeContext& c) {
  const ShapeId in = c.input(0), shape = c.ShapeFromValue(1);
  if (!c.known(shape) || !c.known(in)) return c.set(0, shape);
  DimVector dims(c.dims(shape).begin(), c.dims(shape).end());
  if (c.rank(in) > static_cast<int>(dims.size())) return c.Fail("the shape has a smaller rank");
  for (int i = 1; i <= c.rank(in); ++i) {
    int64_t& dim = dims[dims.size() - i];
    if (dim == kUnknownDim && c.dim(in, -i) > 1) dim = c.dim(in, -i);
  }
  c.set(0, c.Make(dims));
}

// ---- Padding. Input 1 is a matrix of what is added (sign 1) or taken away before and behind each
// dimension.
void PadBy(ShapeContext& c, int sign) {
  ShapeId in = c.input(0);
  const ShapeId paddings = c.WithRank(1, 2);
  if (!c.known(in) && c.dim(paddings, 0) <= kMaxRank) {
    in = c.OfRank(static_cast<int>(c.dim(paddings, 0)));
  }
  if (!c.known(in)) return;
  const auto value = c.Value(1);
  DimVector out(c.rank(in), kUnknownDim);
  if (value && value->size() != out.size() * 2)
    return c.Fail("paddings must have a row per dimension");
  for (size_t i = 0; value && i < out.size(); ++i) {
    const int64_t both = c.Add((*value)[2 * i], (*value)[2 * i + 1]);
    const int64_t dim = c.dim(in, static_cast<int>(i));
    out[i] = sign > 0 ? c.Add(dim, both) : c.Sub(dim, both);
  }
  c.set(0, c.Make(out));
}

void Pad(ShapeContext& c) { PadBy(c, 1); }
void MirrorPadGrad(ShapeContext& c) { PadBy(c, -1); }

void Tile(ShapeContext& c) {
  ShapeId in = c.input(0);
  const ShapeId multiples = c.WithRank(1, 1);
  if (!c.known(in) && c.dim(multiples, 0) <= kMaxRank) {
    in = c.OfRank(static_cast<int>(c.dim(multiples, 0)));
  }
  if (!c.known(in)) return;
  if (c.rank(in) == 0) return c.set(0, in);
  const auto value = c.Value(1);
  DimVector out(c.rank(in), kUnknownDim);
  if (value && value->size() != out.size()) return c.Fail("multiples must have one per dimension");
  for (size_t i = 0; value && i < out.size(); ++i) {
    if ((*value)[i] >= 0) out[i] = c.Mul(c.dim(in, static_cast<int>(i)), (*value)[i]);
  }
  c.set(0, c.Make(out));
}

// ---- Gather and scatter.

// Of a vector's value.
void GatherValue(ShapeContext& c) {
  if (!PutsOutIntegers(c) || c.rank(c.input(0)) != 1) return;
  const auto value = c.Value(0), indices = c.Value(1);
  if (!value || !indices) return;
  DimVector items;
  for (int64_t index : *indices) {
    const bool there = index >= 0 && index < static_cast<int64_t>(value->size());
    items.push_back(there ? (*value)[index] : kUnknownElement);
  }
  c.set_value(0, items);
}

void Gather(ShapeContext& c) {
  const ShapeId params = c.WithRankAtLeast(0, 1);
  c.set(0, c.Concat(c.input(1), c.Slice(params, 1)));
  GatherValue(c);
}

void GatherV2(ShapeContext& c) {
  const ShapeId params = c.WithRankAtLeast(0, 1), indices = c.input(1);
  if (!c.known(params) || !c.known(indices)) return;
  int64_t batch = c.Int("batch_dims");
  if (batch < 0) batch += c.rank(indices);
  if (batch < 0 || batch > c.rank(indices) || batch > c.rank(params)) {
    return c.Fail(absl::StrCat("batch_dims is ", batch));
  }
  const int64_t at = c.ScalarValue(2);
  const int rank = static_cast<int>(c.rank(params) - 1 + c.rank(indices) - batch);
  if (at == kUnknownElement) return c.set(0, c.OfRank(rank));
  const int axis = c.Axis(at, c.rank(params));
  if (axis < 0) return;
  c.set(0, c.Concat(c.Concat(c.Slice(params, 0, axis), c.Slice(indices, static_cast<int>(batch))),
                    c.Slice(params, axis + 1)));
  if (batch == 0) GatherValue(c);
}

void GatherNd(ShapeContext& c) {
  const ShapeId params = c.input(0), indices = c.WithRankAtLeast(1, 1);
  const int64_t depth = c.dim(indices, -1);
  if (!c.known(params) || !c.known(indices) || depth == kUnknownDim) return;
  if (depth > c.rank(params)) {
    return c.Fail(absl::StrCat("indices of length ", depth, " into rank ", c.rank(params)));
  }
  c.set(0, c.Concat(c.Slice(indices, 0, -1), c.Slice(params, static_cast<int>(depth))));
}

// ScatterNd(indices, updates, shape).
void ScatterNd(ShapeContext& c) { c.set(0, c.ShapeFromValue(2)); }

void OneHot(ShapeContext& c) {
  const ShapeId indices = c.input(0);
  if (!c.known(indices)) return;
  const int64_t depth = c.ScalarValue(1);
  const int rank = c.rank(indices);
  const int64_t at = c.Int("axis", -1);
  const int axis = at == -1 ? rank : c.Axis(at, rank + 1);
  if (axis < 0) return;
  c.set(0, c.Concat(c.Concat(c.Slice(indices, 0, axis), c.Make({std::max(depth, kUnknownDim)})),
                    c.Slice(indices, axis)));
}

// ---- Filled.
void SetAllItems(ShapeContext& c, int64_t item) {
  const int64_t count = c.Elements(c.output(0));
  if (PutsOutIntegers(c) && count >= 0 && count <= ShapePool::kMaxListSize) {
    c.set_value(0, DimVector(count, item));
  }
}

void Fill(ShapeContext& c) {
  c.set(0, c.ShapeFromValue(0));
  if (PutsOutIntegers(c)) SetAllItems(c, c.ScalarValue(1));
}

void ZerosLike(ShapeContext& c) {
  c.set(0, c.input(0));
  // A list is the same list of empty elements.
  if (IsHandleType(c.output_type(0))) c.pass_extra(0, 0);
  SetAllItems(c, 0);
}

void OnesLike(ShapeContext& c) {
  c.set(0, c.input(0));
  SetAllItems(c, 1);
}

void Range(ShapeContext& c) {
  c.set(0, c.OfRank(1));
  const int64_t start = c.ScalarValue(0), limit = c.ScalarValue(1), delta = c.ScalarValue(2);
  if (start == kUnknownElement || limit == kUnknownElement || delta == kUnknownElement) return;
  if (delta == 0) return c.Fail("delta is 0");
  int64_t span;
  if (__builtin_sub_overflow(delta > 0 ? limit : start, delta > 0 ? start : limit, &span)) return;
  if (span < 0) {
    return c.Fail(absl::StrCat("from ", start, " to ", limit, " by ", delta, " goes away from it"));
  }
  int64_t count = 0;
  if (span > 0) count = delta > 0 ? (span - 1) / delta + 1 : -((span - 1) / delta) + 1;
  c.set(0, c.Make({count}));
  if (count > ShapePool::kMaxListSize) return;
  DimVector items;
  for (int64_t i = 0, item = start; i < count; ++i) {
    items.push_back(item);
    if (i + 1 < count) item += delta;
  }
  c.set_value(0, items);
}

void LinSpace(ShapeContext& c) { c.set(0, c.Make({std::max(c.ScalarValue(2), kUnknownDim)})); }

// ---- Of a size that depends on the values.
void Where(ShapeContext& c) { c.set(0, c.Make({kUnknownDim, c.rank(c.input(0))})); }

// Unique(x) -> y, idx[, count].
void Unique(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  c.set(1, c.WithRank(0, 1));
}

// UniqueV2(x, axis).
void UniqueV2(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const auto axes = c.Value(1);
  c.set(1, c.OfRank(1));
  c.set(2, c.OfRank(1));
  if (!axes) return c.set(0, c.OfRank(c.rank(in)));
  const int64_t at = axes->empty() ? 0 : (*axes)[0];
  if (axes->size() > 1) return c.Fail("it takes one axis or none");
  const int axis = c.Axis(at, c.rank(in));
  if (axis < 0) return;
  c.set(0, c.ReplaceDim(in, axis, kUnknownDim));
  c.set(1, c.Make({c.dim(in, axis)}));
}

void ListDiff(ShapeContext& c) { c.set_all(c.OfRank(1)); }

void InvertPermutation(ShapeContext& c) {
  c.set(0, c.WithRank(0, 1));
  const auto value = c.Value(0);
  if (!value) return;
  DimVector items(value->size(), kUnknownElement);
  for (size_t i = 0; i < value->size(); ++i) {
    const int64_t at = (*value)[i];
    if (at >= 0 && at < static_cast<int64_t>(items.size())) items[at] = static_cast<int64_t>(i);
  }
  c.set_value(0, items);
}

// DynamicStitch(indices..., data...): as long as the highest index says.
void DynamicStitch(ShapeContext& c) {
  const int parts = c.num_inputs() / 2;
  int64_t size = 0;
  ShapeId item = kUnknownShape;
  bool whole = PutsOutIntegers(c);
  for (int i = 0; i < parts; ++i) {
    const ShapeId indices = c.input(i), data = c.input(parts + i);
    if (c.known(indices) && c.known(data)) item = c.Merge(item, c.Slice(data, c.rank(indices)));
    const auto value = c.Value(i);
    if (!value) size = kUnknownDim;
    for (size_t k = 0; value && k < value->size(); ++k) {
      const int64_t index = (*value)[k];
      if (index < 0 || index >= std::numeric_limits<int32_t>::max()) {
        size = kUnknownDim;  // Not known, or not legal.
      } else if (size != kUnknownDim) {
        size = std::max(size, index + 1);
      }
    }
  }
  if (!c.known(item)) return;
  c.set(0, c.Concat(c.Make({size}), item));
  if (!whole || item != kScalar || size < 0 || size > ShapePool::kMaxListSize) return;
  DimVector items(size, kUnknownElement);
  for (int i = 0; i < parts; ++i) {
    const auto indices = c.Value(i), data = c.Value(parts + i);
    for (size_t k = 0; k < indices->size(); ++k) {
      items[(*indices)[k]] = data && data->size() == indices->size() ? (*data)[k] : kUnknownElement;
    }
  }
  c.set_value(0, items);
}

// DynamicPartition(data, partitions).
void DynamicPartition(ShapeContext& c) {
  const ShapeId data = c.input(0), partitions = c.input(1);
  if (!c.known(data) || !c.known(partitions)) return;
  if (c.rank(partitions) > c.rank(data)) return c.Fail("partitions has a higher rank than data");
  c.set_all(c.Concat(c.OfRank(1), c.Slice(data, c.rank(partitions))));
}

// ---- Space, batch and depth.

// Blocks of `blocks` go from space to batch (sign 1), or back.
void MoveSpaceAndBatch(ShapeContext& c, int sign, Values blocks, int block_rank,
                       absl::optional<Values> paddings) {
  const ShapeId in = c.WithRankAtLeast(0, 1 + block_rank);
  if (!c.known(in)) return;
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 0; i < block_rank; ++i) {
    const int64_t block = blocks.empty() ? kUnknownDim : std::max(blocks[i], kUnknownDim);
    const int64_t both = paddings && paddings->size() == 2 * static_cast<size_t>(block_rank)
                             ? c.Add((*paddings)[2 * i], (*paddings)[2 * i + 1])
                             : kUnknownDim;
    if (sign > 0) {
      const int64_t padded = c.Add(out[i + 1], both);
      if (padded >= 0 && block > 0 && padded % block != 0) {
        return c.Fail(absl::StrCat("dimension ", i + 1, " is ", padded,
                                   " with its padding, no "
                                   "multiple of the block of ",
                                   block));
      }
      out[i + 1] = c.Div(padded, block);
      out[0] = c.Mul(out[0], block);
    } else {
      out[i + 1] = c.Sub(c.Mul(out[i + 1], block), both);
      out[0] = c.Div(out[0], block);
    }
  }
  c.set(0, c.Make(out));
}

// SpaceToBatchND(input, block_shape, paddings).
void BlocksND(ShapeContext& c, int sign) {
  const int64_t rank = c.dim(c.WithRank(1, 1), 0);
  if (rank < 0 || rank >= kMaxRank) return;
  const auto blocks = c.Value(1), paddings = c.Value(2);
  MoveSpaceAndBatch(c, sign, blocks ? *blocks : Values(), static_cast<int>(rank), paddings);
}

// SpaceToBatch(input, paddings), of images.
void Blocks(ShapeContext& c, int sign) {
  const int64_t block = c.Int("block_size");
  c.WithRank(0, 4);
  MoveSpaceAndBatch(c, sign, {block, block}, 2, c.Value(1));
}

void SpaceToBatchND(ShapeContext& c) { BlocksND(c, 1); }
void BatchToSpaceND(ShapeContext& c) { BlocksND(c, -1); }
void SpaceToBatch(ShapeContext& c) {
  Blocks(c, 1);
  c.refine(0, c.OfRank(4));
}

void BatchToSpace(ShapeContext& c) {
  Blocks(c, -1);
  c.refine(0, c.OfRank(4));
}

// SpaceToDepth (sign 1) and DepthToSpace, of images in any layout.
void MoveSpaceAndDepth(ShapeContext& c, int sign) {
  const absl::string_view format = c.String("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") return;
  const ShapeId in = c.WithRank(0, 4);
  const int64_t block = c.Int("block_size");
  if (block < 1 || block > std::numeric_limits<int32_t>::max()) return;
  const int channel = format == "NHWC" ? 3 : 1, row = format == "NHWC" ? 1 : 2;
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i : {row, row + 1}) {
    if (sign > 0 && out[i] >= 0 && out[i] % block != 0) {
      return c.Fail(absl::StrCat("dimension ", i, " is ", out[i], ", no multiple of ", block));
    }
    out[i] = sign > 0 ? c.Div(out[i], block) : c.Mul(out[i], block);
  }
  const int64_t depth = out[channel];
  if (sign < 0 && depth >= 0 && depth % (block * block) != 0) {
    return c.Fail(absl::StrCat("depth ", depth, " is no multiple of ", block * block));
  }
  out[channel] = sign > 0 ? c.Mul(depth, block * block) : c.Div(depth, block * block);
  c.set(0, c.Make(out));
}

void SpaceToDepth(ShapeContext& c) { MoveSpaceAndDepth(c, 1); }
void DepthToSpace(ShapeContext& c) { MoveSpaceAndDepth(c, -1); }

// ---- Diagonals.
void MatrixDiag(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (c.known(in)) c.set(0, c.Concat(in, c.Make({c.dim(in, -1)})));
}

void MatrixDiagPart(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t rows = c.dim(in, -2), columns = c.dim(in, -1);
  c.set(0, c.Concat(c.Slice(in, 0, -2),
                    c.Make({rows < 0 || columns < 0 ? kUnknownDim : std::min(rows, columns)})));
}

// MatrixSetDiag(input, diagonal): the batch dimensions are those of both.
void MatrixSetDiag(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2), diagonal = c.WithRankAtLeast(1, 1);
  const ShapeId batch = c.known(diagonal) ? c.Slice(diagonal, 0, -1) : kUnknownShape;
  c.set(0, c.Merge(in, c.Concat(batch, c.OfRank(2))));
}

// A band of diagonals: an input holds one number, or the lowest and the highest. Above the main
// diagonal (0) they are positive.
struct Band {
  int64_t low, high;
};

absl::optional<Band> ReadBand(ShapeContext& c, int input) {
  // More than a dimension can have; so sums do not overflow.
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto k = c.Value(input);
  if (!k || k->empty() || k->size() > 2) return absl::nullopt;
  for (int64_t item : *k) {
    if (item < -kMost || item > kMost) return absl::nullopt;
  }
  if (k->front() > k->back()) return absl::nullopt;
  return Band{k->front(), k->back()};
}

// MatrixDiagPartV2(input, k, padding): a row for each diagonal, if there is more than one.
void MatrixDiagPartV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  const auto band = ReadBand(c, 1);
  if (!c.known(in) || !band) return;
  const int64_t rows = c.dim(in, -2), columns = c.dim(in, -1);
  int64_t length = kUnknownDim;
  if (rows >= 0 && columns >= 0) {
    length = std::min(rows + std::min<int64_t>(band->high, 0),
                      columns - std::max<int64_t>(band->low, 0));
  }
  ShapeId out = c.Slice(in, 0, -2);
  if (band->low < band->high) out = c.Concat(out, c.Make({band->high - band->low + 1}));
  c.set(0, c.Concat(out, c.Make({std::max(length, kUnknownDim)})));
}

// MatrixDiagV2(diagonal, k, rows, columns, padding); -1: as few as hold the diagonals, and for a
// square.
void MatrixDiagV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  const auto band = ReadBand(c, 1);
  const int64_t rows = c.ScalarValue(2), columns = c.ScalarValue(3);
  if (!c.known(in) || !band) return;
  const ShapeId batch = c.Slice(in, 0, band->low < band->high ? -2 : -1);
  const int64_t length = c.dim(in, -1);
  if (rows == kUnknownElement || columns == kUnknownElement) {
    return c.set(0, c.Concat(batch, c.OfRank(2)));
  }
  const bool square = rows == -1 && columns == -1;
  int64_t least_rows = kUnknownDim, least_columns = kUnknownDim;
  if (length >= 0) {
    least_rows = c.Add(length, -std::min<int64_t>(band->high, 0));
    least_columns = c.Add(length, std::max<int64_t>(band->low, 0));
    if (square) least_rows = least_columns = std::max(least_rows, least_columns);
  }
  c.set(0, c.Concat(batch, c.Make({rows >= 0 ? rows : least_rows,
                                   columns >= 0 ? columns : least_columns})));
}

// MatrixSetDiagV2(input, diagonal, k).
void MatrixSetDiagV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2), diagonal = c.WithRankAtLeast(1, 1);
  const auto band = ReadBand(c, 2);
  c.set(0, in);
  if (!band || !c.known(diagonal)) return;
  const ShapeId batch = c.Slice(diagonal, 0, band->low < band->high ? -2 : -1);
  c.set(0, c.Merge(in, c.Concat(batch, c.OfRank(2))));
}

void Diag(ShapeContext& c) { c.set(0, c.Concat(c.input(0), c.input(0))); }

void DiagPart(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  if (c.rank(in) % 2 != 0) return c.Fail("the rank must be even");
  const int half = c.rank(in) / 2;
  c.set(0, c.Merge(c.Slice(in, 0, half), c.Slice(in, half)));
}

void Reverse(ShapeContext& c) {
  c.set(0, c.input(0));
  const auto value = PutsOutIntegers(c) && c.rank(c.input(0)) == 1 ? c.Value(0) : absl::nullopt;
  const auto axes = c.Value(1);
  if (!value || !axes || axes->size() != 1) return;
  c.set_value(0, DimVector(value->rbegin(), value->rend()));
}

// Reverse(tensor, dims): a boolean for each dimension.
void ReverseMarked(ShapeContext& c) {
  const int64_t rank = c.dim(c.WithRank(1, 1), 0);
  c.set(0,
        c.Merge(c.input(0), rank <= kMaxRank ? c.OfRank(static_cast<int>(rank)) : kUnknownShape));
}

// LowerBound(sorted, values).
void ShapeOfSecond(ShapeContext& c) { c.set(0, c.input(1)); }

void Pass(ShapeContext& c) { c.pass(0, 0); }

constexpr ShapeRule kRules[] = {
    {"BatchToSpace", BatchToSpace},
    {"BatchToSpaceND", BatchToSpaceND},
    {"Bitcast", Bitcast},
    {"BroadcastArgs", BroadcastArgs},
    {"BroadcastGradientArgs", BroadcastGradientArgs},
    {"BroadcastTo", BroadcastTo},
    {"CheckNumerics", Unchanged},
    {"CheckNumericsV2", Unchanged},
    {"Concat", Concat},
    {"ConcatOffset", ConcatOffset},
    {"ConcatV2", ConcatV2},
    {"Const", Const},
    {"Copy", Pass},
    {"CopyHost", Pass},
    {"DebugGradientIdentity", Pass},
    {"DebugGradientRefIdentity", Pass},
    {"DebugIdentity", Pass},
    {"DebugIdentityV2", Pass},
    {"DeepCopy", Pass},
    {"DepthToSpace", DepthToSpace},
    {"Dequantize", Unchanged},
    {"Diag", Diag},
    {"DiagPart", DiagPart},
    {"DynamicPartition", DynamicPartition},
    {"DynamicStitch", DynamicStitch},
    {"Empty", ShapeFromFirst},
    {"EnsureShape", EnsureShape},
    {"ExpandDims", ExpandDims},
    {"FakeQuantWithMinMaxArgs", Unchanged},
    {"FakeQuantWithMinMaxArgsGradient", Unchanged},
    {"FakeQuantWithMinMaxVars", Unchanged},
    {"FakeQuantWithMinMaxVarsPerChannel", Unchanged},
    {"Fill", Fill},
    {"Gather", Gather},
    {"GatherNd", GatherNd},
    {"GatherV2", GatherV2},
    {"GuaranteeConst", Pass},
    {"Identity", Pass},
    {"IdentityN", PassAll},
    {"ImmutableConst", ShapeAttribute},
    {"InplaceAdd", Unchanged},
    {"InplaceSub", Unchanged},
    {"InplaceUpdate", Unchanged},
    {"InvertPermutation", InvertPermutation},
    {"LinSpace", LinSpace},
    {"ListDiff", ListDiff},
    {"LowerBound", ShapeOfSecond},
    {"MatrixBandPart", Unchanged},
    {"MatrixDiag", MatrixDiag},
    {"MatrixDiagPart", MatrixDiagPart},
    {"MatrixDiagPartV2", MatrixDiagPartV2},
    {"MatrixDiagPartV3", MatrixDiagPartV2},
    {"MatrixDiagV2", MatrixDiagV2},
    {"MatrixDiagV3", MatrixDiagV2},
    {"MatrixSetDiag", MatrixSetDiag},
    {"MatrixSetDiagV2", MatrixSetDiagV2},
    {"MatrixSetDiagV3", MatrixSetDiagV2},
    {"MirrorPad", Pad},
    {"MirrorPadGrad", MirrorPadGrad},
    {"OneHot", OneHot},
    {"OnesLike", OnesLike},
    {"Pack", Pack},
    {"Pad", Pad},
    {"PadV2", Pad},
    {"ParallelConcat", ShapeAttribute},
    {"ParallelDynamicStitch", DynamicStitch},
    {"Placeholder", Placeholder},
    {"PlaceholderV2", ShapeAttribute},
    {"PlaceholderWithDefault", ShapeAttribute},
    {"PreventGradient", Pass},
    {"QuantizeAndDequantize", Unchanged},
    {"QuantizeAndDequantizeV2", Unchanged},
    {"QuantizeAndDequantizeV3", Unchanged},
    {"QuantizeAndDequantizeV4", Unchanged},
    {"Range", Range},
    {"Rank", Rank},
    {"RefIdentity", Pass},
    {"Reshape", Reshape},
    {"Reverse", ReverseMarked},
    {"ReverseSequence", Unchanged},
    {"ReverseV2", Reverse},
    {"Roll", Unchanged},
    {"ScatterNd", ScatterNd},
    {"ScatterNdNonAliasingAdd", Unchanged},
    {"Shape", ShapeOp},
    {"ShapeN", ShapeN},
    {"Size", Size},
    {"Slice", Slice},
    {"Snapshot", Pass},
    {"SpaceToBatch", SpaceToBatch},
    {"SpaceToBatchND", SpaceToBatchND},
    {"SpaceToDepth", SpaceToDepth},
    {"Split", Split},
    {"SplitV", SplitV},
    {"Squeeze", Squeeze},
    {"StopGradient", Pass},
    {"StridedSlice", StridedSlice},
    {"StridedSliceAssign", Unchanged},
    {"StridedSliceGrad", ShapeFromFirst},
    {"TensorScatterAdd", Unchanged},
    {"TensorScatterMax", Unchanged},
    {"TensorScatterMin", Unchanged},
    {"TensorScatterSub", Unchanged},
    {"TensorScatterUpdate", Unchanged},
    {"TensorStridedSliceUpdate", Unchanged},
    {"Tile", Tile},
    {"Transpose", Transpose},
    {"ConjugateTranspose", Transpose},
    {"Unique", Unique},
    {"UniqueV2", UniqueV2},
    {"UniqueWithCounts", Unique},
    {"UniqueWithCountsV2", UniqueV2},
    {"Unpack", Unpack},
    {"UpperBound", ShapeOfSecond},
    {"Where", Where},
    {"ZerosLike", ZerosLike},
    {"_CopyFromGpuToHost", Pass},
    {"_CopyFromHostToGpu", Pass},
};

}  // namespace

absl::Span<const ShapeRule> ArrayShapeRules() { return kRules; }

}  // namespace spillway::core
