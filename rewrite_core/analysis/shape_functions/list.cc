// Lists of tensors: TensorArray, Stack, TensorList. A handle's shape is that of the elements.
#include <algorithm>

#include "rewrite_core/analysis/shape_table.h"

namespace spillway::core {
namespace {

// The one of two statements on the same elements that says more.
ShapeId MoreSpecific(ShapeContext& c, ShapeId a, ShapeId b) {
  return c.FullyKnown(b) || !c.known(a) ? b : a;
}

// A number of elements, then an element.
ShapeId Rows(ShapeContext& c, int64_t count, ShapeId element) {
  return c.Concat(c.Make({std::max(count, kUnknownDim)}), element);
}

// ---- TensorArray, versions 1 to 3. Those before 3 have strings for handles, which say nothing.

// TensorArrayV3(size) -> handle, flow. Elements may differ unless the array says otherwise.
void TensorArray(ShapeContext& c) {
  const ShapeId element = c.ShapeAttr("element_shape");
  c.set_all(kScalar);
  c.set(0, c.Make({2}));
  if (c.FullyKnown(element) || c.Bool("identical_element_shapes")) c.set_handle(0, element);
}

// TensorArrayGradV3(handle, flow_in) -> grad_handle, flow_out.
void TensorArrayGrad(ShapeContext& c) {
  c.set_all(kScalar);
  c.set(0, c.Make({2}));
  c.set_handle(0, c.handle(0));
}

// TensorArrayGradWithShape(handle, flow_in, shape_to_prepend).
void TensorArrayGradWithShape(ShapeContext& c) {
  TensorArrayGrad(c);
  c.set_handle(0, c.Concat(c.ShapeFromValue(2), c.handle(0)));
}

// TensorArrayReadV3(handle, index, flow_in).
void TensorArrayRead(ShapeContext& c) { c.set(0, c.handle(0)); }

// TensorArrayGatherV3(handle, indices, flow_in).
void TensorArrayGather(ShapeContext& c) {
  const ShapeId element = MoreSpecific(c, c.handle(0), c.ShapeAttr("element_shape"));
  c.set(0, Rows(c, c.dim(c.WithRank(1, 1), 0), element));
}

// TensorArrayConcatV3(handle, flow_in) -> value, lengths.
void TensorArrayConcat(ShapeContext& c) {
  c.set(0, Rows(c, kUnknownDim, c.ShapeAttr("element_shape_except0")));
  c.set(1, c.OfRank(1));
}

// The first versions, and the V2 ones, with their handles of two strings.
void AllTwoStrings(ShapeContext& c) { c.set_all(c.Make({2})); }

// StackPushV2(handle, elem).
void StackPush(ShapeContext& c) { c.set(0, c.input(1)); }

// ---- TensorList: a scalar variant.

// EmptyTensorList(element_shape, ...), TensorListReserve(element_shape, ...).
void NewList(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.ShapeFromValue(0));
}

// What gives out the list that it took.
void SameList(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.handle(0));
}

// TensorListConcatLists(input_a, input_b).
void TwoLists(ShapeContext& c) {
  c.set(0, c.Merge(c.input(0), c.input(1)));
  c.set_handle(0, c.handle(0));
}

// TensorListPushBackBatch(input_handles, tensor): a row for each list.
void PushBackBatch(ShapeContext& c) {
  c.set(0, c.Make({c.MergeDims(c.dim(c.WithRank(0, 1), 0), c.dim(c.input(1), 0))}));
  c.set_handle(0, c.handle(0));
}

// TensorListFromTensor(tensor, element_shape): its rows.
void ListFromTensor(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.Merge(c.Slice(c.WithRankAtLeast(0, 1), 1), c.ShapeFromValue(1)));
}

// TensorListScatter(tensor, indices, element_shape, ...): likewise.
void ListScatter(ShapeContext& c) {
  const ShapeId row = c.Slice(c.WithRankAtLeast(0, 1), 1);
  c.set(0, kScalar);
  c.set_handle(0, MoreSpecific(c, c.ShapeFromValue(2), row));
}

// TensorListSplit(tensor, element_shape, lengths): pieces of several rows.
void ListSplit(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.ShapeFromValue(1));
}

