// Data sources: queues, iterators, readers, lookup tables, accumulators; parsing of examples.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Versions before resource handles have a reference to two strings.
void TwoStrings(ShapeContext& c) { c.set(0, c.Make({2})); }

void SetShapes(ShapeContext& c, const std::vector<ShapeId>& shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) c.set(static_cast<int>(i), shapes[i]);
}

// IteratorGetNext and the like.
void OutputShapes(ShapeContext& c) { SetShapes(c, c.ShapesAttr("output_shapes")); }
void TupleShapes(ShapeContext& c) { SetShapes(c, c.ShapesAttr("shapes")); }
// MapDefun: the outputs of a function, one for each row.
void MapDefun(ShapeContext& c) {
  const int64_t rows = c.dim(c.input(0), 0);
  const std::vector<ShapeId> shapes = c.ShapesAttr("output_shapes");
  for (size_t i = 0; i < shapes.size(); ++i) {
    c.set(static_cast<int>(i), c.Concat(c.Make({rows}), shapes[i]));
  }
}

// ---- Queues. Outputs have the queue's shapes, if the queue is the direct input.
void Dequeue(ShapeContext& c) { SetShapes(c, c.SourceShapesAttr(0, "shapes")); }

// `rows` elements together.
void DequeueRows(ShapeContext& c, int64_t rows) {
  const std::vector<ShapeId> shapes = c.SourceShapesAttr(0, "shapes");
  for (size_t i = 0; i < shapes.size(); ++i) {
    c.set(static_cast<int>(i), c.Concat(c.Make({rows}), shapes[i]));
  }
}

// QueueDequeueMany(handle, n).
void DequeueMany(ShapeContext& c) { DequeueRows(c, std::max(c.ScalarValue(1), kUnknownDim)); }
// QueueDequeueUpTo(handle, n): fewer at the end.
void DequeueUpTo(ShapeContext& c) { DequeueRows(c, kUnknownDim); }

// AccumulatorTakeGradient(handle, num_required): has the accumulator's shape.
void TakeGradient(ShapeContext& c) { c.set(0, c.SourceShapeAttr(0, "shape")); }

// SparseAccumulatorTakeGradient -> indices (of rows), values, shape.
void TakeSparseGradient(ShapeContext& c) {
  const ShapeId shape = c.SourceShapeAttr(0, "shape");
  c.set(0, c.OfRank(1));
  if (!c.known(shape) || c.rank(shape) < 1) return;
  c.set(1, c.ReplaceDim(shape, 0, kUnknownDim));
  c.set(2, c.Make({c.rank(shape)}));
}

// Batch(tensors...) -> tensors..., batch_index, id: of several steps, joined.
void Batch(ShapeContext& c) {
  const int n = c.num_inputs();
  for (int i = 0; i < n; ++i) {
    if (c.rank(c.input(i)) > 0) c.set(i, c.ReplaceDim(c.input(i), 0, kUnknownDim));
  }
  c.set(n, c.Make({kUnknownDim, 3}));
  c.set(n + 1, kScalar);
}

// Unbatch(batched_tensor, batch_index, id).
void Unbatch(ShapeContext& c) {
  if (c.rank(c.input(0)) > 0) c.set(0, c.ReplaceDim(c.input(0), 0, kUnknownDim));
}

// UnbatchGrad(original_input, batch_index, grad, id).
void UnbatchGrad(ShapeContext& c) { c.set(0, c.OfRank(c.rank(c.input(2)))); }

// GenerateVocabRemapping -> remapping, num_present.
void VocabRemapping(ShapeContext& c) {
  c.set(0, c.Make({std::max(c.Int("num_new_vocab", kUnknownDim), kUnknownDim)}));
  c.set(1, kScalar);
}

void RemappedMatrix(ShapeContext& c) {
  c.set(0, c.Make({std::max(c.Int("num_rows", kUnknownDim), kUnknownDim),
                   std::max(c.Int("num_cols", kUnknownDim), kUnknownDim)}));
}

// ---- Lookup tables: the handle's shape is that of a value, if keys are scalars.
void HashTable(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, kScalar);
}

void TableOfTensors(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.ShapeAttr("value_shape"));
}

// MutableDenseHashTableV2(empty_key, deleted_key).
void DenseTable(ShapeContext& c) {
  c.set(0, kScalar);
  if (c.rank(c.input(0)) == 0) c.set_handle(0, c.ShapeAttr("value_shape"));
}

// LookupTableFindV2(table_handle, keys, default_value).
void TableFind(ShapeContext& c) {
  if (c.known(c.handle(0))) c.set(0, c.Concat(c.input(1), c.handle(0)));
}

// LookupTableExportV2(table_handle) -> keys, values.
void TableExport(ShapeContext& c) {
  if (!c.known(c.handle(0))) return;
  c.set(0, c.OfRank(1));
  c.set(1, c.Concat(c.OfRank(1), c.handle(0)));
}

// The version with references: keys are scalars.
void TableExportV1(ShapeContext& c) { c.set(0, c.OfRank(1)); }

