// A library that uses libspillway.so.
#include <string.h>

#include "spillway/spillway.h"

// 0: the C API works, through protobuf and the core.
extern "C" int use_c_api() {
  spillway_client* client = nullptr;
  spillway_buffer* graph = nullptr;
  spillway_buffer* options = nullptr;
  const char json[] = "{\"scope\": {\"lb\": 3}}";
  spillway_status* status = spillway_client_new(nullptr, &client);
  if (status == nullptr) {
    status = spillway_message_from_json("RewriteOptions", json, strlen(json), &options);
  }
  if (status != nullptr) return 1;
  status = spillway_rewrite_graph(client, "", 0, spillway_buffer_data(options),
                                  spillway_buffer_size(options), nullptr, &graph, nullptr);
  const bool as_expected = strcmp(spillway_status_reason(status), "EMPTY_GRAPH") == 0;
  spillway_status_free(status);
  spillway_buffer_free(options);
  spillway_client_free(client);
  return as_expected ? 0 : 1;
}
