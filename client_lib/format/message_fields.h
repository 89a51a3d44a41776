// Field numbers of the TensorFlow messages around a GraphDef (tensorflow/core/protobuf/
// {meta_graph,saved_model}.proto).
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_MESSAGE_FIELDS_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_MESSAGE_FIELDS_H_

#include <cstdint>

namespace spillway::format {

namespace saved_model {
inline constexpr uint32_t kSchemaVersion = 1;
inline constexpr uint32_t kMetaGraphs = 2;
}  // namespace saved_model

namespace meta_graph_def {
inline constexpr uint32_t kMetaInfo = 1;
inline constexpr uint32_t kGraph = 2;
inline constexpr uint32_t kTags = 4;  // In the MetaInfoDef.
}  // namespace meta_graph_def

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_MESSAGE_FIELDS_H_