// ---- Examples. The outputs are lists, one after the other.
class ListSetter {
 public:
  explicit ListSetter(ShapeContext& c) : c_(c) {}
  void Add(int64_t count, ShapeId shape) {
    for (int64_t i = 0; i < count && port_ < c_.num_outputs(); ++i) c_.set(port_++, shape);
  }
  // Each output in a batch of that shape.
  void Add(ShapeId batch, const std::vector<ShapeId>& shapes) {
    for (ShapeId shape : shapes) Add(1, c_.Concat(batch, shape));
  }
  // Indices, values and shapes of sparse tensors of that rank.
  void AddSparse(int64_t count, int64_t rank) {
    Add(count, c_.Make({kUnknownDim, rank}));
    Add(count, c_.OfRank(1));
    Add(count, c_.Make({rank}));
  }

 private:
  ShapeContext& c_;
  int port_ = 0;
};

// The rank of a serialized batch of sparse features of `rank`.
int64_t RankIn(ShapeContext& c, ShapeId batch, int rank) {
  return c.known(batch) ? c.rank(batch) + rank : kUnknownDim;
}

// The row splits of ragged features: where each example's begin, and the end.
ShapeId RowSplits(ShapeContext& c, ShapeId batch) {
  return c.rank(batch) == 1 ? c.Make({c.Add(c.dim(batch, 0), 1)}) : c.OfRank(1);
}

// ParseExample(serialized, names, ...).
void ParseExample(ShapeContext& c) {
  const ShapeId batch = c.WithRank(0, 1);
  ListSetter out(c);
  out.AddSparse(c.Int("Nsparse"), 2);
  out.Add(batch, c.ShapesAttr("dense_shapes"));
}

// ParseExampleV2(serialized, names, ...): of one example or many.
void ParseExampleV2(ShapeContext& c) {
  const ShapeId batch = c.WithRankAtMost(0, 1);
  ListSetter out(c);
  out.AddSparse(c.Int("num_sparse"), RankIn(c, batch, 1));
  out.Add(batch, c.ShapesAttr("dense_shapes"));
  const int64_t ragged = c.CountTypes("ragged_value_types");
  out.Add(ragged, c.OfRank(1));
  out.Add(ragged, RowSplits(c, batch));
}

// ParseSingleExample(serialized, ...).
void ParseSingleExample(ShapeContext& c) {
  ListSetter out(c);
  out.AddSparse(c.Int("num_sparse"), 1);
  out.Add(kScalar, c.ShapesAttr("dense_shapes"));
}

// ParseSequenceExample(serialized [batch], debug_name, ...).
void ParseSequenceExample(ShapeContext& c) {
  const ShapeId batch = c.WithRank(0, 1);
  ListSetter out(c);
  out.AddSparse(c.Int("Ncontext_sparse"), 2);
  out.Add(batch, c.ShapesAttr("context_dense_shapes"));
  out.AddSparse(c.Int("Nfeature_list_sparse"), 3);
  out.Add(c.Concat(batch, c.OfRank(1)), c.ShapesAttr("feature_list_dense_shapes"));
  out.Add(c.Int("Nfeature_list_dense"), batch);
}

// ParseSequenceExampleV2(serialized, debug_name, ...): of one example or many, with ragged
// features.
void ParseSequenceExampleV2(ShapeContext& c) {
  const ShapeId batch = c.WithRankAtMost(0, 1), splits = RowSplits(c, batch);
  ListSetter out(c);
  out.AddSparse(c.Int("Ncontext_sparse"), RankIn(c, batch, 1));
  out.Add(batch, c.ShapesAttr("context_dense_shapes"));
  const int64_t ragged = c.CountTypes("context_ragged_value_types");
  out.Add(ragged, c.OfRank(1));
  out.Add(ragged, splits);
  out.AddSparse(c.Int("Nfeature_list_sparse"), RankIn(c, batch, 2));
  out.Add(c.Concat(batch, c.OfRank(1)), c.ShapesAttr("feature_list_dense_shapes"));
  out.Add(c.Int("Nfeature_list_dense"), batch);
  const int64_t lists = c.CountTypes("feature_list_ragged_value_types");
  out.Add(lists, c.OfRank(1));
  out.Add(lists, splits);
  out.Add(lists, c.OfRank(1));
}

// ParseSingleSequenceExample(serialized, ...).
void ParseSingleSequenceExample(ShapeContext& c) {
  ListSetter out(c);
  out.AddSparse(c.Int("Ncontext_sparse"), 1);
  out.Add(kScalar, c.ShapesAttr("context_dense_shapes"));
  out.AddSparse(c.Int("Nfeature_list_sparse"), 2);
  out.Add(c.OfRank(1), c.ShapesAttr("feature_list_dense_shapes"));
}

// DecodeCSV(records, defaults...): a column each.
void DecodeCsv(ShapeContext& c) { c.set_all(c.input(0)); }

// FakeParam(): a branch's placeholder for a tensor that only another branch computes.
void FakeParam(ShapeContext& c) {
  StatedShape(c);
  c.set_no_content(0);
}

