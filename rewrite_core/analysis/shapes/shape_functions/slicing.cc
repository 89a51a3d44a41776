// Parts of arrays: joining, splitting, slices, padding, gather and scatter.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// ---- Joining and splitting.

// The value of output 0: the inputs first to last, not included, joined at an axis. `like`: the
// possibly partial shape of each; dimensions before the axis are the same in all.
void SetJoinedValue(ShapeContext& c, int first, int last, int axis, ShapeId like) {
  const int64_t count = PutsOutIntegers(c) ? c.Elements(c.output(0)) : kUnknownDim;
  if (count < 0 || count > ShapePool::kMaxListSize) return;
  const int64_t rows = count == 0 ? 0 : c.Elements(c.Slice(like, 0, axis));
  DimVector items(count, kUnknownElement);
  int64_t begin = 0;  // In a row.
  for (int i = first; i < last && rows > 0; ++i) {
    const int64_t size = c.Elements(c.Slice(c.Merge(c.input(i), like), axis));
    if (c.failed() || size < 0 || size > count / rows - begin) return;
    const auto value = c.Value(i);
    for (int64_t row = 0; value && row < rows; ++row) {
      std::copy_n(value->begin() + row * size, size, items.begin() + row * (count / rows) + begin);
    }
    begin += size;
  }
  c.set_value(0, items);
}

// The inputs first to last, not included.
void ConcatInputs(ShapeContext& c, int first, int last, int axis_input) {
  int rank = -1;
  for (int i = first; i < last; ++i) {
    if (!c.known(c.input(i))) continue;
    if (rank >= 0 && c.rank(c.input(i)) != rank)
      return c.Fail("the ranks of the joined tensors differ");
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
  SetJoinedValue(c, first, last, axis, out);
}

void Concat(ShapeContext& c) { ConcatInputs(c, 1, c.num_inputs(), 0); }
void ConcatV2(ShapeContext& c) { ConcatInputs(c, 0, c.num_inputs() - 1, c.num_inputs() - 1); }

// ConcatOffset(axis, shapes...): where each part begins, one vector per part.
void ConcatOffset(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set(i, c.input(i + 1));
  const int64_t at = c.ScalarValue(0);
  const auto first = c.Value(1);
  // Only for few dimensions, as usual for tensors, because each output has its own list.
  constexpr size_t kMaxDimensions = 16;
  if (at == kUnknownElement || !first || first->size() > kMaxDimensions) return;
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
  SetJoinedValue(c, 0, c.num_inputs(), axis, item);
}

// The value of an output that is `size` elements, from `begin` on, in one dimension of an input.
void SetPartValue(ShapeContext& c, int port, int input, int axis, int64_t begin, int64_t size) {
  if (!PutsOutIntegers(c, port) || !c.Value(input)) return;
  ArrayView part = WholeArray(c, c.input(input));
  if (size > part.sizes[axis] || begin > part.sizes[axis] - size) return;
  part.first = c.Mul(begin, part.steps[axis]);
  part.sizes[axis] = size;
  SetViewedValue(c, port, input, part);
}

void Unpack(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (!c.known(in)) return;
  const int axis = c.Axis(c.Int("axis"), c.rank(in));
  if (axis < 0) return;
  if (c.Has("num")) c.MergeDims(c.dim(in, axis), c.Int("num"));
  c.set_all(c.Concat(c.Slice(in, 0, axis), c.Slice(in, axis + 1)));
  for (int i = 0; i < c.num_outputs() && i < c.dim(in, axis); ++i) {
    SetPartValue(c, i, 0, axis, i, 1);
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
  const int64_t size = c.Div(dim, parts);
  for (int i = 0; size > 0 && i < std::min<int64_t>(c.num_outputs(), parts); ++i) {
    SetPartValue(c, i, 1, axis, i * size, size);
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
  int64_t begin = 0;
  for (int i = 0; i < c.num_outputs(); ++i) {
    int64_t dim = kUnknownDim;
    if (sizes && i < static_cast<int>(sizes->size())) {
      dim = (*sizes)[i] == -1 ? rest : std::max((*sizes)[i], kUnknownDim);
    }
    c.set(i, c.ReplaceDim(in, axis, dim));
    // If a size is a bound, the start of the next one is unknown.
    begin = c.is_bound(1) ? kUnknownDim : c.Add(begin, dim);
    if (begin >= 0) SetPartValue(c, i, 0, axis, begin - dim, dim);
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
  ArrayView part = WholeArray(c, in);
  for (size_t i = 0; begin && i < rank; ++i) {
    part.first = c.Add(part.first, c.Mul((*begin)[i], part.steps[i]));
  }
  part.sizes = out;
  if (begin) SetViewedValue(c, 0, 0, part);
}

// One dimension of a strided slice. Returns its length (kUnknownDim if unknown) and, if everything
// is known, the first index.
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
    // From a known begin to a known end of the same sign: whether the dimension is long enough is
    // unknown, but an empty slice is always empty.
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
  // |stride| may be arbitrarily large here.
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
        // One element, at b.
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
  // For a vector's value.
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

// BroadcastTo(input, shape): unknown dimensions of the shape are those of the input, if these are
// above 1.
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

// ---- Padding. Input 1 is a matrix of the elements to add (sign 1) or remove before and after each
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

// For a vector's value.
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

constexpr ShapeRule kSlicingRules[] = {
    {"BroadcastTo", BroadcastTo},
    {"Concat", Concat},
    {"ConcatOffset", ConcatOffset},
    {"ConcatV2", ConcatV2},
    {"Gather", Gather},
    {"GatherNd", GatherNd},
    {"GatherV2", GatherV2},
    {"MirrorPad", Pad},
    {"MirrorPadGrad", MirrorPadGrad},
    {"OneHot", OneHot},
    {"Pack", Pack},
    {"Pad", Pad},
    {"PadV2", Pad},
    {"ScatterNd", ScatterNd},
    {"Slice", Slice},
    {"Split", Split},
    {"SplitV", SplitV},
    {"StridedSlice", StridedSlice},
    {"StridedSliceGrad", ShapeFromFirst},
    {"Tile", Tile},
    {"Unpack", Unpack},
};

}  // namespace

absl::Span<const ShapeRule> SlicingShapeRules() { return kSlicingRules; }

}  // namespace spillway::core
