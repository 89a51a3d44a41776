// The interface of a shape function: one node, its inputs' shapes and values, its attributes; and
// setters for the results.
//
// A shape function sets known results and leaves the rest alone: unknown is always right, a guess
// never is. An op's *requirements* on its inputs are expressed with WithRank, Merge and the like:
// these record the first failure (the graph is then invalid) and return an unknown shape or
// dimension, so that functions need no error paths. Everything accepts kUnknownShape and unknown
// dimensions, so they need no special cases for these either:
//
//   void MatMul(ShapeContext& c) {
//     const ShapeId a = c.WithRank(0, 2), b = c.WithRank(1, 2);
//     const bool ta = c.Bool("transpose_a"), tb = c.Bool("transpose_b");
//     c.MergeDims(c.dim(a, ta ? 0 : 1), c.dim(b, tb ? 1 : 0));
//     c.set(0, c.Make({c.dim(a, ta ? 1 : 0), c.dim(b, tb ? 0 : 1)}));
//   }
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_CONTEXT_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/node_attrs.h"
#include "rewrite_core/analysis/shapes/shape_pool.h"
#include "rewrite_core/analysis/shapes/tensor_fact.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

using DimVector = absl::InlinedVector<int64_t, 8>;

class ShapeContext;

// A statement about the variable, or the list, behind a handle (variable_handles.h).
struct VariableFact {
  DataType dtype = kDtInvalid;  // kDtInvalid: no op states that it is a variable.
  ShapeId shape = kUnknownShape;
  bool contradicted = false;      // Statements about its shape conflict.
  bool is_list = false;           // The shape is the common part of its elements'.
  ShapeId value = kUnknownShape;  // The value, if all elements have the same (TensorFact::extra).

  bool says_something() const { return dtype != kDtInvalid || is_list; }
};

// The results of a function call, and its statements about the variables among its arguments.
struct CallFacts {
  std::vector<TensorFact> results;
  std::vector<VariableFact> arguments;
};

// Infers calls of library functions.
class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  // The facts of `function` for these arguments; null if unknown. Valid until the next call.
  virtual const CallFacts* Call(absl::string_view function,
                                absl::Span<const TensorFact> arguments) = 0;
};

// Merges two statements about one shape; nullopt if they conflict.
absl::optional<ShapeId> MergeStatements(ShapePool& pool, ShapeId a, ShapeId b);
// The shape that covers both: dimensions that differ are unknown.
ShapeId JoinShapes(ShapePool& pool, ShapeId a, ShapeId b);

class ShapeContext {
 public:
  // ---- The node.
  absl::string_view op() const { return graph_.op(node_); }
  int num_inputs() const { return num_inputs_; }  // Data inputs, lists flattened.
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // The graph's producer version (GraphDef.versions.producer).
  int producer() const { return producer_; }

  DataType output_type(int port) const {
    return HasOutput(port) ? static_cast<DataType>(outputs_[port].dtype) : kDtInvalid;
  }
  // The results so far.
  ShapeId output(int port) const { return HasOutput(port) ? outputs_[port].shape : kUnknownShape; }

  // ---- Inputs. Nothing is known about a missing input.
  const TensorFact& fact(int i) const;
  ShapeId input(int i) const { return fact(i).shape; }
  DataType input_type(int i) const { return static_cast<DataType>(fact(i).dtype); }
  // The value of a small integer tensor, in row-major order; see TensorFact::extra.
  absl::optional<absl::Span<const int64_t>> Value(int i) const;
  // The value of a one-element tensor; kUnknownElement if unknown.
  int64_t ScalarValue(int i) const;
  // The value of a one-element tensor of float32: a constant, or an integer that is cast.
  absl::optional<float> FloatValue(int i) const;
  // The shape given by an integer vector (-1: unknown), as far as it is known.
  ShapeId ShapeFromValue(int i);
  // The shape behind a resource or variant handle: a variable's shape; for a list, the number of
  // elements, then their shape.
  ShapeId handle(int i) const;
  // The element shape of the list that this node makes, as known from elsewhere.
  ShapeId said_elements() const { return said_elements_; }
  // The common value of all elements of the list whose handle this input is, as far as it is known.
  absl::optional<absl::Span<const int64_t>> SaidValue(int input) const;
  // Whether the input comes from a loop's end and has not been inferred yet.
  bool pending(int i) const;

