// Messages as JSON, for files and for other programs.
#ifndef SPILLWAY_CLIENT_LIB_CLI_JSON_H_
#define SPILLWAY_CLIENT_LIB_CLI_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace spillway::cli {

// The JSON form of proto3 with the field names of the .proto file, indented, with a line end. A
// plain field is always there, also where it is 0 or empty; an `optional` one only if it is set.
// 64-bit numbers are strings, as that form has them.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_JSON_H_
