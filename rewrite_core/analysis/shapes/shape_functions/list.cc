// Lists of tensors: TensorArray, Stack, TensorList. A handle's shape is the number of elements,
// then theirs. Facts about written elements come from the writes (variable_handles.h).
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// The more specific of two statements about the same elements.
ShapeId MoreSpecific(ShapeContext& c, ShapeId a, ShapeId b) {
  return c.FullyKnown(b) || !c.known(a) ? b : a;
}

// The facts about the elements, or their number, of the list whose handle is input 0.
ShapeId Elements(ShapeContext& c, int handle = 0) {
  const ShapeId list = c.handle(handle);
  return c.rank(list) > 0 ? c.Slice(list, 1) : kUnknownShape;
}
int64_t Count(ShapeContext& c, int handle = 0) { return c.dim(c.handle(handle), 0); }

// Sets the value of an output, an element of the list whose handle is input 0. Its shape is already
// set.
void SetElementValue(ShapeContext& c, int port) {
  if (const auto value = c.SaidValue(0)) c.set_value(port, *value);
}

// A number of elements, then an element.
ShapeId Rows(ShapeContext& c, int64_t count, ShapeId element) {
  return c.Concat(c.Make({std::max(count, kUnknownDim)}), element);
}

// ---- TensorArray, versions 1 to 3. Those before 3 have strings as handles, which carry no facts.

// A list whose node states an element's shape, while its writers state theirs.
void SetList(ShapeContext& c, int64_t count, ShapeId stated) {
  const ShapeId said = c.said_elements();
  const bool both = c.known(stated) && c.rank(said) == c.rank(stated);
  const ShapeId element = both ? c.Merge(stated, said) : c.known(stated) ? stated : said;
  if (c.known(element)) c.set_handle(0, Rows(c, count, element));
}

// TensorArrayV3(size) -> handle, flow. Elements may differ unless the array states otherwise.
void TensorArray(ShapeContext& c) {
  const ShapeId element = c.ShapeAttr("element_shape");
  c.set_all(kScalar);
  c.set(0, c.Make({2}));
  const bool alike = c.FullyKnown(element) || c.Bool("identical_element_shapes");
  const int64_t size = c.Bool("dynamic_size") ? kUnknownDim : c.ScalarValue(0);
  SetList(c, size, alike ? element : kUnknownShape);
}

// TensorArraySizeV3(handle, flow_in).
void TensorArraySize(ShapeContext& c) {
  c.set(0, kScalar);
  if (Count(c) >= 0) c.set_value(0, {Count(c)});
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
  const ShapeId element = c.Concat(c.ShapeFromValue(2), Elements(c));
  c.set_handle(0, c.known(element) ? Rows(c, Count(c), element) : kUnknownShape);
}

// TensorArrayReadV3(handle, index, flow_in).
void TensorArrayRead(ShapeContext& c) {
  c.set(0, Elements(c));
  SetElementValue(c, 0);
}

// TensorArrayGatherV3(handle, indices, flow_in).
void TensorArrayGather(ShapeContext& c) {
  const ShapeId element = MoreSpecific(c, c.ShapeAttr("element_shape"), Elements(c));
  c.set(0, Rows(c, c.dim(c.WithRank(1, 1), 0), element));
}

// TensorArrayConcatV3(handle, flow_in) -> value, lengths.
void TensorArrayConcat(ShapeContext& c) {
  c.set(0, Rows(c, kUnknownDim, c.ShapeAttr("element_shape_except0")));
  c.set(1, c.OfRank(1));
}

// The first versions, and the V2 ones, with their handles of two strings.
void AllTwoStrings(ShapeContext& c) { c.set_all(c.Make({2})); }

// StackV2(max_size).
void Stack(ShapeContext& c) {
  c.set(0, c.Make({2}));
  SetList(c, kUnknownDim, kUnknownShape);
}

// StackPushV2(handle, elem).
void StackPush(ShapeContext& c) { c.set(0, c.input(1)); }

// StackPopV2(handle).
void StackPop(ShapeContext& c) {
  c.set(0, Elements(c));
  SetElementValue(c, 0);
}

// ---- TensorList: a scalar variant.

// EmptyTensorList(element_shape, max_num_elements).
void EmptyList(ShapeContext& c) {
  c.set(0, kScalar);
  SetList(c, 0, c.ShapeFromValue(0));
}

// TensorListReserve(element_shape, num_elements).
void ReserveList(ShapeContext& c) {
  c.set(0, kScalar);
  SetList(c, c.ScalarValue(1), c.ShapeFromValue(0));
}

// A list like that of input 0, with a different number of elements.
void ListOf(ShapeContext& c, int64_t count) {
  c.set(0, kScalar);
  if (c.known(Elements(c))) c.set_handle(0, Rows(c, count, Elements(c)));
}

// TensorListPushBack(input_handle, tensor).
void ListPushBack(ShapeContext& c) { ListOf(c, c.Add(Count(c), 1)); }

