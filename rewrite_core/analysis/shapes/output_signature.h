// The output signature of an op type (OpInfo::outputs), read once for all nodes of that type:
// graph/op_outputs.h for frequent use.
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_OUTPUT_SIGNATURE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_OUTPUT_SIGNATURE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/node_attrs.h"
#include "rewrite_core/analysis/shapes/tensor_fact.h"
#include "rewrite_core/graph/op_registry.h"

namespace spillway::core {

class OutputSignature {
 public:
  explicit OutputSignature(const OpInfo& info);

  // Whether the number of outputs is the same for all nodes; and that number.
  bool fixed() const { return fixed_; }
  int fixed_count() const { return static_cast<int>(words_.size()); }

  // The number of outputs of the node with these attributes; -1 if unknown.
  int64_t Count(NodeAttrs& attrs) const;

  // The first port of the output argument at that position; -1 if unknown.
  int64_t FirstPort(int argument, NodeAttrs& attrs) const;

  // Sets the types of the outputs, as far as they are known. `facts` may be shorter.
  void SetTypes(NodeAttrs& attrs, absl::Span<TensorFact> facts) const;

 private:
  // One output argument: `number` tensors of one type, or one per type of a list.
  struct Word {
    DataType fixed_type = kDtInvalid;  // Or the default of type_attr.
    bool is_ref = false;
    int64_t default_number = -1;
    absl::string_view type_attr, list_attr, number_attr;
  };

  int64_t CountOf(const Word& word, NodeAttrs& attrs) const;

  absl::InlinedVector<Word, 2> words_;
  bool fixed_ = true;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_OUTPUT_SIGNATURE_H_