  // ---- Attributes: `otherwise` (an empty list, kUnknownShape) if absent or of another kind.
  bool Has(absl::string_view key) { return attrs_.Find(key).has_value(); }
  int64_t Int(absl::string_view key, int64_t otherwise = 0);
  bool Bool(absl::string_view key, bool otherwise = false);
  absl::string_view String(absl::string_view key, absl::string_view otherwise = "");
  DataType Type(absl::string_view key);
  DimVector Ints(absl::string_view key);
  absl::InlinedVector<float, 8> Floats(absl::string_view key);
  ShapeId ShapeAttr(absl::string_view key);
  std::vector<ShapeId> ShapesAttr(absl::string_view key);  // At most num_outputs().
  int64_t CountTypes(absl::string_view key);               // Length of a list; -1 if none.
  DataType FirstType(absl::string_view key);               // First of a list, or kDtInvalid.
  ShapeId TensorAttrShape(absl::string_view key);          // The shape of a TensorProto.
  absl::string_view Function(absl::string_view key);       // A function's name.
  std::vector<absl::string_view> Functions(absl::string_view key);
  // The same, for the node that an input comes from (a queue). `key` must outlive the context.
  ShapeId SourceShapeAttr(int input, absl::string_view key);
  std::vector<ShapeId> SourceShapesAttr(int input, absl::string_view key);

  // ---- Shapes: accessors.
  static bool known(ShapeId s) { return s != kUnknownShape; }  // Is the rank known?
  int rank(ShapeId s) const { return known(s) ? static_cast<int>(pool_[s].size()) : -1; }
  absl::Span<const int64_t> dims(ShapeId s) const { return pool_[s]; }
  // Negative i count from the end. kUnknownDim if that dimension, or the rank, is not known.
  int64_t dim(ShapeId s, int i) const;
  bool FullyKnown(ShapeId s) const { return pool_.elements(s) != ShapePool::kUnknownElements; }
  // The number of elements, or kUnknownDim.
  int64_t Elements(ShapeId s) const {
    return pool_.elements(s) < 0 ? kUnknownDim : pool_.elements(s);
  }

  // ---- Shapes: construction. More than kMaxRank dimensions are a failure.
  ShapeId Make(absl::Span<const int64_t> dims);
  ShapeId Make(std::initializer_list<int64_t> dims) {
    return Make(absl::Span<const int64_t>(dims.begin(), dims.size()));
  }
  ShapeId OfRank(int rank);  // All dimensions unknown; kUnknownShape for rank -1.
  ShapeId Concat(ShapeId a, ShapeId b);
  ShapeId Slice(ShapeId s, int begin, int end = kMaxRank);  // Negative: from the end. Clipped.
  ShapeId ReplaceDim(ShapeId s, int i, int64_t dim);        // Negative i: from the end.
  // The shape that covers both: dimensions that differ are unknown.
  ShapeId Join(ShapeId a, ShapeId b) { return JoinShapes(pool_, a, b); }

  // ---- Requirements of the op. Violations are recorded; the result is then unknown.
  ShapeId WithRank(int input, int rank) { return Demand(input, rank, rank); }
  ShapeId WithRankAtLeast(int input, int rank) { return Demand(input, rank, kMaxRank); }
  ShapeId WithRankAtMost(int input, int rank) { return Demand(input, 0, rank); }
  ShapeId Merge(ShapeId a, ShapeId b);  // They must be equal; gives the known parts of either.
  int64_t MergeDims(int64_t a, int64_t b);
  ShapeId Broadcast(ShapeId a, ShapeId b);  // As NumPy does.
  // The dimension that an axis (negative: from the end) refers to in a shape of that rank; -1 if
  // either is unknown.
  int Axis(int64_t axis, int rank);
  void Fail(absl::string_view what);
  bool failed() const { return !failure_.empty(); }

  // ---- Dimensions: unknown if an operand is, on overflow, or if there is no answer.
  static int64_t Add(int64_t a, int64_t b);
  static int64_t Sub(int64_t a, int64_t b);
  static int64_t Mul(int64_t a, int64_t b);
  static int64_t Div(int64_t a, int64_t b);  // Rounded down.