// TensorListResize(input_handle, size).
void ListResize(ShapeContext& c) { ListOf(c, c.ScalarValue(1)); }

// TensorListLength(input_handle).
void ListLength(ShapeContext& c) {
  c.set(0, kScalar);
  if (Count(c) >= 0) c.set_value(0, {Count(c)});
}

// Ops that output their input list.
void SameList(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.handle(0));
}

// TensorListConcatLists(input_a, input_b).
void TwoLists(ShapeContext& c) {
  c.set(0, c.Merge(c.input(0), c.input(1)));
  const ShapeId element = c.Join(Elements(c, 0), Elements(c, 1));
  if (c.known(element)) c.set_handle(0, Rows(c, c.Add(Count(c, 0), Count(c, 1)), element));
}

// TensorListPushBackBatch(input_handles, tensor): a row for each list.
void PushBackBatch(ShapeContext& c) {
  c.set(0, c.Make({c.MergeDims(c.dim(c.WithRank(0, 1), 0), c.dim(c.input(1), 0))}));
  c.set_handle(0, c.handle(0));
}

// TensorListFromTensor(tensor, element_shape): its rows.
void ListFromTensor(ShapeContext& c) {
  const ShapeId rows = c.WithRankAtLeast(0, 1);
  c.set(0, kScalar);
  const ShapeId element = c.Merge(c.Slice(rows, 1), c.ShapeFromValue(1));
  if (c.known(element)) c.set_handle(0, Rows(c, c.dim(rows, 0), element));
}

// TensorListScatter(tensor, indices, element_shape, ...): likewise.
void ListScatter(ShapeContext& c) {
  const ShapeId row = c.Slice(c.WithRankAtLeast(0, 1), 1);
  c.set(0, kScalar);
  const ShapeId element = MoreSpecific(c, c.ShapeFromValue(2), row);
  if (c.known(element)) c.set_handle(0, Rows(c, kUnknownDim, element));
}

// TensorListSplit(tensor, element_shape, lengths): pieces of several rows.
void ListSplit(ShapeContext& c) {
  const ShapeId element = c.ShapeFromValue(1);
  c.set(0, kScalar);
  if (c.known(element)) c.set_handle(0, Rows(c, c.dim(c.input(2), 0), element));
}

// An element, according to the list's handle and an input with its shape.
ShapeId Element(ShapeContext& c, int shape) {
  return c.Merge(Elements(c), c.ShapeFromValue(shape));
}

// TensorListStack(input_handle, element_shape).
void ListStack(ShapeContext& c) {
  const int64_t stated = c.Int("num_elements", kUnknownDim);
  c.set(0, Rows(c, stated < 0 ? Count(c) : stated, Element(c, 1)));
}

// TensorListGather(input_handle, indices, element_shape).
void ListGather(ShapeContext& c) { c.set(0, Rows(c, c.dim(c.WithRank(1, 1), 0), Element(c, 2))); }

// TensorListGetItem(input_handle, index, element_shape).
void ListGetItem(ShapeContext& c) {
  c.set(0, Element(c, 2));
  SetElementValue(c, 0);
}

// TensorListPopBack(input_handle, element_shape) -> output_handle, tensor.
void ListPopBack(ShapeContext& c) {
  ListOf(c, c.Sub(Count(c), 1));
  c.set(1, Element(c, 1));
  SetElementValue(c, 1);
}

// TensorListConcatV2(input_handle, element_shape, ...) -> tensor, lengths; the first version has an
// attribute. The first dimension may differ between elements.
void ListConcat(ShapeContext& c) {
  const ShapeId stated = c.num_inputs() > 1 ? c.ShapeFromValue(1) : c.ShapeAttr("element_shape");
  c.set(0, Rows(c, kUnknownDim, c.Merge(c.Slice(Elements(c), 1), c.Slice(stated, 1))));
  c.set(1, c.OfRank(1));
}

// TensorListElementShape(input_handle): a scalar -1 if the rank is unknown.
void ListElementShape(ShapeContext& c) {
  const ShapeId element = Elements(c);
  if (c.known(element)) c.set(0, c.Make({c.rank(element)}));
}

constexpr ShapeRule kListRules[] = {
    {"EmptyTensorList", EmptyList},
    {"EmptyTensorMap", Scalars},
    {"Stack", AllTwoStrings},
    {"StackPopV2", StackPop},
    {"StackPush", StackPush},
    {"StackPushV2", StackPush},
    {"StackV2", Stack},
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
    {"TensorArraySizeV3", TensorArraySize},
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
    {"TensorListLength", ListLength},
    {"TensorListPopBack", ListPopBack},
    {"TensorListPushBack", ListPushBack},
    {"TensorListPushBackBatch", PushBackBatch},
    {"TensorListReserve", ReserveList},
    {"TensorListResize", ListResize},
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
