// Field numbers of TensorFlow's GraphDef (tensorflow/core/framework/{graph,node_def,attr_value,
// tensor,tensor_shape,function,op_def,versions}.proto) and the names of the attributes that
// Spillway uses.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_DEF_FIELDS_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_DEF_FIELDS_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"

namespace spillway::core {

namespace graph_def {
inline constexpr uint32_t kNode = 1;
inline constexpr uint32_t kLibrary = 2;
inline constexpr uint32_t kVersions = 4;
}  // namespace graph_def

namespace library_def {
inline constexpr uint32_t kFunction = 1;
}  // namespace library_def

namespace function_def {
inline constexpr uint32_t kSignature = 1;  // An OpDef.
inline constexpr uint32_t kNode = 3;
inline constexpr uint32_t kReturn = 4;  // A map from an output argument to `node:output:index`.
// Maps: one like that of nodes; from an argument's index to ArgAttrs, and to a number; and from a
// control output to a node.
inline constexpr uint32_t kAttr = 5, kArgAttr = 7, kResourceArgUniqueId = 8, kControlReturn = 6;
inline constexpr uint32_t kSignatureName = 1;
inline constexpr uint32_t kArgAttrsAttr = 1;  // In ArgAttrs.
}  // namespace function_def

namespace op_def {
inline constexpr uint32_t kInputArg = 2;
inline constexpr uint32_t kOutputArg = 3;
inline constexpr uint32_t kArgName = 1;
inline constexpr uint32_t kArgType = 3;
inline constexpr uint32_t kArgTypeAttr = 4;
inline constexpr uint32_t kArgNumberAttr = 5;
inline constexpr uint32_t kArgTypeListAttr = 6;
inline constexpr uint32_t kAttrDef = 4;
}  // namespace op_def

namespace version_def {
inline constexpr uint32_t kProducer = 1;
inline constexpr uint32_t kMinConsumer = 2;
}  // namespace version_def

namespace node_def {
inline constexpr uint32_t kName = 1;
inline constexpr uint32_t kOp = 2;
inline constexpr uint32_t kInput = 3;
inline constexpr uint32_t kDevice = 4;
inline constexpr uint32_t kAttr = 5;  // A map: entries with key = 1, value = 2.
}  // namespace node_def

namespace map_entry {
inline constexpr uint32_t kKey = 1;
inline constexpr uint32_t kValue = 2;
}  // namespace map_entry

namespace attr_value {
inline constexpr uint32_t kList = 1;
inline constexpr uint32_t kString = 2;
inline constexpr uint32_t kInt = 3;
inline constexpr uint32_t kFloat = 4;
inline constexpr uint32_t kBool = 5;
inline constexpr uint32_t kType = 6;
inline constexpr uint32_t kShape = 7;
inline constexpr uint32_t kTensor = 8;
inline constexpr uint32_t kPlaceholder = 9;  // The name of an attribute of the function.
inline constexpr uint32_t kFunction = 10;    // A NameAttrList.
// Fields of AttrValue.ListValue.
inline constexpr uint32_t kListString = 2;
inline constexpr uint32_t kListInt = 3;
inline constexpr uint32_t kListFloat = 4;
inline constexpr uint32_t kListBool = 5;
inline constexpr uint32_t kListType = 6;
inline constexpr uint32_t kListShape = 7;
inline constexpr uint32_t kListFunction = 9;
}  // namespace attr_value

namespace name_attr_list {
inline constexpr uint32_t kName = 1;
inline constexpr uint32_t kAttr = 2;  // A map, like that of a node.
}  // namespace name_attr_list

namespace tensor_proto {
inline constexpr uint32_t kShape = 2;
inline constexpr uint32_t kContent = 4;
inline constexpr uint32_t kFloatVal = 5;
inline constexpr uint32_t kIntVal = 7;
inline constexpr uint32_t kInt64Val = 10;
inline constexpr uint32_t kBoolVal = 11;
}  // namespace tensor_proto

namespace shape_proto {
inline constexpr uint32_t kDim = 2;
inline constexpr uint32_t kUnknownRank = 3;
inline constexpr uint32_t kDimSize = 1;
}  // namespace shape_proto

// Protobuf, and therefore TensorFlow, cannot read messages of 2 GiB or more.
inline constexpr int64_t kMaxMessageBytes = std::numeric_limits<int32_t>::max();

// On every node that Spillway adds or edits: how strip undoes it (graph/undo.h).
inline constexpr char kUndoAttr[] = "_spillway_undo";
// Keeps Grappler's dependency optimizer from removing an Identity.
inline constexpr char kGrapplerKeepAttr[] = "_grappler_do_not_remove";
// A list of colocations, each `loc:@NODE`.
inline constexpr char kClassAttr[] = "_class";
// Written by as_graph_def(add_shapes=True): a list of shapes, one per output.
inline constexpr char kOutputShapesAttr[] = "_output_shapes";
// In the name of every swap node, ours and IBM's.
inline constexpr char kSwapNodeMark[] = "lms/swap";
// With this begin the names of clones.
inline constexpr char kCloneMark[] = "lms/recompute_";
inline bool IsCloneName(absl::string_view name) {
  return name.substr(0, sizeof(kCloneMark) - 1) == kCloneMark;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_DEF_FIELDS_H_
