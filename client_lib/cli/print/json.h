// Messages as JSON, for files and for other programs.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace spillway::cli {

// The JSON form of proto3 with the field names of the .proto file, indented, with a line end.
// 64-bit numbers are strings, as that form has them. An `optional` field is there only if it is
// set; a plain one also where it is 0 or empty.
std::string ToJson(const google::protobuf::Message& message);
// The same without plain fields that are 0 or empty.
std::string ToJsonWithoutZeros(const google::protobuf::Message& message);

// What there is to say on one MetaGraph of a SavedModel, beside its index and its tags.
struct MetaGraphJson {
  std::vector<std::string> tags;
  std::string key;
  std::string json;  // The value of `key`.
};

// {"meta_graphs": [{"index": 0, "tags": ["train"], KEY: JSON}, ...]}, indented, with a line end.
// Bytes that are no UTF-8 are replaced: JSON has none.
std::string MetaGraphsJson(const std::vector<MetaGraphJson>& graphs);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_
