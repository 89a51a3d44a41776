// Prints messages as JSON, for files and other programs.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace spillway::cli {

// Returns proto3's JSON with the field names of the .proto file, indented, with a final newline.
// 64-bit numbers are strings, as in that format. An `optional` field is printed only if it is set;
// a plain one is also printed if it is 0 or empty, but only with `with_zeros`.
std::string ToJson(const google::protobuf::Message& message, bool with_zeros);

// The entry for one MetaGraph of a SavedModel.
struct MetaGraphJson {
  std::vector<std::string> tags;
  std::string key;
  std::string json;  // The value of `key`.
};

// Returns {"meta_graphs": [{"index": 0, "tags": ["train"], KEY: JSON}, ...]}, indented, with a
// final newline. Invalid UTF-8, which JSON does not allow, is replaced.
std::string MetaGraphsJson(const std::vector<MetaGraphJson>& graphs);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_JSON_H_