// An element, as the list's handle and an input with its shape know it.
ShapeId Element(ShapeContext& c, int shape) {
  return c.Merge(c.handle(0), c.ShapeFromValue(shape));
}

// TensorListStack(input_handle, element_shape).
void ListStack(ShapeContext& c) {
  c.set(0, Rows(c, c.Int("num_elements", kUnknownDim), Element(c, 1)));
}

// TensorListGather(input_handle, indices, element_shape).
void ListGather(ShapeContext& c) { c.set(0, Rows(c, c.dim(c.WithRank(1, 1), 0), Element(c, 2))); }

// TensorListGetItem(input_handle, index, element_shape).
void ListGetItem(ShapeContext& c) { c.set(0, Element(c, 2)); }

// TensorListPopBack(input_handle, element_shape) -> output_handle, tensor.
void ListPopBack(ShapeContext& c) {
  SameList(c);
  c.set(1, Element(c, 1));
}

// TensorListConcatV2(input_handle, element_shape, ...) -> tensor, lengths; the first version has an
// attribute. An element's first dimension is its own.
void ListConcat(ShapeContext& c) {
  const ShapeId stated = c.num_inputs() > 1 ? c.ShapeFromValue(1) : c.ShapeAttr("element_shape");
  c.set(0, Rows(c, kUnknownDim, c.Merge(c.Slice(c.handle(0), 1), c.Slice(stated, 1))));
  c.set(1, c.OfRank(1));
}

// TensorListElementShape(input_handle): a scalar -1 if the rank is unknown.
void ListElementShape(ShapeContext& c) {
  const ShapeId element = c.handle(0);
  if (c.known(element)) c.set(0, c.Make({c.rank(element)}));
}

constexpr ShapeRule kListRules[] = {
    {"EmptyTensorList", NewList},
    {"EmptyTensorMap", Scalars},
    {"Stack", AllTwoStrings},
    {"StackPush", StackPush},
    {"StackPushV2", StackPush},
    {"StackV2", AllTwoStrings},
    {"TensorArrayConcatV2", TensorArrayConcat},
    {"TensorArrayConcatV3", TensorArrayConcat},
    {"TensorArrayGatherV2", TensorArrayGather},
    {"TensorArrayGatherV3", TensorArrayGather},
    {"TensorArrayGradV2", AllTwoStrings},
    {"TensorArrayGradV3", TensorArrayGrad},
    {"TensorArrayGradWithShape", TensorArrayGradWithShape},
    {"TensorArrayReadV3", TensorArrayRead},
    {"TensorArrayScatterV2", Scalars},
    {"TensorArrayScatterV3", Scalars},
    {"TensorArraySizeV2", Scalars},
    {"TensorArraySizeV3", Scalars},
    {"TensorArraySplitV2", Scalars},
    {"TensorArraySplitV3", Scalars},
    {"TensorArrayV2", AllTwoStrings},
    {"TensorArrayV3", TensorArray},
    {"TensorArrayWriteV2", Scalars},
    {"TensorArrayWriteV3", Scalars},
    {"TensorListConcat", ListConcat},
    {"TensorListConcatLists", TwoLists},
    {"TensorListConcatV2", ListConcat},
    {"TensorListElementShape", ListElementShape},
    {"TensorListFromTensor", ListFromTensor},
    {"TensorListGather", ListGather},
    {"TensorListGetItem", ListGetItem},
    {"TensorListLength", Scalars},
    {"TensorListPopBack", ListPopBack},
    {"TensorListPushBack", SameList},
    {"TensorListPushBackBatch", PushBackBatch},
    {"TensorListReserve", NewList},
    {"TensorListResize", SameList},
    {"TensorListScatter", ListScatter},
    {"TensorListScatterIntoExistingList", SameList},
    {"TensorListScatterV2", ListScatter},
    {"TensorListSetItem", SameList},
    {"TensorListSplit", ListSplit},
    {"TensorListStack", ListStack},
    {"TensorMapErase", Scalars},
    {"TensorMapHasKey", Scalars},
    {"TensorMapInsert", Scalars},
    {"TensorMapSize", Scalars},
};

}  // namespace

absl::Span<const ShapeRule> ListShapeRules() { return kListRules; }

}  // namespace spillway::core