// ---- Optionals, with which a conditional passes tensors to its gradient. Treated as lists of one
// element, if they hold one tensor.
void OptionalFromValue(ShapeContext& c) {
  c.set(0, kScalar);
  if (c.num_inputs() == 1 && c.known(c.input(0))) {
    c.set_handle(0, c.Concat(c.Make({1}), c.input(0)));
  }
}

void OptionalNone(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_no_content(0);
}

// OptionalGetValue(optional).
void OptionalGetValue(ShapeContext& c) {
  OutputShapes(c);
  const ShapeId held = c.handle(0);
  if (c.num_outputs() == 1 && c.rank(held) > 0) c.refine(0, c.Slice(held, 1));
}

constexpr ShapeRule kDataRules[] = {
    // Iterators, feeds of accelerators.
    {"DatasetToSingleElement", OutputShapes},
    {"ExperimentalDatasetToSingleElement", OutputShapes},
    {"FakeParam", FakeParam},
    {"GetElementAtIndex", OutputShapes},
    {"InfeedDequeue", StatedShape},
    {"InfeedDequeueTuple", TupleShapes},
    {"IteratorGetNext", OutputShapes},
    {"IteratorGetNextSync", OutputShapes},
    {"MapDefun", MapDefun},
    {"MultiDeviceIteratorGetNextFromShard", OutputShapes},
    {"OptionalFromValue", OptionalFromValue},
    {"OptionalGetValue", OptionalGetValue},
    {"OptionalNone", OptionalNone},
    {"OutfeedDequeue", StatedShape},
    {"OutfeedDequeueTuple", TupleShapes},
    {"OutfeedDequeueTupleV2", TupleShapes},
    {"OutfeedDequeueV2", StatedShape},
    {"ReduceDataset", OutputShapes},
    {"SerializeIterator", AllVectors},
    {"UncompressElement", OutputShapes},
    // Queues and accumulators.
    {"AccumulatorTakeGradient", TakeGradient},
    {"Barrier", TwoStrings},
    {"ConditionalAccumulator", TwoStrings},
    {"FIFOQueue", TwoStrings},
    {"FakeQueue", TwoStrings},
    {"PaddingFIFOQueue", TwoStrings},
    {"PriorityQueue", TwoStrings},
    {"QueueDequeue", Dequeue},
    {"QueueDequeueMany", DequeueMany},
    {"QueueDequeueManyV2", DequeueMany},
    {"QueueDequeueUpTo", DequeueUpTo},
    {"QueueDequeueUpToV2", DequeueUpTo},
    {"QueueDequeueV2", Dequeue},
    {"QueueSizeV2", Unchanged},
    {"RandomShuffleQueue", TwoStrings},
    {"ResourceAccumulatorTakeGradient", TakeGradient},
    {"ResourceConditionalAccumulator", TwoStrings},
    {"SparseAccumulatorTakeGradient", TakeSparseGradient},
    {"SparseConditionalAccumulator", TwoStrings},
    // Batches of several steps.
    {"Batch", Batch},
    {"Unbatch", Unbatch},
    {"UnbatchGrad", UnbatchGrad},
    // Readers.
    {"FixedLengthRecordReader", TwoStrings},
    {"IdentityReader", TwoStrings},
    {"LMDBReader", TwoStrings},
    {"MatchingFiles", AllVectors},
    {"ReaderReadUpTo", AllVectors},
    {"ReaderReadUpToV2", AllVectors},
    {"TFRecordReader", TwoStrings},
    {"TextLineReader", TwoStrings},
    {"WholeFileReader", TwoStrings},
    // Lookup tables.
    {"AnonymousHashTable", HashTable},
    {"AnonymousMutableDenseHashTable", DenseTable},
    {"AnonymousMutableHashTable", HashTable},
    {"AnonymousMutableHashTableOfTensors", TableOfTensors},
    {"GenerateVocabRemapping", VocabRemapping},
    {"HashTable", TwoStrings},
    {"HashTableV2", HashTable},
    {"LoadAndRemapMatrix", RemappedMatrix},
    {"LookupTableExport", TableExportV1},
    {"LookupTableExportV2", TableExport},
    {"LookupTableFindV2", TableFind},
    {"MutableDenseHashTable", TwoStrings},
    {"MutableDenseHashTableV2", DenseTable},
    {"MutableHashTable", TwoStrings},
    {"MutableHashTableOfTensors", TwoStrings},
    {"MutableHashTableOfTensorsV2", TableOfTensors},
    {"MutableHashTableV2", HashTable},
    // Examples.
    {"DecodeCSV", DecodeCsv},
    {"ParseExample", ParseExample},
    {"ParseExampleV2", ParseExampleV2},
    {"ParseSequenceExample", ParseSequenceExample},
    {"ParseSequenceExampleV2", ParseSequenceExampleV2},
    {"ParseSingleExample", ParseSingleExample},
    {"ParseSingleSequenceExample", ParseSingleSequenceExample},
};

}  // namespace

absl::Span<const ShapeRule> DataShapeRules() { return kDataRules; }

}  // namespace spillway::core
