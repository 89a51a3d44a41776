#include "client_lib/cli/print/json.h"

#include <utility>

#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace spillway::cli {
namespace {

std::string Print(const google::protobuf::Message& message,
                  google::protobuf::util::JsonPrintOptions options) {
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // Fails only for an Any of unknown type, which no message printed here contains.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  return Print(message, options);
}

std::string ToJsonWithoutZeros(const google::protobuf::Message& message) {
  return Print(message, {});
}

std::string MetaGraphsJson(const std::vector<MetaGraphJson>& graphs) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (size_t i = 0; i < graphs.size(); ++i) {
    Json entry = {{"index", i}, {"tags", graphs[i].tags}};
    entry[graphs[i].key] = Json::parse(graphs[i].json, /*cb=*/nullptr, /*allow_exceptions=*/false);
    list.push_back(std::move(entry));
  }
  Json all;
  all["meta_graphs"] = std::move(list);
  return all.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::cli