  // ---- Results. Ports that do not exist are ignored.
  void set(int port, ShapeId shape);
  void set_all(ShapeId shape);
  void refine(int port, ShapeId shape);  // Like set, merged with the previous result.
  // The value of an int32 or int64 output; ignored if too long.
  void set_value(int port, absl::Span<const int64_t> value);
  void set_shape_value(int port, ShapeId shape);  // The value is that shape.
  void set_handle(int port, ShapeId shape);
  void pass_extra(int port, int input);             // Its value or handle is that input's.
  void set_fact(int port, const TensorFact& fact);  // Shape, and value or handle.
  void set_no_content(int port) {                   // TensorFact::no_content.
    if (HasOutput(port)) outputs_[port].no_content = true;
  }
  // The same tensor as that input: shape, and value or handle.
  void pass(int port, int input) { set_fact(port, fact(input)); }
  // The maximum shape of an output whose size depends on values. Only used while bounds are
  // inferred.
  void set_bound(int port, ShapeId shape);
  // Whether an input's shape, or its value, is a bound.
  bool is_bound(int i) const { return fact(i).bounded; }

  // Records `fact` about the variable, or list, whose handle this input is.
  void note_variable(int input, const VariableFact& fact) { noted_.push_back({input, fact}); }

  // ---- Function calls. The function takes the inputs from `first` as its arguments, whose facts
  // are `arguments`. False (and no results) if the results are unknown.
  bool Call(absl::string_view function, int first, absl::Span<const TensorFact> arguments,
            std::vector<TensorFact>* results);
  // The facts that hold for both tensors.
  TensorFact JoinFacts(const TensorFact& a, const TensorFact& b);

 private:
  friend class GraphInference;
  ShapeContext(const Graph& graph, int producer, ShapePool& pool, FunctionCaller* caller)
      : graph_(graph), producer_(producer), pool_(pool), caller_(caller) {}

  // A node may have fewer outputs than its op's family sets: none, if a list is empty.
  bool HasOutput(int port) const { return port >= 0 && port < num_outputs(); }
  // Reads at most `most` shapes of a list.
  void ReadShapes(absl::string_view key, int most, std::vector<ShapeId>* shapes);
  // Reads a TensorShapeProto; nullopt if malformed.
  absl::optional<ShapeId> ReadShape(absl::string_view proto);
  absl::optional<ShapeId> DecodeShape(absl::string_view proto) const;
  ShapeId Demand(int input, int min_rank, int max_rank);
  const TensorFact& FactOf(Tensor tensor) const;
  absl::optional<absl::Span<const int64_t>> ValueOf(Tensor tensor) const;
  // The serialized TensorProto of a Const; null if it has none.
  absl::string_view ConstTensor(NodeId node) const;
  // The value of a Const, read now.
  void ReadConst(Tensor tensor, TensorFact* fact) const;

  const Graph& graph_;
  const int producer_;
  ShapePool& pool_;
  FunctionCaller* const caller_;  // Null: there are no functions.
  // By tensor; see GraphInference.
  TensorFact* facts_ = nullptr;
  const uint32_t* first_ = nullptr;
  bool first_round_ = true;
  bool infers_bounds_ = false;
  bool has_bounds_ = false;      // Whether set_bound was called.
  uint32_t bounded_values_ = 0;  // GraphOps::Op::bounded_values of the current node.
  const absl::flat_hash_map<NodeId, VariableFact>* said_ = nullptr;
  // The current node.
  NodeId node_ = kNoNode;
  int num_inputs_ = 0;
  absl::Span<const Tensor> inputs_;
  absl::Span<TensorFact> outputs_;
  mutable NodeAttrs attrs_;
  mutable NodeAttrs const_attrs_;
  std::vector<std::pair<int, VariableFact>> noted_;  // By input.
  ShapeId said_elements_ = kUnknownShape;
  // Results of SourceShape(s)Attr: a queue may have many readers and long attributes.
  absl::flat_hash_map<std::pair<NodeId, absl::string_view>, std::vector<ShapeId>> source_shapes_;
  // Results of ReadShape: nodes state few distinct shapes.
  absl::flat_hash_map<absl::string_view, absl::optional<ShapeId>> read_shapes_;
  std::string failure_;
};

// ShapeText(pool, id): `[2,?,3]`, `[]`, `?`.
std::string ShapeText(const ShapePool& pool, ShapeId shape);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_CONTEXT_H_
