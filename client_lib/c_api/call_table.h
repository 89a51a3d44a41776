// Internal. The functions behind those of spillway.h that need the client library. libspillway.so
// contains no protobuf, gRPC or Abseil code: it loads libspillway_client.so, which has the table,
// at the first call (load_shared.cc). Static libraries contain both (load_static.cc).
#ifndef SPILLWAY_CLIENT_LIB_C_API_CALL_TABLE_H_
#define SPILLWAY_CLIENT_LIB_C_API_CALL_TABLE_H_

#include "spillway/spillway.h"

namespace spillway::c_api {

// Each entry has the contract of its namesake.
struct CallTable {
  decltype(&spillway_version) version;
  decltype(&spillway_status_free) status_free;
  decltype(&spillway_buffer_free) buffer_free;
  decltype(&spillway_client_options_new) client_options_new;
  decltype(&spillway_client_options_free) client_options_free;
  decltype(&spillway_client_options_set_target) client_options_set_target;
  decltype(&spillway_client_options_set_unary_max_bytes) client_options_set_unary_max_bytes;
  decltype(&spillway_client_options_set_chunk_bytes) client_options_set_chunk_bytes;
  decltype(&spillway_client_options_set_max_attempts) client_options_set_max_attempts;
  decltype(&spillway_client_options_set_tls) client_options_set_tls;
  decltype(&spillway_client_options_set_token_file) client_options_set_token_file;
  decltype(&spillway_client_options_set_token_in_clear) client_options_set_token_in_clear;
  decltype(&spillway_client_options_set_hedge_after_ms) client_options_set_hedge_after_ms;
  decltype(&spillway_client_new) client_new;
  decltype(&spillway_client_free) client_free;
  decltype(&spillway_call_new) call_new;
  decltype(&spillway_call_free) call_free;
  decltype(&spillway_call_set_timeout_ms) call_set_timeout_ms;
  decltype(&spillway_call_set_keep_best) call_set_keep_best;
  decltype(&spillway_call_set_request_id) call_set_request_id;
  decltype(&spillway_call_set_traceparent) call_set_traceparent;
  decltype(&spillway_call_set_token) call_set_token;
  decltype(&spillway_call_cancel) call_cancel;
  decltype(&spillway_call_set_progress) call_set_progress;
  decltype(&spillway_rewrite_graph) rewrite_graph;
  decltype(&spillway_rewrite) rewrite;
  decltype(&spillway_get_capabilities) get_capabilities;
  decltype(&spillway_check_health) check_health;
  decltype(&spillway_inspect) inspect;
  decltype(&spillway_simulate) simulate;
  decltype(&spillway_explore) explore;
  decltype(&spillway_diff) diff;
  decltype(&spillway_find_gpu_memory) find_gpu_memory;
  decltype(&spillway_draw) draw;
  decltype(&spillway_text) text;
  decltype(&spillway_check) check;
  decltype(&spillway_message_from_json) message_from_json;
  decltype(&spillway_message_to_json) message_to_json;
};

// Returns the table, or null with the reason in `*failure`.
const CallTable* LoadCallTable(spillway_status** failure);

}  // namespace spillway::c_api

// Exported by libspillway_client.
extern "C" SPILLWAY_EXPORT const spillway::c_api::CallTable* spillway_internal_call_table();

#endif  // SPILLWAY_CLIENT_LIB_C_API_CALL_TABLE_H_
