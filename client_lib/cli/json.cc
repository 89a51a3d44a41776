#include "client_lib/cli/json.h"

#include "google/protobuf/util/json_util.h"

namespace spillway::cli {

std::string ToJson(const google::protobuf::Message& message, bool with_zeros) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = with_zeros;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for an Any of unknown type; no message of ours that is printed here has one.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

}  // namespace spillway::cli
